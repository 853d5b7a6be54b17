//! Routers and processors together, with encoded links in virtual time.

mod barriers;
mod maintenance;
mod wrong_bits;

use super::CYCLE_PS;
use super::topology::{Torus, TorusSpec};
use phitwire::device::{Device, DeviceError, RegisterName};
use phitwire::net::{Clock, NodeRef};
use phitwire::nic::{TrafficPattern, TrafficSpec};
use phitwire::sim::{LinkSpec, NodeId, World};
use phitwire::time::Duration;

/// A torus whose links are up. `paced` routers have the machine's clock.
fn world(torus: TorusSpec, paced: bool) -> World<Torus> {
    let mut torus = torus;
    if paced {
        torus.settings.clock = Clock::Paced { dilation: 1 };
        torus.settings.profile = phitwire::net::Profile::Paper;
    }
    let spec = match paced {
        // Three clocks from the pins of one port to those of the next.
        true => LinkSpec {
            latency: Duration::from_ps(3 * CYCLE_PS),
            ..LinkSpec::default()
        },
        false => LinkSpec::default(),
    };
    let mut world = World::new(torus.torus(), 7, spec).expect("a world");
    assert!(world.bring_up(Duration::from_ms(200)), "all links come up");
    world
}

fn torus(shape: &str) -> TorusSpec {
    TorusSpec::new(shape.parse().expect("a shape"))
}

fn router(world: &World<Torus>, node: u32) -> NodeId {
    world.id(NodeRef::Chip(node))
}

fn with<R>(world: &mut World<Torus>, node: NodeId, act: impl FnOnce(&mut dyn Device) -> R) -> R {
    world.fabric.command(node, |device, _| act(&mut **device))
}

/// Writes a register through the control socket of its own router.
fn set(world: &mut World<Torus>, node: NodeId, register: &str, value: u64) {
    let name = RegisterName::Name(register);
    let written: Result<(), DeviceError> = with(world, node, |device| {
        device.need_registers(name)?.write(name, value)
    });
    written.expect("a register");
}

/// Puts of eight words from every processor to every other.
fn puts(world: &World<Torus>, run: u64, count: u64) -> TrafficSpec {
    TrafficSpec {
        run,
        processors: world.traffic_numbers(),
        pattern: TrafficPattern::Uniform,
        size: 64,
        window: 64,
        count,
        ..TrafficSpec::default()
    }
}
