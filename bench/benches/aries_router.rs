//! Packets and flit-hops per second of one Aries router core: every stage modelled, without links.
//!
//! `live puts` is the work of a router process for 8-byte puts between two of its NICs: frames of
//! requests (five flits) and of responses (one) arrive, and the core runs freely until nothing can
//! move. `uniform` is a router of a full group (15 green, 15 black, 10 blue ports) under random
//! traffic from all ports at half load.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use phitwire::chip::{Grain, RouterClock};
use phitwire::rng::Rng;
use phitwire_aries::route::registers::{
    AriesRegisters, FIRST_NIC_PORT, PORTS, PortKind, RouteTables, VCS,
};
use phitwire_aries::router::{Core, Ports};
use phitwire_framing::aries::flit::{Flit, Head, NodeId, Routing};

/// Number of packets in a frame.
const BURST: usize = 32;
const CYCLES: u64 = 2_000;

/// Input queues and an output counter in place of links.
struct Links {
    queues: Vec<[VecDeque<Flit>; VCS]>,
    flits: u64,
}

impl Ports for Links {
    fn front(&self, port: usize, vc: usize) -> Option<Flit> {
        self.queues[port][vc].front().copied()
    }
    fn pop(&mut self, port: usize, vc: usize) -> Option<Flit> {
        self.queues[port][vc].pop_front()
    }
    fn can_begin(&self, _port: usize, _vc: usize, _flits: usize) -> bool {
        true
    }
    fn is_active(&self, _port: usize) -> bool {
        true
    }
    fn push(&mut self, _port: usize, flit: Flit) {
        black_box(flit);
        self.flits += 1;
    }
}

impl Links {
    fn new() -> Self {
        Self {
            queues: (0..PORTS).map(|_| Default::default()).collect(),
            flits: 0,
        }
    }

    fn put(&mut self, port: usize, head: Head) {
        let queue = &mut self.queues[port][usize::from(head.vc())];
        queue.push_back(head.flit());
        queue.extend((1..head.length()).map(|i| Flit::new(u64::from(i))));
    }
}

/// A router of a group of 6 x 16 with a blue link to each of ten other groups.
fn registers() -> AriesRegisters {
    let ports = (0..PORTS)
        .map(|port| {
            Some(match port {
                0..15 => PortKind::Green,
                15..30 => PortKind::Black,
                30..40 => PortKind::Blue,
                _ => PortKind::Processor,
            })
        })
        .collect();
    let local = |router: usize, greens: bool| match (router / 16, router % 16) {
        (0, 0) => 0,
        (chassis, 0) => 0b111 << (15 + 3 * (chassis - 1)),
        (_, blade) => u64::from(greens) << (blade - 1),
    };
    let tables = |kind: PortKind| {
        let greens = matches!(kind, PortKind::Processor | PortKind::Blue);
        let blacks = kind != PortKind::Black;
        let up = if greens { 0x7fff } else { 0 } | if blacks { 0x7fff << 15 } else { 0 };
        RouteTables {
            local_minimal: (0..96).map(|router| local(router, greens)).collect(),
            local_non_minimal: vec![up; 96],
            global_minimal: (0..11)
                .map(|g| if g == 0 { 0 } else { 1 << (29 + g) })
                .collect(),
            global_non_minimal: vec![up | 0x3ff << 30; 11],
        }
    };
    AriesRegisters {
        group: 0,
        router: 0,
        ports,
        tables: PortKind::ALL.map(|kind| Arc::new(tables(kind))),
        black_links: 3,
        bias: AriesRegisters::BIAS,
        blue_classes: AriesRegisters::BLUE_CLASSES,
        root_classes: AriesRegisters::ROOT_CLASSES,
        local_up_class: AriesRegisters::LOCAL_UP_CLASS,
        forward_progress_ns: 1_000_000,
    }
}

fn head(response: bool, length: u8, to: NodeId, id: u16) -> Head {
    Head::new(response, length, to, Routing::Adaptive0, id, 0)
}

/// A core with the default configuration of processes.
fn live_core() -> Core {
    Core::new(registers(), Grain::Packet, RouterClock::FreeRunning)
}

fn live_puts(c: &mut Criterion) {
    let mut group = c.benchmark_group("aries router");
    group.throughput(Throughput::Elements(BURST as u64));
    group.bench_function("live puts", |b| {
        let (mut core, mut links) = (live_core(), Links::new());
        b.iter(|| {
            for i in 0..BURST {
                links.put(
                    FIRST_NIC_PORT,
                    head(false, 5, NodeId::new(0, 0, 2), i as u16),
                );
                links.put(
                    FIRST_NIC_PORT + 2,
                    head(true, 1, NodeId::new(0, 0, 0), i as u16),
                );
            }
            core.arrived(FIRST_NIC_PORT, 0, 5 * BURST as u32);
            core.arrived(FIRST_NIC_PORT + 2, 4, BURST as u32);
            core.run(&mut links);
        });
        assert_eq!(core.flits_inside(), 0);
        assert_eq!(core.counters().swallowed_flits, 0);
    });
    group.bench_function("live puts by links", |b| {
        let (mut core, mut links) = (live_core(), Links::new());
        b.iter(|| {
            for i in 0..BURST {
                links.put(
                    FIRST_NIC_PORT,
                    head(false, 5, NodeId::new(0, 5, 2), i as u16),
                );
                links.put(3, head(true, 1, NodeId::new(0, 0, 0), i as u16));
            }
            core.arrived(FIRST_NIC_PORT, 0, 5 * BURST as u32);
            core.arrived(3, 4, BURST as u32);
            core.run(&mut links);
        });
        assert_eq!(core.flits_inside(), 0);
    });
    group.finish();
}

fn uniform(c: &mut Criterion) {
    let mut group = c.benchmark_group("aries router");
    let clock = RouterClock::Paced { dilation: 1 };
    let core = Core::new(registers(), Grain::Flit, clock);
    let (mut core, mut links) = (core, Links::new());
    let mut rng = Rng::new(1, 1);
    let mut run = |cycles: u64| {
        let before = links.flits;
        for _ in 0..cycles {
            for port in 0..PORTS {
                // Packets of five flits start in a tenth of the cycles: half load.
                if !rng.chance(1, 10) || links.queues[port][0].len() > 100 {
                    continue;
                }
                let kind = core.registers().ports[port];
                // Destinations of the packet: the NICs, or another router.
                let to = match kind {
                    Some(PortKind::Processor) => NodeId::new(0, rng.below(96) as u8, 0),
                    Some(PortKind::Green) => NodeId::new(0, 16 * rng.below(6) as u8, 0),
                    Some(PortKind::Black) => NodeId::new(rng.below(11) as u16, 0, 0),
                    _ => NodeId::new(0, rng.below(96) as u8, 1),
                };
                let nic = NodeId::new(to.group(), to.router(), rng.below(4) as u8);
                links.put(port, head(false, 5, nic, 0));
                core.arrived(port, 0, 5);
            }
            let next = core.cycle() + 1;
            core.run_until(next, &mut links);
        }
        links.flits - before
    };
    let flits = run(20_000);
    group.throughput(Throughput::Elements(flits * CYCLES / 20_000));
    group.bench_function("uniform", |b| b.iter(|| run(CYCLES)));
    group.finish();
}

criterion_group!(benches, live_puts, uniform);
criterion_main!(benches);
