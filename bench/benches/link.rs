//! How fast a link moves packets: both ends on one core, bytes in between, nothing lost.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use phitwire::link::{EndName, InputQueue, Lcb, LinkConfig};
use phitwire::time::{Duration, Time};
use phitwire_framing::crc16::PacketCrc;
use phitwire_framing::frame::LinkEnd;
use phitwire_framing::packet24::{EopStatus, Vc};
use phitwire_framing::phit24::{Phit, PhitKind};

struct Pair {
    ends: [(Lcb, InputQueue); 2],
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
            let config = LinkConfig::builder(1, end, name(local), name(peer)).build();
            let config = config.expect("the names are good");
            let input = InputQueue::new(&config);
            (Lcb::new(config, Time::ZERO), input)
        };
        let ends = [end(LinkEnd::A, "a", "b"), end(LinkEnd::B, "b", "a")];
        let mut pair = Self {
            ends,
            now: Time::ZERO,
            buf: vec![0; frame_bytes],
        };
        while !pair.ends[0].0.can_begin(Vc::Request) {
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
            while to.1.ready(Vc::Request) {
                black_box(to.1.pop(Vc::Request));
            }
            let freed = to.1.take_acks(Vc::Request);
            to.0.vc_freed(Vc::Request, freed);
        }
    }

    fn send(&mut self, packets: usize, template: &[Phit]) {
        for _ in 0..packets {
            assert!(
                self.ends[0].0.can_begin(Vc::Request),
                "credits come back with each burst"
            );
            template.iter().for_each(|phit| self.ends[0].0.push(*phit));
        }
        self.now += Duration::from_us(50);
        self.exchange();
    }
}

fn packet(phits: u32) -> Vec<Phit> {
    let mut crc = PacketCrc::new();
    let mut out = vec![Phit::new(PhitKind::Head, 5)];
    out.extend((0..phits - 2).map(|i| Phit::new(PhitKind::Body, i * 7_919)));
    out.iter().for_each(|phit| crc.update(phit.content()));
    out.push(Phit::new(PhitKind::Eop, crc.eop(EopStatus::Healthy)));
    out
}

fn link(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("link");
    for (phits, burst, frame_bytes) in [(10, 40, 1_472), (10, 400, 9_000), (4, 100, 1_472)] {
        group.throughput(Throughput::Elements(burst as u64));
        let mut pair = Pair::up(frame_bytes);
        let template = packet(phits);
        group.bench_function(
            format!("{burst} packets of {phits} phits, {frame_bytes} B"),
            |b| {
                b.iter(|| pair.send(burst, &template));
            },
        );
    }
    group.finish();
}

criterion_group!(benches, link);
criterion_main!(benches);
