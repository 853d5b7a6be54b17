//! How fast an Aries link moves sets: both ends on one core, bytes in between, nothing lost.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use phitwire::link::{
    AriesInput, AriesLcb, AriesLinkConfig, EndName, LaneRate, LinkConfig, SetProfile,
};
use phitwire::time::{Duration, Time};
use phitwire_framing::flit48::{Flit, Head, NodeId, Routing};
use phitwire_framing::frame::LinkEnd;

struct Pair {
    ends: [(AriesLcb, AriesInput); 2],
    now: Time,
    buf: Vec<u8>,
}

impl Pair {
    fn up(frame_bytes: usize) -> Self {
        let name = |node: &str| EndName {
            node: node.to_owned(),
            port: 0,
        };
        let end = |end, local, peer| {
            let link = LinkConfig::builder(1, end, name(local), name(peer));
            let link = link.rate(LaneRate::G14_0).build();
            let link = link.expect("the names are good");
            let config = AriesLinkConfig::new(link, SetProfile::live()).expect("a ready profile");
            let input = AriesInput::new(&config);
            (AriesLcb::new(config, Time::ZERO), input)
        };
        let ends = [end(LinkEnd::A, "a", "b"), end(LinkEnd::B, "b", "a")];
        let mut pair = Self {
            ends,
            now: Time::ZERO,
            buf: vec![0; frame_bytes],
        };
        while !pair.ends[0].0.can_begin(0, 1) || !pair.ends[1].0.can_begin(0, 1) {
            pair.now += Duration::from_us(100);
            pair.exchange();
        }
        pair
    }

    fn exchange(&mut self) {
        for from in [0, 1] {
            let [a, b] = &mut self.ends;
            let (from, to) = if from == 0 { (a, b) } else { (b, a) };
            while let Some(length) = from.0.poll_frame(self.now, &mut self.buf) {
                to.0.handle_frame(self.now, &self.buf[..length], &mut to.1);
            }
            for vc in [0, 4] {
                while let Some(flit) = to.1.pop(vc) {
                    black_box(flit);
                }
                let freed = to.1.take_acks(vc);
                to.0.vc_freed(vc, freed);
            }
        }
    }

    /// Puts in one direction, responses in the other.
    fn send(&mut self, packets: usize, request: &[Flit], response: &[Flit]) {
        for (end, packet) in [request, response].into_iter().enumerate() {
            let lcb = &mut self.ends[end].0;
            for _ in 0..packets {
                let ready = lcb.can_begin(4 * end, packet.len());
                assert!(ready, "credits come back with each burst");
                packet.iter().for_each(|flit| lcb.push(*flit));
            }
        }
        self.now += Duration::from_us(50);
        self.exchange();
    }
}

fn packet(vc: u8, flits: u8) -> Vec<Flit> {
    let head = Head::new(
        vc >= 4,
        flits,
        NodeId::new(1, 2, 3),
        Routing::Adaptive0,
        5,
        0,
    );
    let body = (1..flits).map(|i| Flit::new(u64::from(i) * 0x1234_5678_9abc));
    core::iter::once(head.with_vc(vc).flit())
        .chain(body)
        .collect()
}

fn link(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("aries link");
    for (flits, burst, frame_bytes) in [(5, 40, 1_472), (5, 400, 9_000), (14, 100, 9_000)] {
        // Puts with their responses.
        group.throughput(Throughput::Elements(burst as u64));
        let mut pair = Pair::up(frame_bytes);
        let (request, response) = (packet(0, flits), packet(4, 1));
        group.bench_function(
            format!("{burst} puts of {flits} + 1 flits, {frame_bytes} B"),
            |b| b.iter(|| pair.send(burst, &request, &response)),
        );
    }
    group.finish();
}

criterion_group!(benches, link);
criterion_main!(benches);
