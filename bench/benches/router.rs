//! Phit-hops per second of one 64-port YARC core: every stage modelled, delivery verified.
//!
//! Uniform random traffic at a given load (fraction of a port's phit rate, counting every phit of a
//! packet), packets of 4 to 19 phits. One benchmark iteration is [`CYCLES`] router cycles; the
//! throughput that criterion prints is phit-hops (one phit through one router) per second of CPU
//! time.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use phitwire::rng::Rng;
use phitwire_blackwidow::route::registers::{ChipRegisters, PORTS};
use phitwire_blackwidow::router::{Core, Ports};
use phitwire_framing::yarc::phit::{Phit, PhitKind};

const CYCLES: u64 = 2_000;
/// Number of slots of an input queue per virtual channel, the same as in the real ring.
const QUEUE: usize = 256;

/// A ring of phits that stands in for an input queue.
struct Queue {
    phits: Box<[Phit]>,
    head: usize,
    tail: usize,
}

impl Queue {
    fn push(&mut self, phit: Phit) {
        assert!(
            self.tail - self.head < QUEUE,
            "the offered load is above saturation"
        );
        self.phits[self.tail % QUEUE] = phit;
        self.tail += 1;
    }
    fn get(&self, ahead: usize) -> Option<Phit> {
        (self.head + ahead < self.tail).then(|| self.phits[(self.head + ahead) % QUEUE])
    }
}

/// Progress of a packet that enters or leaves a port.
#[derive(Clone, Copy, Default)]
struct Stream {
    left: u32,
    vc: usize,
    length: u32,
    source: usize,
}

/// Sources, sinks and checkers around a core.
struct Harness {
    queues: Vec<[Queue; 2]>,
    sources: [Stream; PORTS],
    sinks: [Stream; PORTS],
    /// Next packet number of each (virtual channel, source, destination), at the sender and at the
    /// receiver.
    sent: Vec<u16>,
    received: Vec<u16>,
    injected: u64,
    delivered: u64,
    rng: Rng,
}

const fn flow(vc: usize, source: usize, destination: usize) -> usize {
    (vc * PORTS + source) * PORTS + destination
}

impl Ports for Harness {
    fn front(&self, port: usize, vc: usize) -> Option<Phit> {
        self.queues[port][vc].get(0)
    }
    fn second(&self, port: usize, vc: usize) -> Option<Phit> {
        self.queues[port][vc].get(1)
    }
    fn pop(&mut self, port: usize, vc: usize) -> Option<Phit> {
        let queue = &mut self.queues[port][vc];
        let phit = queue.get(0)?;
        queue.head += 1;
        Some(phit)
    }
    fn can_begin(&self, _port: usize, _vc: usize) -> bool {
        true
    }
    fn is_active(&self, _port: usize) -> bool {
        true
    }
    fn push(&mut self, port: usize, phit: Phit) {
        let sink = &mut self.sinks[port];
        let content = phit.content();
        match phit.kind() {
            PhitKind::Head => {
                assert_eq!(
                    content as usize & 0x7fff,
                    port,
                    "delivered to its destination"
                );
                *sink = Stream {
                    vc: (content >> 15 & 1) as usize,
                    length: 1,
                    ..*sink
                };
            }
            PhitKind::Body => {
                if sink.length == 1 {
                    sink.source = content as usize;
                } else if sink.length == 2 {
                    let next = &mut self.received[flow(sink.vc, sink.source, port)];
                    assert_eq!(content, u32::from(*next), "in order and exactly once");
                    *next = next.wrapping_add(1);
                }
                sink.length += 1;
            }
            PhitKind::Eop => {
                assert_eq!(content, sink.length, "the packet is whole");
                self.delivered += u64::from(sink.length) + 1;
            }
            PhitKind::Idle => panic!("an idle phit inside a router"),
        }
    }
}

impl Harness {
    fn new(seed: u64) -> Self {
        let queue = || Queue {
            phits: vec![Phit::IDLE; QUEUE].into(),
            head: 0,
            tail: 0,
        };
        Self {
            queues: (0..PORTS).map(|_| [queue(), queue()]).collect(),
            sources: [Stream::default(); PORTS],
            sinks: [Stream::default(); PORTS],
            sent: vec![0; 2 * PORTS * PORTS],
            received: vec![0; 2 * PORTS * PORTS],
            injected: 0,
            delivered: 0,
            rng: Rng::new(seed, 0),
        }
    }

    /// Injects one phit at each port that is in a packet or starts one.
    fn inject(&mut self, core: &mut Core, start: u64) {
        for port in 0..PORTS {
            let mut source = self.sources[port];
            let phit = if source.left == 0 {
                let random = self.rng.next_u64();
                if random >> 32 >= start {
                    continue;
                }
                let destination = (random & 63) as usize;
                source.vc = ((random >> 6) & 1) as usize;
                source.length = 4 + ((((random >> 7) & 0xffff) * 16) >> 16) as u32;
                source.left = source.length - 1;
                source.source = destination;
                Phit::new(
                    PhitKind::Head,
                    destination as u32 | (source.vc as u32) << 15,
                )
            } else {
                source.left -= 1;
                match source.length - 1 - source.left {
                    _ if source.left == 0 => Phit::new(PhitKind::Eop, source.length - 1),
                    1 => Phit::new(PhitKind::Body, port as u32),
                    2 => {
                        let number = &mut self.sent[flow(source.vc, port, source.source)];
                        *number = number.wrapping_add(1);
                        Phit::new(PhitKind::Body, u32::from(number.wrapping_sub(1)))
                    }
                    n => Phit::new(PhitKind::Body, n),
                }
            };
            self.sources[port] = source;
            self.queues[port][source.vc].push(phit);
            self.injected += 1;
            core.arrived(port, source.vc, 1);
        }
    }
}

/// Chance, in 2^-32, that an idle source starts a packet in a cycle, for a load in percent.
fn start_chance(percent: u64) -> u64 {
    // A packet has 11.5 phits on average; an idle source waits (1 - p) / p cycles.
    let load = percent as f64 / 100.0;
    let p = load / (11.5 * (1.0 - load) + load);
    (p * 2f64.powi(32)) as u64
}

/// CPU time of this thread, which excludes other work on the host; wall time if the kernel does not
/// report it.
fn cpu_time(start: Instant) -> Duration {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok())
        .map_or_else(|| start.elapsed(), Duration::from_nanos)
}

fn run(core: &mut Core, harness: &mut Harness, cycles: u64, start: u64) {
    for _ in 0..cycles {
        harness.inject(core, start);
        let next = core.cycle() + 1;
        core.run_until(next, harness);
    }
}

fn uniform(c: &mut Criterion) {
    let mut group = c.benchmark_group("yarc_uniform_64_ports");
    group.sample_size(20);
    // At 70 %, queues of this length sometimes overflow, because nothing throttles the sources.
    for percent in [1, 20, 60] {
        let load = percent * PORTS as u64 * CYCLES / 100;
        group.throughput(Throughput::Elements(load));
        group.bench_function(format!("load_{percent}_percent"), |b| {
            let mut core = Core::new(ChipRegisters::flat());
            let mut harness = Harness::new(percent);
            let start = start_chance(percent);
            run(&mut core, &mut harness, 20_000, start);
            let (before, cycles) = (harness.delivered, core.cycle());
            b.iter_custom(|iterations| {
                let epoch = Instant::now();
                let begin = cpu_time(epoch);
                run(
                    black_box(&mut core),
                    &mut harness,
                    iterations * CYCLES,
                    start,
                );
                cpu_time(epoch) - begin
            });
            let offered = (core.cycle() - cycles) * load / CYCLES;
            let accepted = harness.delivered - before;
            assert!(
                accepted.abs_diff(offered) < offered / 20 + 1_000,
                "{accepted} of {offered}"
            );
            harness.finish(&mut core);
        });
    }
    group.finish();
}

/// Two ports, bursts of 10-phit writes in one direction and 4-phit acknowledgements in the other,
/// each burst run until nothing moves, as in a free-running router process.
fn bursts(c: &mut Criterion) {
    const PACKETS: usize = 40;
    let mut group = c.benchmark_group("yarc_two_ports");
    group.sample_size(20);
    group.throughput(Throughput::Elements(PACKETS as u64 * 14));
    group.bench_function("bursts_of_40_writes_and_acknowledgements", |b| {
        let mut core = Core::new(ChipRegisters::flat());
        let mut harness = Harness::new(1);
        b.iter_custom(|iterations| {
            let epoch = Instant::now();
            let begin = cpu_time(epoch);
            for _ in 0..iterations {
                for _ in 0..2 {
                    harness.burst(&mut core, 0, 1, 0, 10, PACKETS / 2);
                    harness.burst(&mut core, 1, 0, 1, 4, PACKETS / 2);
                    core.run(&mut harness);
                }
            }
            cpu_time(epoch) - begin
        });
        harness.finish(&mut core);
    });
    group.finish();
}

impl Harness {
    /// Sends packets that arrive together, like those of one frame.
    fn burst(
        &mut self,
        core: &mut Core,
        from: usize,
        to: usize,
        vc: usize,
        length: u32,
        packets: usize,
    ) {
        for _ in 0..packets {
            let number = &mut self.sent[flow(vc, from, to)];
            let queue = &mut self.queues[from][vc];
            queue.push(Phit::new(PhitKind::Head, to as u32 | (vc as u32) << 15));
            queue.push(Phit::new(PhitKind::Body, from as u32));
            queue.push(Phit::new(PhitKind::Body, u32::from(*number)));
            (3..length - 1).for_each(|n| queue.push(Phit::new(PhitKind::Body, n)));
            queue.push(Phit::new(PhitKind::Eop, length - 1));
            *number = number.wrapping_add(1);
        }
        let phits = packets as u32 * length;
        self.injected += u64::from(phits);
        core.arrived(from, vc, phits);
    }

    /// Runs without new packets until all packets in the router have arrived.
    fn finish(&mut self, core: &mut Core) {
        while self.sources.iter().any(|source| source.left > 0) {
            run(core, self, 1, 0);
        }
        core.run(self);
        assert_eq!(self.injected, self.delivered, "every phit");
        assert_eq!(self.sent, self.received, "every packet");
    }
}

criterion_group!(benches, uniform, bursts);
criterion_main!(benches);
