//! How fast two Aries network interfaces exchange acknowledged messages when the wire costs nothing: frames
//! are copied from one to the other in memory, on one core, with every check of link and packets on.

use std::time::{Duration as RealTime, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use phitwire::link::{AriesLinkConfig, EndName, LaneRate, LinkConfig, SetProfile};
use phitwire::nic::aries::{
    AmoOp, AriesNic, AriesNicConfig, BlockOperation, BlockTransfer, Domain, NodeId, Operands,
    Operation, Outcome, Permissions, Post, PostError, RemoteAddress, Routing, Target, Width,
};
use phitwire::node::Node;
use phitwire::time::{Duration, Time};
use phitwire_framing::frame::LinkEnd;

const SOURCE: NodeId = NodeId::new(0, 0, 0);
const TARGET: NodeId = NodeId::new(0, 0, 1);
const MEMORY: u64 = 1 << 20;
const KEY: u16 = 7;
/// Time that passes per round of both.
const ROUND: Duration = Duration::from_us(100);
const FRAME: usize = 1_472;

struct Pair {
    source: AriesNic,
    target: AriesNic,
    now: Time,
    buf: Vec<u8>,
}

fn nic(node: NodeId, end: LinkEnd) -> AriesNic {
    let name = |node: &str| EndName {
        node: node.to_owned(),
        port: 0,
    };
    let (local, peer) = match end {
        LinkEnd::A => (name("source"), name("target")),
        LinkEnd::B => (name("target"), name("source")),
    };
    let name = local.node.clone();
    let link = LinkConfig::builder(0, end, local, peer)
        .rate(LaneRate::ARIES[0])
        .build()
        .expect("a sound link");
    let link = AriesLinkConfig::new(link, SetProfile::live()).expect("a sound link");
    let domain = Domain {
        base: 0,
        length: MEMORY,
        key: KEY,
        permissions: Permissions::ALL,
    };
    let config = AriesNicConfig::builder(&name, node, link)
        .memory_bytes(MEMORY)
        .domain(0, domain)
        .build()
        .expect("a sound config");
    AriesNic::new(config, Time::ZERO)
}

fn carry(from: &mut AriesNic, to: &mut AriesNic, now: Time, buf: &mut [u8]) {
    from.advance(now);
    while let Some(len) = from.poll_frame(now, 0, buf) {
        to.handle_frame(now, 0, &buf[..len]);
    }
}

impl Pair {
    fn new() -> Self {
        let mut pair = Self {
            source: nic(SOURCE, LinkEnd::A),
            target: nic(TARGET, LinkEnd::B),
            now: Time::ZERO,
            buf: vec![0; FRAME],
        };
        while !(pair.source.lcb().is_active() && pair.target.lcb().is_active()) {
            pair.round();
        }
        pair
    }

    fn round(&mut self) {
        self.now += ROUND;
        carry(&mut self.source, &mut self.target, self.now, &mut self.buf);
        carry(&mut self.target, &mut self.source, self.now, &mut self.buf);
    }

    /// Posts `count` requests and fetches their completions.
    fn requests(&mut self, operation: Operation<'_>, count: u64) -> RealTime {
        let begin = Instant::now();
        let (mut posted, mut ended) = (0, 0);
        while ended < count {
            while posted < count {
                let post = Post {
                    at: RemoteAddress {
                        target: Target::Node(TARGET),
                        handle: 0,
                        key: KEY,
                        offset: posted * 64 % MEMORY,
                    },
                    operation,
                    routing: Routing::Adaptive0,
                };
                match self.source.post(self.now, posted, &post) {
                    Ok(()) => posted += 1,
                    Err(PostError::TooMany | PostError::CompletionQueueFull) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            self.round();
            while let Some(completion) = self.source.poll_completion() {
                assert!(!matches!(completion.outcome, Outcome::Failed(_)));
                ended += 1;
            }
        }
        begin.elapsed()
    }

    /// Puts `count` blocks of 64 KiB.
    fn blocks(&mut self, count: u64) -> RealTime {
        let transfer = BlockTransfer {
            target: Target::Node(TARGET),
            operation: BlockOperation::Put {
                handle: 0,
                key: KEY,
                offset: 0,
            },
            local: 0,
            length: 1 << 16,
            routing: Routing::Adaptive0,
            fence: false,
            event: None,
            user: 0,
        };
        let begin = Instant::now();
        let (mut queued, mut ended) = (0, 0);
        while ended < count {
            while queued < count && self.source.transfer(self.now, 0, transfer).is_ok() {
                queued += 1;
            }
            self.round();
            while let Some(completion) = self.source.poll_completion() {
                assert_eq!(completion.outcome, Outcome::Done);
                ended += 1;
            }
        }
        begin.elapsed()
    }
}

fn messages(c: &mut Criterion) {
    let mut group = c.benchmark_group("aries_nic");
    group.throughput(Throughput::Elements(1));
    let (event, into, flag) = (false, None, None);
    let add = Operation::Atomic {
        op: AmoOp::Add,
        width: Width::Bits64,
        operands: Operands {
            first: 1,
            second: 0,
        },
        fetch: true,
        into,
    };
    let (put_8, put_64) = ([1; 8], [1; 64]);
    let put = |data| Operation::Put { data, event };
    let len = 8;
    for (name, operation) in [
        ("put-8B", put(&put_8)),
        ("put-64B", put(&put_64)),
        ("get-8B", Operation::Get { len, into, flag }),
        ("fetch-add", add),
    ] {
        let mut pair = Pair::new();
        group.bench_function(name, |b| {
            b.iter_custom(|count| pair.requests(operation, count))
        });
    }
    group.throughput(Throughput::Bytes(1 << 16));
    let mut pair = Pair::new();
    group.bench_function("block-put-64KiB", |b| {
        b.iter_custom(|count| pair.blocks(count))
    });
    group.finish();
}

criterion_group!(benches, messages);
criterion_main!(benches);
