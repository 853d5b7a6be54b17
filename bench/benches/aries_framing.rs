//! Speed of the Aries codecs: the CRC of a set compared with that of the `crc` crate, sets, frames
//! of sets, packets.

use crc::{Algorithm, Crc, Table};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use phitwire_framing::aries::crc20;
use phitwire_framing::aries::flit::{Flit, MAX_PACKET_FLITS, NodeId, Routing};
use phitwire_framing::aries::frame::{SetFrame, SetFrameWriter, max_sets, set_frame_len};
use phitwire_framing::aries::packet::{Command, MAX_DATA, Request, Response, Status};
use phitwire_framing::aries::set::{DATA_FLITS, DataSet, SET_BYTES, Set, Tail};
use phitwire_framing::carrier::frame::{FrameHeader, LinkEnd};
use std::hint::black_box;

const HEADER: FrameHeader = FrameHeader {
    kind: SetFrame::KIND,
    end: LinkEnd::A,
    link: 1,
    fabric: 2,
    tx_epoch: 3,
    rx_epoch: 4,
    lanes: 7,
    units: 0,
};

/// The set's polynomial for the `crc` crate. Its tables work on whole bytes and cannot process the
/// 460 bits of a set in place, so its time is a lower bound.
static ALGORITHM: Algorithm<u32> = Algorithm {
    width: 20,
    poly: crc20::POLYNOMIAL,
    init: crc20::INITIAL,
    refin: false,
    refout: false,
    xorout: 0,
    check: 0,
    residue: 0,
};

fn data_set(number: u8) -> DataSet {
    let flits = core::array::from_fn(|i| Flit::new((i as u64 + 1) * 0x0123_4567_89ab));
    let tail = Tail {
        number,
        ..Tail::default()
    };
    DataSet { flits, tail }
}

fn checks(c: &mut Criterion) {
    let mut group = c.benchmark_group("set check");
    let mut set = [0; SET_BYTES];
    data_set(5).emit(&mut set);
    group.throughput(Throughput::Bytes(SET_BYTES as u64));
    group.bench_function("own", |b| b.iter(|| crc20::is_good(black_box(&set))));
    let table_16 = Crc::<u32, Table<16>>::new(&ALGORITHM);
    group.bench_function("crc crate, 16 tables, 58 bytes", |b| {
        b.iter(|| table_16.checksum(black_box(&set[..58])));
    });
    let table_1 = Crc::<u32>::new(&ALGORITHM);
    group.bench_function("crc crate, 1 table, 58 bytes", |b| {
        b.iter(|| table_1.checksum(black_box(&set[..58])));
    });
    group.finish();
}

fn frames(c: &mut Criterion) {
    let mut group = c.benchmark_group("frame of sets");
    for bytes in [1472, 8972] {
        let count = max_sets(bytes);
        let set = data_set(5);
        let mut buf = vec![0; set_frame_len(count)];
        group.throughput(Throughput::Elements((count * DATA_FLITS) as u64));
        group.bench_function(BenchmarkId::new("emit", count), |b| {
            b.iter(|| {
                let mut writer = SetFrameWriter::new(&HEADER, black_box(&mut buf)).ok()?;
                while let Some(slot) = writer.slot() {
                    DataSet::emit_flits(black_box(&set.flits), set.tail, slot);
                }
                writer.finish()
            });
        });
        group.bench_function(BenchmarkId::new("parse", count), |b| {
            b.iter(|| match SetFrame::parse(black_box(&buf)) {
                Ok(frame) => {
                    let mut good = 0;
                    for set in frame.iter() {
                        good += usize::from(black_box(Set::parse(&set)).is_ok());
                    }
                    assert_eq!(good, count);
                }
                _ => unreachable!("the frame was written above"),
            });
        });
    }
    group.finish();
}

fn packets(c: &mut Criterion) {
    let mut group = c.benchmark_group("aries packet");
    group.throughput(Throughput::Elements(1));
    let put = Request {
        destination: NodeId::new(1, 2, 3),
        source: NodeId::new(3, 2, 1),
        routing: Routing::Adaptive0,
        packet_id: 7,
        command: Command::Put { event: false },
        mdh: 1,
        echo: 0,
        ssid: 2,
        address: 0x1238,
        key: 3,
    };
    let done = Response {
        destination: NodeId::new(3, 2, 1),
        routing: Routing::Adaptive0,
        packet_id: 7,
        echo: 0,
        status: Status::Done,
        joined: false,
    };
    let mut packet = [Flit::IDLE; MAX_PACKET_FLITS];
    let mut out = [0; MAX_DATA];
    for bytes in [8, 64] {
        let data = [9; MAX_DATA];
        let data = &data[..bytes];
        group.bench_function(BenchmarkId::new("emit put", bytes), |b| {
            b.iter(|| black_box(&put).emit(black_box(data), black_box(&mut packet)));
        });
        let flits = put.buffer_len(bytes);
        group.bench_function(BenchmarkId::new("parse put", bytes), |b| {
            b.iter(|| Request::parse(black_box(&packet[..flits]), black_box(&mut out)));
        });
    }
    group.bench_function("emit response", |b| {
        b.iter(|| black_box(&done).emit(&[], black_box(&mut packet)));
    });
    group.bench_function("parse response", |b| {
        b.iter(|| Response::parse(black_box(&packet[..1]), black_box(&mut out)));
    });
    group.finish();
}

criterion_group!(benches, checks, frames, packets);
criterion_main!(benches);
