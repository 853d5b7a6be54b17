//! Speed of the codecs that process every phit: frames, packet checks, memory packets.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use phitwire_framing::carrier::frame::{FrameHeader, LinkEnd};
use phitwire_framing::carrier::number::PacketNumber;
use phitwire_framing::yarc::control::ControlWord;
use phitwire_framing::yarc::crc16::PacketCrc;
use phitwire_framing::yarc::frame::{DataFrame, emit_data, frame_len, max_phits};
use phitwire_framing::yarc::memory::{
    Request, Response, Status, decode_request, decode_response, encode_request, encode_response,
};
use phitwire_framing::yarc::packet::{PacketBuf, check_packet};
use phitwire_framing::yarc::phit::{Phit, PhitKind};
use std::hint::black_box;

const HEADER: FrameHeader = FrameHeader {
    kind: DataFrame::KIND,
    end: LinkEnd::A,
    link: 1,
    fabric: 2,
    tx_epoch: 3,
    rx_epoch: 4,
    lanes: 7,
    units: 0,
};

/// Payload bytes of a datagram at MTU 1,500 and 9,000.
const FRAME_BYTES: [usize; 2] = [1472, 8972];

fn phits(count: usize) -> Vec<Phit> {
    (0..count as u32)
        .map(|i| Phit::new(PhitKind::from_code(i as u8), i * 7919))
        .collect()
}

fn frames(c: &mut Criterion) {
    let mut group = c.benchmark_group("frame");
    let word = ControlWord {
        seq: PacketNumber::new(5),
        ..Default::default()
    };
    for bytes in FRAME_BYTES {
        let count = max_phits(bytes);
        let phits = phits(count);
        // The rings of senders usually wrap in the middle of a group.
        let (head, tail) = phits.split_at(count / 3 + 1);
        let mut buf = vec![0; frame_len(count)];
        let mut out = vec![Phit::IDLE; count];
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(BenchmarkId::new("emit", count), |b| {
            b.iter(|| {
                emit_data(
                    &HEADER,
                    black_box(&word),
                    &[head, tail],
                    black_box(&mut buf),
                )
            });
        });
        group.bench_function(BenchmarkId::new("parse and decode", count), |b| {
            b.iter(|| match DataFrame::parse(black_box(&buf)) {
                Ok(frame) => frame.decode(black_box(&mut out)),
                _ => unreachable!("the frame was written above"),
            });
        });
        group.bench_function(BenchmarkId::new("control word", count), |b| {
            b.iter(|| match DataFrame::parse(black_box(&buf)) {
                Ok(frame) => frame.control_word(),
                _ => unreachable!("the frame was written above"),
            });
        });
    }
    group.finish();
}

fn checks(c: &mut Criterion) {
    let mut group = c.benchmark_group("packet check");
    let phits = phits(18);
    group.throughput(Throughput::Elements(18));
    group.bench_function("phit by phit", |b| {
        b.iter(|| {
            let mut crc = PacketCrc::new();
            black_box(&phits)
                .iter()
                .for_each(|phit| crc.update(phit.content()));
            crc
        });
    });
    group.bench_function("all at once", |b| {
        b.iter(|| {
            let mut crc = PacketCrc::new();
            crc.update_all(black_box(&phits));
            crc
        });
    });
    group.finish();
}

fn packets(c: &mut Criterion) {
    let mut group = c.benchmark_group("memory packet");
    group.throughput(Throughput::Elements(1));
    let mut out = PacketBuf::new();
    let write = Request::Write {
        address: 0x1238,
        data: [3; 32],
        len: 8,
    };
    let done = Response::WriteDone {
        tid: 7,
        status: Status::Done,
    };
    group.bench_function("encode write of 8 bytes", |b| {
        b.iter(|| encode_request(1, 2, 3, black_box(&write), black_box(&mut out)));
    });
    encode_request(1, 2, 3, &write, &mut out).expect("the fields fit");
    group.bench_function("decode write of 8 bytes", |b| {
        b.iter(|| decode_request(black_box(out.as_slice())));
    });
    group.bench_function("check write of 8 bytes", |b| {
        b.iter(|| check_packet(black_box(out.as_slice())));
    });
    group.bench_function("encode acknowledgement", |b| {
        b.iter(|| encode_response(1, black_box(&done), black_box(&mut out)));
    });
    encode_response(1, &done, &mut out).expect("the fields fit");
    group.bench_function("decode acknowledgement", |b| {
        b.iter(|| decode_response(black_box(out.as_slice())));
    });
    group.finish();
}

criterion_group!(benches, frames, checks, packets);
criterion_main!(benches);
