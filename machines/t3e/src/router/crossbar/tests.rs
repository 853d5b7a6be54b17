//! Tests of a crossbar whose ports are simple queues.

mod memory;

mod whole;

use std::collections::VecDeque;

use phitwire_framing::t3e::flit::Control;
use phitwire_framing::t3e::header::{Command, Name};
use phitwire_framing::t3e::packet::{PacketBuf, Request};
use phitwire_framing::t3e::tag::{Coordinates, Tag};

use super::*;
use crate::link::{Depths, FlitBuffer};
use crate::route::Entry;

/// Ports with buffers and credits, whose links accept every flit.
struct Bench {
    inputs: Vec<FlitBuffer>,
    credits: Vec<[u32; VCS]>,
    /// Flits sent by each port, with their cycle.
    sent: Vec<VecDeque<(u64, usize, Flit)>>,
    now: u64,
}

impl Default for Bench {
    fn default() -> Self {
        Self {
            inputs: vec![FlitBuffer::new(Depths::PAPER); PORTS],
            credits: vec![Depths::PAPER.all(); PORTS],
            sent: vec![VecDeque::new(); PORTS],
            now: 0,
        }
    }
}

impl FlitPorts for Bench {
    fn begin_cycle(&mut self, cycle: u64) {
        self.now = cycle;
    }
    fn credits(&self, port: usize, vc: usize) -> u32 {
        self.credits[port][vc]
    }
    fn push(&mut self, port: usize, vc: usize, flit: Flit) {
        self.credits[port][vc] -= 1;
        self.sent[port].push_back((self.now, vc, flit));
    }
    fn front(&self, port: usize, vc: usize) -> u64 {
        self.inputs[port].front(vc)
    }
    fn pop(&mut self, port: usize, vc: usize) -> u64 {
        self.inputs[port].pop(vc).0
    }
}

const X: usize = Direction::PlusX as usize;
const Y: usize = Direction::PlusY as usize;
/// Input port of packets travelling +X.
const FROM_X: usize = Direction::MinusX as usize;
const FROM_Y: usize = Direction::MinusY as usize;
const Z: usize = Direction::PlusZ as usize;

fn tag(to: [u8; 3], adaptive: bool) -> Tag {
    Tag {
        to: Coordinates(to),
        adaptive,
        ..Tag::default()
    }
}

/// A router at (1, 1, 1).
fn crossbar() -> Crossbar {
    let registers = RouteRegisters {
        coordinates: Coordinates([1, 1, 1]),
        plus_z: 2,
        ..RouteRegisters::default()
    };
    let mut table = LookUpTable::new(8);
    let entry = Entry {
        tag: tag([3, 1, 1], true),
        initial: None,
    };
    table.set(5, Some(entry));
    Crossbar::new(registers, table, 2)
}

/// A packet in the form that routers handle.
fn packet(command: Command, tag: Tag) -> Vec<u64> {
    let data = vec![7; command.words()];
    let whole = match command.is_response() {
        true => PacketBuf::response(command, 0, Name::new(9), 8, &data),
        false => PacketBuf::request(command, (2, 5), &Request::default(), &data),
    };
    let mut words = whole.flits().to_vec();
    let (mut header, _) = Header::parse(words[0]).unwrap();
    header.tag = tag;
    words[0] = header.emit();
    words
}

/// Feeds a packet into `vc` of `port`, one flit per cycle from now on.
fn give(bench: &mut Bench, crossbar: &mut Crossbar, (port, vc): (usize, usize), words: &[u64]) {
    for (at, word) in words.iter().enumerate() {
        assert!(
            !bench.inputs[port]
                .receive(vc, Flit::data(*word, vc, at == 0))
                .1
        );
    }
    crossbar.enqueue(port, vc, words.len() as u32);
}

fn cycles(bench: &Bench, port: usize) -> Vec<u64> {
    bench.sent[port].iter().map(|(cycle, ..)| *cycle).collect()
}

#[test]
fn straight_through_and_turns_take_their_times() {
    for (to, out, wait) in [
        ([3, 1, 1], X, 0),
        ([1, 3, 1], Y, 3),
        ([1, 1, 1], PROCESSOR, 3),
    ] {
        let (mut bench, mut crossbar) = (Bench::default(), crossbar());
        let words = packet(Command::Put1, tag(to, false));
        crossbar.rest_until(10);
        give(&mut bench, &mut crossbar, (FROM_X, 0), &words);
        crossbar.run(&mut bench);
        let due: Vec<u64> = (10 + wait..14 + wait).collect();
        assert_eq!(cycles(&bench, out), due, "to {to:?}");
        let sent: Vec<_> = bench.sent[out]
            .iter()
            .map(|(_, _, flit)| flit.word)
            .collect();
        assert_eq!(sent, words);
        assert!(bench.sent[out][0].2.control.is_head());
        assert!(!bench.sent[out][1].2.control.is_head());
        assert_eq!(crossbar.counters().straight_packets, u64::from(wait == 0));
        assert_eq!((crossbar.flits(), crossbar.next_cycle()), (0, None));
    }
}

/// "If packets are queued up in a given interface, the arbiter tells the other interfaces that they
/// could get some traffic from the crossbar so they should stop using the short-circuit path."
#[test]
fn the_short_circuit_is_closed_while_another_packet_waits_for_its_output() {
    for waits in [false, true] {
        let (mut bench, mut crossbar) = (Bench::default(), crossbar());
        // Requests have no credits at the next router; the straight packet is a response.
        bench.credits[X][vc::REQUEST] = 0;
        let turning = packet(Command::Put1, tag([3, 1, 1], false));
        if waits {
            give(&mut bench, &mut crossbar, (FROM_Y, vc::REQUEST), &turning);
            crossbar.run(&mut bench);
        }
        crossbar.rest_until(40);
        let straight = packet(Command::Done, tag([3, 1, 1], false));
        give(&mut bench, &mut crossbar, (FROM_X, vc::RESPONSE), &straight);
        crossbar.run(&mut bench);
        let late = if waits { 3 } else { 0 };
        assert_eq!(cycles(&bench, X), [40 + late, 41 + late]);
        let through = crossbar.counters().straight_packets;
        assert_eq!(through, u64::from(!waits));
    }
}

#[test]
fn the_look_up_table_steers_what_a_processor_sends() {
    let (mut bench, mut crossbar) = (Bench::default(), crossbar());
    let get = PacketBuf::request(Command::Get1, (0, 5), &Request::default(), &[]);
    give(&mut bench, &mut crossbar, (PROCESSOR, 0), get.flits());
    // Processor 6 does not exist.
    let lost = PacketBuf::request(Command::Get1, (0, 6), &Request::default(), &[]);
    give(&mut bench, &mut crossbar, (PROCESSOR, 0), lost.flits());
    crossbar.run(&mut bench);
    assert_eq!(cycles(&bench, X), [7, 8]);
    let (header, _) = Header::parse(bench.sent[X][0].2.word).unwrap();
    assert_eq!((header.tag, header.origin), (tag([3, 1, 1], true), 2));
    assert_eq!(bench.sent[X][1].2.word, get.flits()[1]);
    let counters = crossbar.counters();
    assert_eq!(
        (counters.unroutable_packets, counters.discarded_flits),
        (1, 2)
    );
    assert_eq!(crossbar.flits(), 0);
}

#[test]
fn a_packet_adapts_where_it_wins_both_and_only_with_room_for_all_of_it() {
    let there = tag([3, 3, 1], true);
    let (mut bench, mut one) = (Bench::default(), crossbar());
    give(
        &mut bench,
        &mut one,
        (FROM_X, 0),
        &packet(Command::Put8, there),
    );
    one.run(&mut bench);
    // +X is both the lowest direction and straight ahead, so the packet bypasses the crossbar.
    assert_eq!(cycles(&bench, X).len(), 10);
    let (mut bench, mut two) = (Bench::default(), crossbar());
    give(
        &mut bench,
        &mut two,
        (FROM_Y, 4),
        &packet(Command::Put8, there),
    );
    // For a packet from -Y, +Y is straight ahead and adaptive.
    two.run(&mut bench);
    assert_eq!((cycles(&bench, X).len(), cycles(&bench, Y).len()), (0, 10));
    assert!(bench.sent[Y].iter().all(|(_, vc, _)| *vc == vc::ADAPTIVE));
    let (mut bench, mut three) = (Bench::default(), crossbar());
    bench.credits[Y][vc::ADAPTIVE] = 9;
    give(
        &mut bench,
        &mut three,
        (FROM_Y, 4),
        &packet(Command::Put8, there),
    );
    three.run(&mut bench);
    assert_eq!((cycles(&bench, X).len(), cycles(&bench, Y).len()), (10, 0));
}

/// "The algorithm ... guarantees forward progress to all packets" (T3E sec. 7). A header that has
/// won the adaptive channel of wires that are never free must not block its input's path for the
/// packet that has won the deterministic channel.
#[test]
fn a_header_that_waits_for_the_wires_of_the_adaptive_channel_stops_nobody() {
    let (mut bench, mut crossbar) = rerouting();
    bench.credits[Y] = [u32::MAX; VCS];
    bench.credits[X][0] = 5;
    // Half a packet holds the deterministic channel of +X.
    let straight = packet(Command::Put8, tag([3, 1, 1], false));
    give(&mut bench, &mut crossbar, (Z, 0), &straight);
    crossbar.run(&mut bench);
    assert_eq!(bench.sent[X].len(), 5);
    // Two streams use every clock of +Y.
    crossbar.table.set(5, entry([1, 3, 1], false));
    let put = PacketBuf::request(Command::Put8, (2, 5), &Request::default(), &[7; 8]);
    let stream = packet(Command::Put8, tag([1, 3, 1], false));
    for _ in 0..100 {
        give(&mut bench, &mut crossbar, (PROCESSOR, 0), put.flits());
        give(&mut bench, &mut crossbar, (FROM_Y, 0), &stream);
    }
    crossbar.run_until(100, &mut bench);
    // The first header requests +X and loses; the second requests both.
    give(&mut bench, &mut crossbar, (FROM_X, 0), &straight);
    crossbar.run_until(120, &mut bench);
    let adapts = packet(Command::Put8, tag([3, 3, 1], true));
    give(&mut bench, &mut crossbar, (FROM_X, vc::ADAPTIVE), &adapts);
    crossbar.run_until(200, &mut bench);
    bench.credits[X] = [u32::MAX; VCS];
    crossbar.wake();
    crossbar.run_until(300, &mut bench);
    assert_eq!(bench.sent[X].len(), 30, "all three went over +X");
    assert!(bench.sent[Y].iter().all(|(_, vc, _)| *vc == 0));
    let busy = cycles(&bench, Y);
    let clocks = 1 + busy[busy.len() - 1] - busy[0];
    assert_eq!(busy.len() as u64, clocks, "the wires were never idle");
}

#[test]
fn two_packets_for_one_output_do_not_mix_and_none_waits_for_ever() {
    let (mut bench, mut crossbar) = (Bench::default(), crossbar());
    bench.credits[PROCESSOR] = [1_000; VCS];
    let words = packet(Command::Put8, tag([1, 1, 1], false));
    for port in 0..6 {
        for vc in [0, 1] {
            give(&mut bench, &mut crossbar, (port, vc), &words);
        }
    }
    crossbar.run(&mut bench);
    assert_eq!(bench.sent[PROCESSOR].len(), 12 * 10);
    for ten in bench.sent[PROCESSOR].make_contiguous().chunks(10) {
        let got: Vec<_> = ten.iter().map(|(_, _, flit)| flit.word).collect();
        assert_eq!(got, words);
    }
    let (first, last) = (cycles(&bench, PROCESSOR)[0], cycles(&bench, PROCESSOR)[119]);
    assert!(
        last - first < 130,
        "{first} to {last}: the output is hardly ever idle"
    );
}

#[test]
fn a_packet_waits_for_credits_and_goes_on_where_it_stood() {
    let (mut bench, mut crossbar) = (Bench::default(), crossbar());
    bench.credits[X][0] = 3;
    let words = packet(Command::Put8, tag([3, 1, 1], false));
    give(&mut bench, &mut crossbar, (FROM_X, 0), &words);
    crossbar.run(&mut bench);
    assert_eq!((bench.sent[X].len(), crossbar.next_cycle()), (3, None));
    // A second packet behind it, on another channel and to another output, passes it.
    give(
        &mut bench,
        &mut crossbar,
        (FROM_X, 2),
        &packet(Command::Done, tag([1, 2, 1], false)),
    );
    crossbar.run(&mut bench);
    assert_eq!((bench.sent[X].len(), bench.sent[Y].len()), (3, 2));
    bench.credits[X][0] = 12;
    crossbar.wake();
    crossbar.run(&mut bench);
    let sent: Vec<_> = bench.sent[X].iter().map(|(_, _, flit)| flit.word).collect();
    assert_eq!(sent, words);
    assert_eq!(crossbar.counters().packets, 2);
}

#[test]
fn flits_not_taken_by_a_dead_link_are_discarded() {
    let (mut bench, mut crossbar) = (Bench::default(), crossbar());
    bench.credits[X][0] = 3;
    let words = packet(Command::Put8, tag([3, 1, 1], false));
    give(&mut bench, &mut crossbar, (FROM_X, 0), &words);
    crossbar.run(&mut bench);
    bench.credits[X] = [0; VCS];
    crossbar.cut(X);
    crossbar.run(&mut bench);
    let counters = crossbar.counters();
    assert_eq!((counters.cut_packets, counters.discarded_flits), (1, 7));
    assert_eq!(crossbar.flits(), 0);
    bench.credits[X] = [12; VCS];
    crossbar.wake();
    give(&mut bench, &mut crossbar, (FROM_X, 0), &words);
    crossbar.run(&mut bench);
    assert_eq!(bench.sent[X].len(), 13);
    assert_eq!(bench.sent[X][3].2.control, Control::data(0, true));
}

/// Positions of the processors that the tests use.
fn names() -> Arc<Names> {
    let coordinates = |number| match number {
        4 => Coordinates([1, 1, 1]),
        5 => Coordinates([3, 1, 1]),
        other => Coordinates([9, other, 9]),
    };
    Arc::new(Names::new((0..6).map(|number| (coordinates(number), None))))
}

fn rerouting() -> (Bench, Crossbar) {
    let mut crossbar = crossbar();
    crossbar.rename(names());
    let bench = Bench {
        inputs: vec![FlitBuffer::new(Depths::LIVE); PORTS],
        credits: vec![Depths::LIVE.all(); PORTS],
        ..Bench::default()
    };
    (bench, crossbar)
}

/// An entry for processor 5, by +Y, +Z or another output.
fn entry(to: [u8; 3], adaptive: bool) -> Option<Entry> {
    let tag = tag(to, adaptive);
    Some(Entry { tag, initial: None })
}

#[test]
fn adaptive_packets_are_diverted_and_ordered_ones_wait() {
    let (mut bench, mut crossbar) = rerouting();
    crossbar.set_down(X, true);
    let mut names: Vec<_> = names().pairs().collect();
    names.push((Coordinates([3, 3, 1]).bits(), 3));
    crossbar.table.set(3, entry([3, 3, 1], true));
    crossbar.rename(Arc::new(Names::from_pairs(names)));
    for (vc, adaptive) in [(4, true), (0, false)] {
        let words = packet(Command::Get8, tag([3, 3, 1], adaptive));
        give(&mut bench, &mut crossbar, (FROM_Y, vc), &words);
    }
    crossbar.run(&mut bench);
    assert_eq!((bench.sent[Y].len(), crossbar.kept_flits()), (2, 2));
}

#[test]
fn a_missing_processor_blocks_no_other() {
    let (mut bench, mut crossbar) = rerouting();
    crossbar.set_down(PROCESSOR, true);
    crossbar.table.set(4, entry([1, 1, 1], true));
    let most = super::super::MEMORY_FLITS / 2 / 10;
    for _ in 0..most + 3 {
        let words = packet(Command::Put8, tag([1, 1, 1], false));
        give(&mut bench, &mut crossbar, (FROM_X, 0), &words);
        crossbar.run(&mut bench);
    }
    let words = packet(Command::Put8, tag([3, 1, 1], false));
    give(&mut bench, &mut crossbar, (FROM_X, 0), &words);
    crossbar.run(&mut bench);
    assert_eq!(bench.sent[X].len(), 10);
    let counters = crossbar.counters();
    assert_eq!(counters.kept_packets, u64::from(most));
    assert_eq!(counters.abandoned_packets, 3);
    // A spare node at (1, 2, 1) takes over the number of processor 5.
    crossbar.table.set(4, entry([1, 2, 1], true));
    let before = names();
    let pairs = before.pairs().filter(|(_, number)| *number != 4);
    let spare = (Coordinates([1, 2, 1]).bits(), 4);
    crossbar.rename(Arc::new(Names::from_pairs(
        pairs.chain([spare]).collect::<Vec<_>>(),
    )));
    crossbar.invalidate_decisions();
    bench.credits[Y] = [u32::MAX; VCS];
    crossbar.run(&mut bench);
    assert_eq!(bench.sent[Y].len() as u32, most * 10);
    // A response to the previous processor has no recipient.
    let words = packet(Command::Done, tag([1, 1, 1], false));
    give(&mut bench, &mut crossbar, (FROM_X, 2), &words);
    crossbar.run(&mut bench);
    assert_eq!(crossbar.counters().unroutable_packets, 1);
    assert!(crossbar.is_empty() && crossbar.kept_flits() == 0);
}

#[test]
fn a_packet_to_a_missing_processor_is_discarded_and_counted() {
    let (mut bench, mut crossbar) = rerouting();
    // Four nodes along each dimension.
    crossbar.registers.absent = [!0xf; 3];
    for to in [[9, 1, 1], [1, 17, 1], [1, 1, 4]] {
        let words = packet(Command::Put8, tag(to, true));
        give(&mut bench, &mut crossbar, (FROM_X, 0), &words);
    }
    // A packet for a missing ordinate does not adapt into that line.
    let words = packet(Command::Put1, tag([2, 1, 9], true));
    give(&mut bench, &mut crossbar, (FROM_X, 4), &words);
    crossbar.run(&mut bench);
    assert_eq!(bench.sent[X].len(), 4);
    assert!((0..PORTS).all(|port| port == X || bench.sent[port].is_empty()));
    assert!(crossbar.is_empty() && crossbar.kept_flits() == 0);
    let counters = crossbar.counters();
    let found = (counters.misdirected_packets, counters.discarded_flits);
    assert_eq!(found, (3, 30));
}

#[test]
fn nothing_comes_or_goes_by_a_port_that_is_cut_off() {
    let (mut bench, mut crossbar) = rerouting();
    crossbar.set_cut_off(1 << X | 1 << FROM_Y);
    let words = packet(Command::Put8, tag([3, 1, 1], true));
    give(&mut bench, &mut crossbar, (FROM_X, 4), &words);
    let words = packet(Command::Put1, tag([1, 3, 1], true));
    give(&mut bench, &mut crossbar, (FROM_Y, 0), &words);
    crossbar.run(&mut bench);
    assert!(bench.sent.iter().all(VecDeque::is_empty));
    assert_eq!(crossbar.kept_flits(), 10);
    assert_eq!(crossbar.counters().cut_off_packets, 1);
    crossbar.set_cut_off(0);
    crossbar.run(&mut bench);
    assert_eq!(bench.sent[X].len(), 10);
}

#[test]
fn a_quiesced_router_ends_what_it_has_begun_and_begins_nothing() {
    let (mut bench, mut crossbar) = rerouting();
    bench.credits[X][0] = 3;
    crossbar.table.set(5, entry([3, 1, 1], false));
    let whole = PacketBuf::request(Command::Put8, (2, 5), &Request::default(), &[7; 8]);
    for _ in 0..2 {
        give(&mut bench, &mut crossbar, (PROCESSOR, 0), whole.flits());
    }
    crossbar.run(&mut bench);
    crossbar.quiesce(true);
    assert!(!crossbar.is_empty(), "one packet is under way");
    bench.credits[X] = [40; VCS];
    crossbar.wake();
    crossbar.run(&mut bench);
    assert_eq!(bench.sent[X].len(), 10);
    assert!(crossbar.is_empty());
    // When released, the waiting packet follows the new table.
    crossbar.table.set(5, entry([1, 3, 1], false));
    crossbar.quiesce(false);
    crossbar.run(&mut bench);
    assert_eq!((bench.sent[X].len(), bench.sent[Y].len()), (10, 10));
}
