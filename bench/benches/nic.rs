//! Speed of two NICs of a machine that exchange verified messages over an ideal wire: frames are
//! copied in memory, on one core, with every check on.

use std::time::{Duration as RealTime, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use joined::{Joined, links};
use phitwire::device::{Device, DeviceEvent, capability};
use phitwire::link::{LinkConfig, LinkStandard};
use phitwire::nic::{Operation, TrafficPattern, TrafficSpec};
use phitwire::node::Node;
use phitwire::time::{Duration, Time};
use phitwire_aries::link::{AriesLinkConfig, SetProfile};
use phitwire_aries::nic::{AriesNic, AriesNicConfig, Domain, NodeId, Permissions, VirtualNodes};
use phitwire_aries::topology::LAB_DOMAIN;
use phitwire_blackwidow::link::{PhitLinkConfig, PhitProfile};
use phitwire_blackwidow::nic::BlackWidowNic;
use {phitwire_aries as aries, phitwire_blackwidow as blackwidow};

mod joined;

const TARGET: u16 = 1;
/// Time per round of both NICs: some 1,000 puts.
const ROUND: Duration = Duration::from_us(500);

/// Makes a NIC at the end of a link, with the number of its processor.
type Make = fn(LinkConfig, u16) -> Box<dyn Device>;

fn blackwidow_nic(link: LinkConfig, processor: u16) -> Box<dyn Device> {
    let link = PhitLinkConfig::new(link, PhitProfile::live(), 19).expect("a sound link");
    let config = blackwidow::nic::config(processor, vec![link]);
    Box::new(BlackWidowNic::new(config, Time::ZERO))
}

fn aries_nic(link: LinkConfig, processor: u16) -> Box<dyn Device> {
    const MEMORY: u64 = 1 << 26;
    let nodes = [0, 1].map(|nic| NodeId::new(0, 0, nic));
    let whole = Domain {
        base: 0,
        length: MEMORY,
        key: 7,
        permissions: Permissions::ALL,
    };
    let name = link.local().node.clone();
    let link = AriesLinkConfig::new(link, SetProfile::live()).expect("a sound link");
    let config = AriesNicConfig::builder(&name, nodes[usize::from(processor)], link)
        .memory_bytes(MEMORY)
        .virtual_nodes(VirtualNodes::new(nodes.to_vec()))
        .domain(LAB_DOMAIN, whole)
        .build();
    Box::new(AriesNic::new(config.expect("a sound config"), Time::ZERO))
}

struct Pair {
    nics: Joined<Box<dyn Device>>,
    run: u64,
}

impl joined::End for Box<dyn Device> {
    fn is_up(&self) -> bool {
        self.links().all(|(_, link)| link.is_active())
    }
    fn advance(&mut self, now: Time) {
        Node::advance(self, now);
    }
    fn poll_frame(&mut self, now: Time, buf: &mut [u8]) -> Option<usize> {
        Node::poll_frame(self, now, 0, buf)
    }
    fn handle_frame(&mut self, now: Time, bytes: &[u8]) {
        Node::handle_frame(self, now, 0, bytes);
    }
}

impl Pair {
    fn new(standard: LinkStandard, make: Make, frame: usize) -> Self {
        let mut processors = 0..=TARGET;
        let nics = links(standard).map(|link| make(link, processors.next().expect("two of them")));
        let nics = Joined::up(nics, frame);
        Self { nics, run: 0 }
    }

    fn is_done(&mut self) -> bool {
        let run = self.run;
        while let Some(event) = Node::poll_event(&mut self.nics.ends[0]) {
            if event == (DeviceEvent::TrafficDone { run }) {
                return true;
            }
        }
        false
    }

    /// Runs `count` messages until the last is acknowledged, and verifies the counts of both NICs.
    fn run(&mut self, op: Operation, size: u32, count: u64) -> RealTime {
        self.run += 1;
        let spec = TrafficSpec {
            run: self.run,
            pattern: TrafficPattern::List {
                destinations: vec![TARGET],
            },
            op,
            size,
            count,
            window: 4_096,
            ..TrafficSpec::default()
        };
        let begin = Instant::now();
        let source = self.nics.ends[0]
            .need::<capability::Traffic>()
            .expect("it makes some");
        source
            .start(self.nics.now, spec)
            .expect("no run is going on");
        while !self.is_done() {
            self.nics.round(ROUND);
        }
        let took = begin.elapsed();
        let reports = self.nics.ends.each_ref().map(|nic| {
            let traffic = nic.traffic().expect("it makes some");
            traffic.report(Some(self.run))
        });
        let [report, other] = reports;
        let mut report = report.expect("the run just made");
        if let Some(other) = other {
            report.merge(&other);
        }
        assert!(
            report.is_clean() && report.acknowledged == count,
            "{report:?}"
        );
        took
    }
}

fn messages(c: &mut Criterion) {
    use Operation::{Amo, Get, Put};
    type Messages = &'static [(&'static str, Operation, u32)];
    let machines: [(&str, LinkStandard, Make, Messages); 2] = [
        (
            "nic",
            blackwidow::link::STANDARD,
            blackwidow_nic,
            &[("put", Put, 8), ("put", Put, 32), ("get", Get, 8)],
        ),
        (
            "aries_nic",
            aries::link::STANDARD,
            aries_nic,
            &[
                ("put", Put, 8),
                ("put", Put, 64),
                ("get", Get, 8),
                ("fetch-add", Amo, 8),
                ("block-put", Put, 1 << 16),
            ],
        ),
    ];
    for (machine, standard, make, messages) in machines {
        let mut group = c.benchmark_group(machine);
        for &(name, op, size) in messages {
            group.throughput(match name {
                "block-put" => Throughput::Bytes(size.into()),
                _ => Throughput::Elements(1),
            });
            for frame in [1_472, 8_972] {
                let id = BenchmarkId::new(format!("{name}-{size}B"), format!("frame-{frame}"));
                let mut pair = Pair::new(standard, make, frame);
                group.bench_function(id, |b| b.iter_custom(|count| pair.run(op, size, count)));
            }
        }
        group.finish();
    }
}

criterion_group!(benches, messages);
criterion_main!(benches);
