//! How fast two network interfaces exchange verified messages when the wire costs nothing: frames are
//! copied from one to the other in memory, on one core, with every check on.

use std::time::{Duration as RealTime, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use phitwire::link::{EndName, LinkConfig};
use phitwire::nic::{BlackwidowNic, NicConfig, NicEvent, Operation, Pattern, TrafficSpec};
use phitwire::node::Node;
use phitwire::time::{Duration, Time};
use phitwire_framing::frame::LinkEnd;

const TARGET: u16 = 1;
/// Time that passes per round of both: some 1,000 puts.
const ROUND: Duration = Duration::from_us(500);

struct Pair {
    source: BlackwidowNic,
    target: BlackwidowNic,
    now: Time,
    buf: Vec<u8>,
    run: u64,
}

fn nic(processor: u16, end: LinkEnd) -> BlackwidowNic {
    let name = |node: &str| EndName {
        node: node.to_owned(),
        port: 0,
    };
    let (local, peer) = match end {
        LinkEnd::A => (name("source"), name("target")),
        LinkEnd::B => (name("target"), name("source")),
    };
    let node = local.node.clone();
    let link = LinkConfig::builder(0, end, local, peer)
        .build()
        .expect("a sound link");
    let config = NicConfig::builder(&node, processor, vec![link])
        .build()
        .expect("a sound config");
    BlackwidowNic::new(config, Time::ZERO)
}

fn carry(from: &mut BlackwidowNic, to: &mut BlackwidowNic, now: Time, buf: &mut [u8]) {
    from.advance(now);
    while let Some(len) = from.poll_frame(now, 0, buf) {
        to.handle_frame(now, 0, &buf[..len]);
    }
}

impl Pair {
    fn new(frame: usize) -> Self {
        let mut pair = Self {
            source: nic(0, LinkEnd::A),
            target: nic(TARGET, LinkEnd::B),
            now: Time::ZERO,
            buf: vec![0; frame],
            run: 0,
        };
        while !pair.source.lcb(0).is_some_and(|lcb| lcb.is_active()) {
            pair.round();
        }
        pair
    }

    fn round(&mut self) {
        self.now += ROUND;
        carry(&mut self.source, &mut self.target, self.now, &mut self.buf);
        carry(&mut self.target, &mut self.source, self.now, &mut self.buf);
    }

    fn is_done(&mut self) -> bool {
        let run = self.run;
        while let Some(event) = self.source.poll_event() {
            if event == (NicEvent::TrafficDone { run }) {
                return true;
            }
        }
        false
    }

    /// Runs `count` messages to their last acknowledgement and verifies the account.
    fn run(&mut self, op: Operation, size: u8, count: u64) -> RealTime {
        self.run += 1;
        let spec = TrafficSpec {
            run: self.run,
            pattern: Pattern::List {
                destinations: vec![TARGET],
            },
            op,
            size: size.into(),
            count,
            window: 4_096,
            ..TrafficSpec::default()
        };
        let begin = Instant::now();
        self.source
            .start_traffic(self.now, spec)
            .expect("no run is going on");
        while !self.is_done() {
            self.round();
        }
        let took = begin.elapsed();
        let mut report = self.source.traffic_report(None).expect("the run just made");
        if let Some(other) = self.target.traffic_report(Some(self.run)) {
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
    let mut group = c.benchmark_group("nic");
    group.throughput(Throughput::Elements(1));
    for (name, op, size) in [
        ("put", Operation::Put, 8),
        ("put", Operation::Put, 32),
        ("get", Operation::Get, 8),
    ] {
        for frame in [1_472, 8_972] {
            let id = BenchmarkId::new(format!("{name}-{size}B"), format!("frame-{frame}"));
            let mut pair = Pair::new(frame);
            group.bench_function(id, |b| b.iter_custom(|count| pair.run(op, size, count)));
        }
    }
    group.finish();
}

criterion_group!(benches, messages);
criterion_main!(benches);
