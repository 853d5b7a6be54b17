//! Speed of a link that moves packets: both ends on one core, frames copied as bytes, no loss.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use joined::{Joined, links};
use phitwire::link::NodeLink;
use phitwire::time::{Duration, Time};
use phitwire_blackwidow::link::{Lcb, PhitLinkConfig, PhitProfile, STANDARD};
use phitwire_framing::yarc::crc16::PacketCrc;
use phitwire_framing::yarc::packet::{EopStatus, Vc};
use phitwire_framing::yarc::phit::{Phit, PhitKind};

mod joined;

struct End(Lcb);

impl joined::End for End {
    fn is_up(&self) -> bool {
        self.0.wire().can_begin(Vc::Request)
    }
    fn poll_frame(&mut self, now: Time, buf: &mut [u8]) -> Option<usize> {
        self.0.poll_frame(now, buf)
    }
    fn handle_frame(&mut self, now: Time, bytes: &[u8]) {
        self.0.handle_frame(now, bytes);
    }
    fn take(&mut self) {
        while self.0.input().ready(Vc::Request) {
            black_box(self.0.input_mut().pop(Vc::Request));
        }
        self.0.give_back();
    }
}

fn pair(frame_bytes: usize) -> Joined<End> {
    let end = |link| {
        let config = PhitLinkConfig::new(link, PhitProfile::live(), 19).expect("a ready profile");
        End(Lcb::new(config, Time::ZERO))
    };
    Joined::up(links(STANDARD).map(end), frame_bytes)
}

fn send(pair: &mut Joined<End>, packets: usize, template: &[Phit]) {
    let lcb = &mut pair.ends[0].0;
    for _ in 0..packets {
        let ready = lcb.wire().can_begin(Vc::Request);
        assert!(ready, "credits come back with each burst");
        template.iter().for_each(|phit| lcb.push(*phit));
    }
    pair.round(Duration::from_us(50));
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
        let mut pair = pair(frame_bytes);
        let template = packet(phits);
        group.bench_function(
            format!("{burst} packets of {phits} phits, {frame_bytes} B"),
            |b| {
                b.iter(|| send(&mut pair, burst, &template));
            },
        );
    }
    group.finish();
}

criterion_group!(benches, link);
criterion_main!(benches);
