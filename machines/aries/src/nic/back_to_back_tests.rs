//! Two NICs connected by a link.

use phitwire_framing::aries::flit::{Flit, Head};
use phitwire_framing::aries::frame::SetFrame;
use phitwire_framing::aries::set::Set;
use phitwire_framing::carrier::frame::LinkEnd;

use super::test_bench::*;
use super::*;
use crate::link::LcbRegisters;
use phitwire::link::testing::joined::{self, SECOND};
use phitwire::link::{LinkEvent, LinkView};
use phitwire::node::{Node, WakeReason};
use phitwire::time::Duration;

pub(super) type Joined = joined::Joined<AriesNic>;

pub(super) trait JoinedNics: Sized {
    fn with(configs: [AriesNicConfigBuilder; 2], netem: &str) -> Self;
    fn new(netem: &str) -> Self;
    fn drain(&mut self);
    /// Posts from `from` to the other NIC, stepping while there is no room. Collects completions in
    /// `ends`.
    fn post(
        &mut self,
        from: usize,
        operation: Operation<'_>,
        offset: u64,
        ends: &mut Vec<Completion>,
    );
    fn fetch(&mut self, ends: &mut Vec<Completion>);
    fn word(&mut self, nic: usize, address: u64) -> u64;
}

impl JoinedNics for Joined {
    fn with(configs: [AriesNicConfigBuilder; 2], netem: &str) -> Self {
        let made = |now| configs.map(|config| AriesNic::new(config.build().unwrap(), now));
        let mut joined = Self::of(made, netem);
        joined.until(SECOND.times(20), |joined| {
            joined.nics.iter().all(|nic| nic.lcb().is_active())
        });
        joined
    }

    fn new(netem: &str) -> Self {
        Self::with([config(0), config(1)], netem)
    }

    fn drain(&mut self) {
        self.until(SECOND.times(100), |joined| {
            let idle = |nic: &AriesNic| nic.outstanding() == 0 && nic.open_transfers() == 0;
            joined.nics.iter().all(idle)
        });
    }

    fn post(
        &mut self,
        from: usize,
        operation: Operation<'_>,
        offset: u64,
        ends: &mut Vec<Completion>,
    ) {
        let address = RemoteAddress {
            target: NODES[1 - from].into(),
            ..at(offset)
        };
        loop {
            match self.nics[from].post(self.now, offset, &post(operation, address)) {
                Ok(()) => return,
                Err(PostError::TooMany) => {
                    self.step();
                    self.fetch(ends);
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn fetch(&mut self, ends: &mut Vec<Completion>) {
        for nic in &mut self.nics {
            ends.extend(std::iter::from_fn(|| nic.poll_completion()));
        }
    }

    fn word(&mut self, nic: usize, address: u64) -> u64 {
        let mut word = [0; 8];
        self.nics[nic].memory().read(address, &mut word).unwrap();
        u64::from_le_bytes(word)
    }
}

fn patient(index: usize) -> AriesNicConfigBuilder {
    config(index).request_timeout(Duration::from_ms(500))
}

/// The packets in the data sets of captured frames.
fn packets(frames: &[Vec<u8>]) -> Vec<Vec<Flit>> {
    let mut flits = Vec::new();
    for sets in frames
        .iter()
        .filter_map(|bytes| SetFrame::parse(bytes).ok())
    {
        for set in sets.iter() {
            if let Ok(Set::Data(data)) = Set::parse(&set) {
                flits.extend(data.flits);
            }
        }
    }
    let (mut packets, mut rest) = (Vec::new(), flits.as_slice());
    while let Some((&flit, behind)) = rest.split_first() {
        let Some(head) = Head::parse(flit) else {
            rest = behind;
            continue;
        };
        let (packet, behind) = rest.split_at(head.length().into());
        packets.push(packet.to_vec());
        rest = behind;
    }
    packets
}

#[test]
fn a_transfer_goes_on_as_long_as_the_link_takes_it() {
    let mut joined = Joined::new("");
    joined.run(Duration::from_ms(1)); // Announces credits.
    let target = Target::Node(NODES[1]);
    let long = BlockTransfer {
        target,
        ..transfer(block_put(0), 0, 1 << 16)
    };
    let now = joined.now;
    joined.nics[0].transfer(now, 0, long).unwrap();
    joined.nics[0].advance(now);
    let posted = joined.nics[0].counters().puts_posted;
    // The link's backlog of 4,096 flits takes this many puts of 14 flits; a few more are queued.
    assert!(
        (4096 / 14..4096 / 14 + 2 * 64).contains(&posted),
        "{posted}"
    );
    joined.drain();
    let mut ends = Vec::new();
    joined.fetch(&mut ends);
    assert_eq!(ends[0].outcome, Outcome::Done);
}

#[test]
fn a_transfer_fills_four_fifths_of_a_long_cable() {
    let mut joined = Joined::with([patient(0), patient(1)], "delay 1ms");
    joined.run(Duration::from_ms(5)); // Announces credits.
    let (long, pieces) = (MEMORY, MEMORY / 64);
    let transfer = BlockTransfer {
        target: Target::Node(NODES[1]),
        ..transfer(block_put(0), 0, long)
    };
    let begin = joined.now;
    joined.nics[0].transfer(begin, 0, transfer).unwrap();
    joined.drain();
    // Round trips of two milliseconds with the maximum of outstanding pieces.
    let least = Duration::from_ms(2).times(pieces / u64::from(MAX_OUTSTANDING));
    let took = joined.now.since(begin);
    assert!(
        took.as_ns() * 4 <= least.as_ns() * 5,
        "{took:?}, at least {least:?}"
    );
}

#[test]
fn sixty_four_bytes_are_14_and_1_and_3_and_12_flits_on_the_wire() {
    let registers = LcbRegisters {
        scrambler_seeds: [0; 3],
        ..LcbRegisters::default()
    };
    let plain = |index: usize, end| {
        let link = link(end, 1).with_registers(registers).unwrap();
        AriesNicConfig::builder(["a", "b"][index], NODES[index], link)
            .memory_bytes(MEMORY)
            .domain(ALL, whole_memory())
    };
    let mut joined = Joined::with([plain(0, LinkEnd::A), plain(1, LinkEnd::B)], "");
    for (operation, request, response) in [(put(&[7; 64]), 14, 1), (get(64), 3, 12)] {
        joined.keep = true;
        joined.frames = Default::default();
        let mut ends = Vec::new();
        joined.post(0, operation, 640, &mut ends);
        joined.drain();
        joined.fetch(&mut ends);
        assert!(ends.len() == 1 && ends[0].outcome.failure().is_none());
        let [there, back] = [0, 1].map(|end| packets(&joined.frames[end]));
        let lengths = |packets: &[Vec<Flit>]| packets.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lengths(&there), [request], "{operation:?}");
        assert_eq!(lengths(&back), [response], "{operation:?}");
        assert_eq!(Head::parse(there[0][0]).unwrap().vc(), 0);
        assert_eq!(Head::parse(back[0][0]).unwrap().vc(), 4);
    }
    // Payload efficiency in percent.
    for flits in [14 + 1, 3 + 12] {
        assert_eq!(64 * 9 * 100 / (flits * 60), 64);
    }
}

/// Both sides concurrently add to counters of the other; every word must count its additions.
fn atomics_are_exact(netem: &str, rounds: u64) {
    // A link with 5 % loss takes several round trips to recover.
    let mut joined = Joined::with([patient(0), patient(1)], netem);
    let mut ends = Vec::new();
    for n in 0..rounds {
        for from in 0..2 {
            let add = atomic(AmoOp::Add, Width::Bits64, 1, 0);
            joined.post(from, add, n % 16 * 8, &mut ends);
        }
    }
    joined.drain();
    joined.fetch(&mut ends);
    let mut fetched = vec![Vec::new(); 32];
    for end in &ends {
        let (Outcome::Fetched(old), Ended::Request { node, offset, .. }) = (end.outcome, end.ended)
        else {
            panic!("{end:?}")
        };
        fetched[usize::from(node == NODES[1]) * 16 + offset as usize / 8].push(old);
    }
    for (index, values) in fetched.iter_mut().enumerate() {
        // Every intermediate value is seen once: no addition was lost or repeated.
        values.sort_unstable();
        let sum = joined.word(index / 16, index as u64 % 16 * 8);
        assert!(values.iter().copied().eq(0..sum), "{netem}: word {index}");
    }
    let sum: usize = fetched.iter().map(Vec::len).sum();
    assert_eq!(sum as u64, 2 * rounds);
    for nic in &joined.nics {
        let counters = nic.counters();
        assert_eq!(counters.requests_done, rounds);
        assert_eq!(counters.requests_timed_out, 0);
        assert_eq!(counters.unknown_responses, 0);
    }
    let harm = joined.harm();
    let harmed = harm.map(|c| c.lost + c.duplicated + c.corrupted + c.reordered);
    let is_harmed = harmed[0] > 0 && harmed[1] > 0;
    assert_eq!(is_harmed, !netem.is_empty(), "{harm:?}");
}

#[test]
fn atomics_are_carried_out_exactly_once_under_loss() {
    for netem in [
        "",
        "loss 1%",
        "loss 5% delay 200us 100us",
        "duplicate 3% reorder 5% delay 50us",
        "corrupt 2%",
    ] {
        atomics_are_exact(netem, 20_000);
    }
}

#[test]
fn transfers_and_messages_survive_loss() {
    let netem = "loss 2% delay 100us 50us duplicate 1% corrupt 1%";
    let mut joined = Joined::with([patient(0), patient(1)], netem);
    let data: Vec<u8> = (0..100_000_u32).map(|n| (n * 7 + n / 251) as u8).collect();
    joined.nics[0].memory_mut().write(3, &data).unwrap();
    let length = data.len() as u64;
    let receive = Receive {
        local: 600_001,
        length,
        key: KEY,
        user: 9,
    };
    assert!(joined.nics[1].post_receive(receive));
    let (offset, now) = (300_005, joined.now);
    let mut start = |channel, transfer| joined.nics[0].transfer(now, channel, transfer).unwrap();
    start(0, transfer(block_put(offset), 3, length));
    start(1, transfer(SEND, 3, length));
    let back = transfer(block_get(offset), 800_002, length);
    start(
        2,
        BlockTransfer {
            fence: true,
            ..back
        },
    );
    joined.drain();
    let mut ends = Vec::new();
    joined.fetch(&mut ends);
    assert!(ends.len() == 3 && ends.iter().all(|end| end.outcome == Outcome::Done));
    for (nic, address) in [(1, offset), (1, 600_001), (0, 800_002)] {
        let mut found = vec![0; data.len()];
        joined.nics[nic].memory().read(address, &mut found).unwrap();
        assert!(found == data, "{nic} {address}");
    }
    let Some(TargetEvent::Received { user, failure, .. }) = joined.nics[1].poll_target_event()
    else {
        panic!("the receive was used twice");
    };
    assert_eq!((user, failure), (9, None));
}

#[test]
fn a_cut_link_is_reported_by_time_outs_and_comes_back() {
    let mut joined = Joined::new("");
    let mut ends = Vec::new();
    for n in 0..100 {
        joined.post(0, put(&[1; 8]), 8 * n, &mut ends);
    }
    joined.impair("loss 100%");
    let wakeup = joined.nics[0].next_wakeup().unwrap();
    assert!(wakeup.at <= joined.now + TIMEOUT);
    joined.run(TIMEOUT.times(2));
    joined.fetch(&mut ends);
    assert_eq!(ends.len(), 100);
    let timed_out = Outcome::Failed(Failure::TimedOut);
    assert!(ends.iter().all(|end| end.outcome == timed_out));
    joined.impair("");
    joined.run(SECOND);
    // Late packets may still arrive, but complete nothing a second time.
    joined.fetch(&mut ends);
    assert_eq!(ends.len(), 100);
    joined.post(0, put(&[2; 8]), 8, &mut ends);
    joined.drain();
    joined.fetch(&mut ends);
    assert_eq!(ends[100].outcome, Outcome::Done);
    assert_eq!(joined.word(1, 8), 0x0202_0202_0202_0202);
}

#[test]
fn requests_wait_while_responses_cannot_leave_and_nothing_is_lost() {
    // Only gets, in both directions; their responses are much longer than the requests.
    let mut joined = Joined::new("");
    let mut ends = Vec::new();
    for n in 0..4_000 {
        for from in 0..2 {
            joined.post(from, get(64), n % 1000 * 64, &mut ends);
        }
    }
    joined.drain();
    joined.fetch(&mut ends);
    assert_eq!(ends.len(), 8_000);
    assert!(ends.iter().all(|end| end.outcome.failure().is_none()));
}

#[test]
fn ordered_puts_arrive_in_order() {
    for (routing, all) in [(Routing::Ordered, 10_000), (Routing::MinHash, 3_000)] {
        let mut joined = Joined::new("loss 2%");
        let mut posted = 0_u64;
        let mut last = 0;
        while posted < all {
            let word = (posted + 1).to_le_bytes();
            let ordered = Post {
                routing,
                ..post(put(&word), at(0))
            };
            match joined.nics[0].post(joined.now, 0, &ordered) {
                Ok(()) => posted += 1,
                Err(PostError::TooMany) => joined.step(),
                Err(error) => panic!("{error}"),
            }
            while joined.nics[0].poll_completion().is_some() {}
            let word = joined.word(1, 0);
            assert!(word >= last, "{routing:?}: {word} after {last}");
            last = word;
        }
        joined.drain();
        assert_eq!(joined.word(1, 0), all);
    }
}

#[test]
fn link_events_and_deadlines_are_the_nodes() {
    let mut joined = Joined::new("");
    joined.step();
    let event = joined.nics[0].poll_event();
    let Some(AriesNicEvent::Link { event }) = event else {
        panic!("{event:?}");
    };
    assert!(matches!(event, LinkEvent::Up { .. }), "{event:?}");
    joined.run(SECOND);
    let mut ends = Vec::new();
    joined.post(0, put(&[1]), 0, &mut ends);
    let wakeup = joined.nics[0].next_wakeup().unwrap();
    assert!(wakeup.at <= joined.now + TIMEOUT);
    let reasons = [WakeReason::Link, WakeReason::Request];
    assert!(reasons.contains(&wakeup.reason), "{wakeup:?}");
    let nic = &mut joined.nics[0];
    assert_eq!((nic.ports(), nic.node()), (1, NODES[0]));
    nic.handle_frame(joined.now, 1, &[0; 64]);
    assert_eq!(nic.poll_frame(joined.now, 1, &mut [0; 1472]), None);
}

/// One response covers the puts of a frame, and each put completes separately.
#[test]
fn puts_that_come_together_are_answered_together() {
    const PUTS: u64 = 400;
    for (netem, joins) in [("", true), ("", false), ("loss 5% delay 1ms 900us", true)] {
        let configs = [0, 1].map(|index| patient(index).joined_answers(joins));
        let mut joined = Joined::with(configs, netem);
        let mut ends = Vec::new();
        for n in 0..PUTS {
            joined.post(0, put(&n.to_le_bytes()), n * 8, &mut ends);
            // Some puts are rejected, and their responses are not joined.
            if n % 50 == 0 {
                joined.post(0, put(&[1]), MEMORY, &mut ends);
            }
        }
        joined.drain();
        joined.fetch(&mut ends);
        let (refused, done): (Vec<&Completion>, Vec<&Completion>) =
            ends.iter().partition(|end| end.outcome.failure().is_some());
        assert_eq!((done.len(), refused.len()), (400, 8), "{netem:?}");
        let users: std::collections::BTreeSet<u64> = done.iter().map(|end| end.user).collect();
        assert_eq!(users.len(), 400, "each user value occurs once");
        for n in 0..PUTS {
            assert_eq!(joined.word(1, n * 8), n);
        }
        let (asker, answerer) = (joined.nics[0].counters(), joined.nics[1].counters());
        assert_eq!(asker.requests_done, PUTS);
        let strange = asker.unknown_responses + asker.mismatched_responses;
        assert_eq!(strange + asker.late_responses, 0);
        let saved = answerer.responses_joined;
        assert_eq!(saved > PUTS / 2, joins, "{netem:?}: {saved}");
        assert!(joins || saved == 0);
    }
}
