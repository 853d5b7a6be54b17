//! Speed of an Aries link that moves sets: both ends on one core, frames copied as bytes, no loss.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use joined::{Joined, links};
use phitwire::link::NodeLink;
use phitwire::time::{Duration, Time};
use phitwire_aries::link::STANDARD;
use phitwire_aries::link::{AriesLcb, AriesLinkConfig, SetProfile};
use phitwire_framing::aries::flit::{Flit, Head, NodeId, Routing};

mod joined;

struct End(AriesLcb);

impl joined::End for End {
    fn is_up(&self) -> bool {
        self.0.wire().can_begin(0, 1)
    }
    fn poll_frame(&mut self, now: Time, buf: &mut [u8]) -> Option<usize> {
        self.0.poll_frame(now, buf)
    }
    fn handle_frame(&mut self, now: Time, bytes: &[u8]) {
        self.0.handle_frame(now, bytes);
    }
    fn take(&mut self) {
        for vc in [0, 4] {
            while let Some(flit) = self.0.input_mut().pop(vc) {
                black_box(flit);
            }
        }
        self.0.give_back();
    }
}

fn pair(frame_bytes: usize) -> Joined<End> {
    let end = |link| {
        let config = AriesLinkConfig::new(link, SetProfile::live()).expect("a ready profile");
        End(AriesLcb::new(config, Time::ZERO))
    };
    Joined::up(links(STANDARD).map(end), frame_bytes)
}

/// Sends puts in one direction and responses in the other.
fn send(pair: &mut Joined<End>, packets: usize, request: &[Flit], response: &[Flit]) {
    for (end, packet) in [request, response].into_iter().enumerate() {
        let lcb = &mut pair.ends[end].0;
        for _ in 0..packets {
            let ready = lcb.wire().can_begin(4 * end, packet.len());
            assert!(ready, "credits come back with each burst");
            packet.iter().for_each(|flit| lcb.push(*flit));
        }
    }
    pair.round(Duration::from_us(50));
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
        // An element is a put with its response.
        group.throughput(Throughput::Elements(burst as u64));
        let mut pair = pair(frame_bytes);
        let (request, response) = (packet(0, flits), packet(4, 1));
        group.bench_function(
            format!("{burst} puts of {flits} + 1 flits, {frame_bytes} B"),
            |b| b.iter(|| send(&mut pair, burst, &request, &response)),
        );
    }
    group.finish();
}

criterion_group!(benches, link);
criterion_main!(benches);
