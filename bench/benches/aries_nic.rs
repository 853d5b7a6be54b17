//! How fast two Aries network interfaces exchange acknowledged messages when the wire costs
//! nothing: frames are copied from one to the other in memory, on one core, with every check of
//! link and packets on.

use std::time::{Duration as RealTime, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use joined::{Joined, links};
use phitwire::link::EndStatus;
use phitwire::machine::aries::link::STANDARD;
use phitwire::machine::aries::link::{AriesLinkConfig, SetProfile};
use phitwire::machine::aries::nic::{
    AmoOp, AriesNic, AriesNicConfig, BlockOperation, BlockTransfer, Domain, NodeId, Operands,
    Operation, Outcome, Permissions, Post, PostError, RemoteAddress, Routing, Target, Width,
};
use phitwire::node::Node;
use phitwire::time::{Duration, Time};

mod joined;

const SOURCE: NodeId = NodeId::new(0, 0, 0);
const TARGET: NodeId = NodeId::new(0, 0, 1);
const MEMORY: u64 = 1 << 20;
const KEY: u16 = 7;
/// Time that passes per round of both.
const ROUND: Duration = Duration::from_us(100);
const FRAME: usize = 1_472;

struct Pair(Joined<AriesNic>);

impl joined::End for AriesNic {
    fn is_up(&self) -> bool {
        self.lcb().is_active()
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
    fn new() -> Self {
        let domain = Domain {
            base: 0,
            length: MEMORY,
            key: KEY,
            permissions: Permissions::ALL,
        };
        let mut nodes = [SOURCE, TARGET].into_iter();
        let nics = links(STANDARD).map(|link| {
            let name = link.local().node.clone();
            let link = AriesLinkConfig::new(link, SetProfile::live()).expect("a sound link");
            let node = nodes.next().expect("two of them");
            let config = AriesNicConfig::builder(&name, node, link).memory_bytes(MEMORY);
            let config = config.domain(0, domain).build().expect("a sound config");
            AriesNic::new(config, Time::ZERO)
        });
        Self(Joined::up(nics, FRAME))
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
                match self.0.ends[0].post(self.0.now, posted, &post) {
                    Ok(()) => posted += 1,
                    Err(PostError::TooMany | PostError::CompletionQueueFull) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            self.0.round(ROUND);
            while let Some(completion) = self.0.ends[0].poll_completion() {
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
            while queued < count && self.0.ends[0].transfer(self.0.now, 0, transfer).is_ok() {
                queued += 1;
            }
            self.0.round(ROUND);
            while let Some(completion) = self.0.ends[0].poll_completion() {
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
