//! A read returns what a write stored: real memories against a model of them, through lossy
//! networks, without the stamps and checks of traffic runs.

use std::collections::BTreeMap;

use phitwire::packets::Outcome;
use phitwire::packets::transfer::{Kind, Transfer};
use phitwire::rng::Rng;
use phitwire::sim::NodeId;
use phitwire::time::Duration;
use phitwire_blackwidow::nic::{BlackWidowNic, Register, post_maintenance};
use phitwire_blackwidow::router::Yarc;
use phitwire_framing::yarc::maintenance::{Maintenance, Operation, RegisterStatus, RouteVector};

use crate::harness::{Network, impair_all, live, paced, up};

/// Blocks of 64 bytes, two lines of 32, that each source uses in each target's memory.
const BLOCKS: u64 = 6;

/// The expected content of every memory. Requests of one source to one block take effect in posting
/// order, and each source has its own blocks, so the model knows at once what each read returns.
#[derive(Default)]
struct Model {
    bytes: BTreeMap<(u16, u64), u8>,
    expected: BTreeMap<(NodeId, u64), Vec<u8>>,
}

impl Model {
    fn range(&self, dest: u16, address: u64, len: u8) -> Vec<u8> {
        let byte = |i| self.bytes.get(&(dest, address + i)).copied().unwrap_or(0);
        (0..u64::from(len)).map(byte).collect()
    }
}

/// Posts a request from `source`, of which few are outstanding, and returns its name.
fn ask(network: &mut Network, source: NodeId, asked: &Transfer) -> u64 {
    let now = network.fabric.now();
    let posted = network.command(source, |nic: &mut BlackWidowNic, _| nic.post(now, asked));
    posted.expect("few requests are outstanding")
}

/// Posts a random write or read from a random processor, as soon as it accepts one.
fn post(network: &mut Network, rng: &mut Rng, model: &mut Model) {
    let processors: Vec<NodeId> = network.nics().collect();
    let source = processors[rng.below(processors.len() as u64) as usize];
    let numbers = network.traffic_numbers();
    let dest = numbers[rng.below(numbers.len() as u64) as usize];
    let block = (u64::from(source.0) * BLOCKS + rng.below(BLOCKS)) * 64;
    let len = 1 + rng.below(32) as u8;
    let address = 0x4_0000 + block + rng.below(2) * 32 + rng.below(u64::from(32 - len) + 1);
    if rng.chance(1, 2) {
        let data: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
        ask(
            network,
            source,
            &Transfer::new(dest, Kind::Put, address).with(&data),
        );
        for (i, byte) in data.iter().enumerate() {
            model.bytes.insert((dest, address + i as u64), *byte);
        }
    } else {
        let get = Transfer::new(dest, Kind::Get, address);
        let name = ask(network, source, &Transfer { len, ..get });
        let expected = model.range(dest, address, len);
        model.expected.insert((source, name), expected);
    }
}

/// Checks pending completions against the model; returns their number and the mistakes.
fn check(network: &mut Network, model: &mut Model) -> (u64, Vec<String>) {
    let (mut done, mut mistakes) = (0, Vec::new());
    for node in network.nics().collect::<Vec<_>>() {
        while let Some(completion) =
            network.command(node, |nic: &mut BlackWidowNic, _| nic.poll_completion())
        {
            done += 1;
            match completion.outcome {
                Outcome::Done { len: 0, .. } => {}
                Outcome::Done { data, len } => {
                    let expected = model.expected.remove(&(node, completion.name));
                    let found = data[..usize::from(len)].to_vec();
                    if expected.as_ref() != Some(&found) {
                        mistakes.push(format!("{completion:?}: expected {expected:?}"));
                    }
                }
                other => mistakes.push(format!("{other:?}")),
            }
        }
    }
    (done, mistakes)
}

/// Posts `count` requests, `burst` at a time, and returns all mistakes.
fn exercise(network: &mut Network, model: &mut Model, count: u64, burst: u64) -> Vec<String> {
    let mut rng = Rng::new(network.fabric.seed(), 99);
    let (mut posted, mut done, mut mistakes) = (0, 0, Vec::new());
    let end = network.fabric.now() + Duration::from_ms(60_000);
    while done < count && network.fabric.now() < end {
        for _ in 0..burst.min(count - posted) {
            post(network, &mut rng, model);
            posted += 1;
        }
        network.fabric.run_for(Duration::from_us(20));
        let (more, wrong) = check(network, model);
        done += more;
        mistakes.extend(wrong);
    }
    assert_eq!(done, count, "every request is answered");
    mistakes
}

#[test]
fn reads_return_what_writes_stored() {
    for (spec, words) in [
        (
            live(8, 4),
            "delay 100us 50us loss 5% duplicate 5% corrupt 1% reorder 10%",
        ),
        (live(8, 4), ""),
        (paced(8, 4), "loss 3%"),
    ] {
        let mut network = up(&spec, 11);
        impair_all(&mut network, words);
        let mistakes = exercise(&mut network, &mut Model::default(), 4_000, 10);
        assert_eq!(mistakes, [] as [String; 0]);
    }
}

#[test]
fn a_wrong_byte_is_noticed() {
    let mut network = up(&live(4, 4), 12);
    let mut model = Model::default();
    assert_eq!(
        exercise(&mut network, &mut model, 500, 10),
        [] as [String; 0]
    );
    let ((dest, address), byte) = model.bytes.pop_first().expect("something was written");
    model.bytes.insert((dest, address), byte ^ 1);
    let source = NodeId(((address - 0x4_0000) / 64 / BLOCKS) as u32);
    let get = Transfer::new(dest, Kind::Get, address);
    let name = ask(&mut network, source, &Transfer { len: 1, ..get });
    let expected = model.range(dest, address, 1);
    model.expected.insert((source, name), expected);
    network.fabric.run_for(Duration::from_ms(10));
    assert_eq!(check(&mut network, &mut model).1.len(), 1);
}

/// The path from processor 0 through the `near` router to the `far` one, and that of the reply.
fn ways(network: &Network, near: NodeId, far: NodeId) -> [RouteVector; 2] {
    let side = (0..network.fabric.links() as u32)
        .map(|link| network.fabric.ends(phitwire::sim::LinkId(link)))
        .find(|ends| ends[0].0 == near && ends[1].0 == far)
        .expect("the routers are joined");
    let own = network
        .link_at(phitwire::net::NodeRef::Processor(0), 0)
        .map(|link| network.fabric.ends(link))
        .expect("every processor has a link");
    let to_processor = own.iter().find(|(node, _)| *node == near);
    let (_, to_processor) = to_processor.expect("it ends here");
    [
        RouteVector::new(&[side[0].1]).expect("one hop"),
        RouteVector::new(&[side[1].1, *to_processor]).expect("two hops"),
    ]
}

#[test]
fn registers_two_routers_away_are_read_and_written() {
    let mut network = up(&live(8, 4), 13);
    impair_all(&mut network, "loss 5%");
    // Processor 0's router sends the packet over its first sidelink; the far router replies along
    // the same path.
    let (near, far) = {
        let mut routers = network.routers();
        (
            routers.next().expect("two routers"),
            routers.next().expect("two routers"),
        )
    };
    let [route, back] = ways(&network, near, far);
    let ask = |register, tag, operation| Maintenance {
        route,
        hop: 0,
        register,
        tag,
        operation,
    };
    let source = network.nics().next().expect("there are processors");
    let packets = [
        ask(0x0000, 1, Operation::Read { back }),
        ask(
            0x0001,
            2,
            Operation::Write {
                back,
                value: 123_456_789,
            },
        ),
        ask(0x0001, 3, Operation::Read { back }),
        ask(0x0000, 4, Operation::Write { back, value: 1 }),
    ];
    let mut replies = Vec::new();
    for packet in packets {
        // The NIC does not queue packets for a link without room, so try again later.
        let mut tries = 0;
        while network
            .command(source, |nic: &mut BlackWidowNic, _| {
                post_maintenance(nic, 0, &packet)
            })
            .is_err()
        {
            tries += 1;
            assert!(tries < 100, "the link never has room");
            network.fabric.run_for(Duration::from_ms(1));
        }
        network.fabric.run_for(Duration::from_ms(500));
        while let Some(event) = network.fabric.poll_event() {
            if let Some(Register { reply, .. }) = event.event.downcast_ref() {
                replies.push((reply.tag, reply.operation));
            }
        }
    }
    let read = |value| Operation::ReadReply {
        status: RegisterStatus::Done,
        value,
    };
    let written = |status| Operation::WriteReply { status };
    assert_eq!(
        replies,
        [
            (1, read(0x5941_5243)),
            (2, written(RegisterStatus::Done)),
            (3, read(123_456_789)),
            (4, written(RegisterStatus::ReadOnly)),
        ]
    );
    assert_eq!(
        network.node::<Yarc>(far).get("chip.forward_progress_ns"),
        Some(123_456_789)
    );
}
