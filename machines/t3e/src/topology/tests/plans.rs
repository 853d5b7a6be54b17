//! Configuration of processes.

use super::{broken, torus};
use crate::barrier::tree::Port as BarrierPort;
use crate::link::{CARRIER_LIVE, CARRIER_PAPER, Depths};
use crate::router::PROCESSOR;
use phitwire::net::{Clock, Network, NodeRef, PlanError, Profile, Runtime, SideNetworks as _};
use phitwire::time::Time;

#[test]
fn routers_are_configured() {
    let torus = torus("3x3x3");
    let runtime = Runtime::new("lab", 1);
    let config = torus.router(5, &runtime).expect("a router");
    assert_eq!(config.name, "r5");
    assert_eq!(config.registers, torus.registers().expect("tables")[5]);
    let ports: Vec<u8> = config.ports.iter().map(|(port, _)| *port).collect();
    assert_eq!(ports, [0, 1, 2, 3, 4, 5, PROCESSOR as u8]);
    assert_eq!(config.clock, Clock::FreeRunning);
    for (port, link) in &config.ports {
        assert_eq!(link.depths, Depths::LIVE);
        assert_eq!(link.carrier.link.local().port, *port);
        assert_eq!(link.carrier.depths, CARRIER_LIVE);
    }
    let nic = &torus.ports(NodeRef::Processor(5), &runtime).expect("a NIC")[0];
    let router = &config.ports[PROCESSOR].1;
    assert_eq!(nic.1.carrier.link.link(), router.carrier.link.link());
    assert_eq!(nic.1.carrier.link.peer(), router.carrier.link.local());
}

#[test]
fn the_profile_chooses_the_depths() {
    let torus = torus("2x2x2");
    let mut runtime = Runtime::new("lab", 1);
    runtime.profile = Some(Profile::Paper);
    runtime.clock = Some(Clock::Paced { dilation: 10 });
    let config = torus.router(0, &runtime).expect("a router");
    assert_eq!(config.clock, Clock::Paced { dilation: 10 });
    for (port, link) in &config.ports {
        let own = usize::from(*port) == PROCESSOR;
        let depths = if own {
            Depths::PROCESSOR
        } else {
            Depths::PAPER
        };
        assert_eq!(link.depths, depths);
        assert_eq!(link.carrier.depths, CARRIER_PAPER);
    }
}

#[test]
fn devices_are_made_by_name() {
    let torus = torus("2x2x2");
    let runtime = Runtime::new("lab", 1);
    let router = torus.device("r7", &runtime, Time::ZERO);
    assert!(router.is_ok());
    let nobody = torus.device("r8", &runtime, Time::ZERO);
    assert!(matches!(nobody, Err(PlanError::NoSuchNode(_))));
}

#[test]
fn a_barrier_is_among_the_nodes_of_network_interfaces_whatever_their_numbers() {
    let torus = broken("3x3x3", &[], 1);
    let nic = NodeRef::Processor;
    let plan = |nics: &[(NodeRef, u16)]| torus.barrier(3, nics, &|_| true);
    let leaves = |nics: &[(NodeRef, u16)]| -> Vec<NodeRef> {
        let tree = plan(nics).expect("a tree").registers.into_iter();
        let local = 1 << BarrierPort::Local.index();
        let is_leaf = tree.filter(|register| register.value & local != 0);
        is_leaf.map(|register| register.node).collect()
    };
    assert_eq!(
        leaves(&[(nic(0), 0), (nic(14), 14)]),
        [0, 14].map(NodeRef::Chip)
    );
    // The spare has taken the number of node 14.
    assert_eq!(
        leaves(&[(nic(0), 0), (nic(26), 14)]),
        [0, 26].map(NodeRef::Chip)
    );
    let spare = plan(&[(nic(0), 0), (nic(26), 26)]).unwrap_err();
    assert!(spare.contains("nic26 is an unreachable spare"), "{spare}");
    let absent = plan(&[(nic(27), 3)]).unwrap_err();
    assert!(absent.contains("is down"), "{absent}");
}
