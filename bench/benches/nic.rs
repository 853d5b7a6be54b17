//! How fast two network interfaces exchange verified messages when the wire costs nothing: frames
//! are copied from one to the other in memory, on one core, with every check on.

use std::time::{Duration as RealTime, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use joined::{Joined, links};
use phitwire::link::EndStatus;
use phitwire::machine::blackwidow::link::STANDARD;
use phitwire::machine::blackwidow::nic::{BlackWidowNic, NicConfig, NicEvent};
use phitwire::nic::{Operation, Pattern, TrafficSpec};
use phitwire::node::Node;
use phitwire::time::{Duration, Time};

mod joined;

const TARGET: u16 = 1;
/// Time that passes per round of both: some 1,000 puts.
const ROUND: Duration = Duration::from_us(500);

struct Pair {
    nics: Joined<BlackWidowNic>,
    run: u64,
}

impl joined::End for BlackWidowNic {
    fn is_up(&self) -> bool {
        self.lcb(0).is_some_and(|lcb| lcb.is_active())
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
    fn new(frame: usize) -> Self {
        let mut processors = 0..=TARGET;
        let nics = links(STANDARD).map(|link| {
            let name = link.local().node.clone();
            let processor = processors.next().expect("two of them");
            let config = NicConfig::builder(&name, processor, vec![link]).build();
            BlackWidowNic::new(config.expect("a sound config"), Time::ZERO)
        });
        let nics = Joined::up(nics, frame);
        Self { nics, run: 0 }
    }

    fn is_done(&mut self) -> bool {
        let run = self.run;
        while let Some(event) = self.nics.ends[0].poll_event() {
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
        self.nics.ends[0]
            .start_traffic(self.nics.now, spec)
            .expect("no run is going on");
        while !self.is_done() {
            self.nics.round(ROUND);
        }
        let took = begin.elapsed();
        let mut report = self.nics.ends[0]
            .traffic_report(None)
            .expect("the run just made");
        if let Some(other) = self.nics.ends[1].traffic_report(Some(self.run)) {
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
