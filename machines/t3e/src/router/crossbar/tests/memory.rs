//! Packets that wait in the router's memory while a path is replaced or a processor is missing.

use super::*;

#[test]
fn a_packet_whose_path_is_dead_is_reinjected_by_the_new_table() {
    let (mut bench, mut crossbar) = rerouting();
    crossbar.set_down(X, true);
    let words = packet(Command::Put8, tag([3, 1, 1], false));
    let behind = packet(Command::Put1, tag([1, 3, 1], false));
    give(&mut bench, &mut crossbar, (FROM_X, 0), &words);
    give(&mut bench, &mut crossbar, (FROM_X, 0), &behind);
    crossbar.run(&mut bench);
    assert_eq!(bench.sent[Y].len(), 4, "packets behind it keep moving");
    assert_eq!((bench.sent[X].len(), crossbar.kept_flits()), (0, 10));
    assert!(crossbar.is_empty(), "a kept packet is not in the crossbar");
    crossbar.table.set(5, entry([1, 2, 1], true));
    crossbar.invalidate_decisions();
    crossbar.run(&mut bench);
    let sent: Vec<u64> = bench.sent[Y].iter().skip(4).map(|(.., f)| f.word).collect();
    assert_eq!(sent[1..], words[1..]);
    let (header, _) = Header::parse(sent[0]).unwrap();
    let (came, _) = Header::parse(words[0]).unwrap();
    assert_eq!(header.tag, tag([1, 2, 1], false), "the tag is unchanged");
    assert_eq!((header.origin, header.id), (came.origin, came.id));
    assert_eq!(crossbar.kept_flits(), 0);
    let counters = crossbar.counters();
    assert_eq!((counters.kept_packets, counters.resent_packets), (1, 1));
}

#[test]
fn a_processor_s_response_yields_to_others_and_a_request_waits() {
    let (mut bench, mut crossbar) = rerouting();
    crossbar.set_down(X, true);
    crossbar.table.set(5, entry([3, 1, 1], true));
    crossbar.table.set(3, entry([1, 2, 1], true));
    let done = |to| PacketBuf::response(Command::Done, to, Name::new(7), 0, &[]);
    for to in [5, 3] {
        give(&mut bench, &mut crossbar, (PROCESSOR, 2), done(to).flits());
    }
    let get = PacketBuf::request(Command::Get1, (4, 5), &Request::default(), &[]);
    give(&mut bench, &mut crossbar, (PROCESSOR, 0), get.flits());
    crossbar.run(&mut bench);
    assert_eq!((bench.sent[Y].len(), crossbar.kept_flits()), (2, 2));
    assert_eq!(crossbar.flits(), 2, "the request has its slot here");
    crossbar.set_down(X, false);
    crossbar.run(&mut bench);
    let sent = bench.sent[X]
        .iter()
        .filter(|(.., flit)| flit.control.is_head());
    let headers: Vec<_> = sent
        .map(|(.., flit)| Header::parse(flit.word).unwrap().0)
        .collect();
    assert!(
        headers
            .iter()
            .all(|header| header.tag == tag([3, 1, 1], true))
    );
    let mut commands: Vec<_> = headers.iter().map(|header| header.command).collect();
    commands.sort_by_key(|command| command.code());
    assert_eq!(commands, [Command::Get1, Command::Done]);
}

#[test]
fn packets_in_the_memory_keep_their_order_when_the_link_returns() {
    let (mut bench, mut crossbar) = rerouting();
    crossbar.set_down(X, true);
    // Without credits the first packet waits in the memory until the second arrives.
    let ordered = |word: u64| {
        let mut words = packet(Command::Put1, tag([3, 1, 1], false));
        words[3] = word;
        words
    };
    give(&mut bench, &mut crossbar, (FROM_X, 0), &ordered(1));
    crossbar.run(&mut bench);
    bench.credits[X] = [0; VCS];
    crossbar.set_down(X, false);
    crossbar.run(&mut bench);
    give(&mut bench, &mut crossbar, (FROM_X, 0), &ordered(2));
    crossbar.run(&mut bench);
    assert_eq!(
        crossbar.counters().kept_packets,
        2,
        "the packet must not overtake"
    );
    bench.credits[X] = Depths::PAPER.all();
    crossbar.wake();
    crossbar.run(&mut bench);
    let last: Vec<u64> = bench.sent[X].iter().map(|(.., flit)| flit.word).collect();
    assert_eq!((last[3], last[7]), (1, 2));
}

/// Fills the memory with requests to processor 5, whose link is down.
fn full_memory() -> (Bench, Crossbar) {
    let (mut bench, mut crossbar) = rerouting();
    crossbar.set_down(X, true);
    let most = super::super::super::MEMORY_FLITS;
    let put8 = packet(Command::Put8, tag([3, 1, 1], false));
    for _ in 0..most / 10 {
        give(&mut bench, &mut crossbar, (FROM_X, 0), &put8);
        crossbar.run(&mut bench);
    }
    assert!(crossbar.kept_flits() > u64::from(most) - 10);
    (bench, crossbar)
}

#[test]
fn a_request_that_follows_others_into_a_full_memory_does_not_overtake_them() {
    let (mut bench, mut crossbar) = full_memory();
    let mut last = packet(Command::Put1, tag([3, 1, 1], false));
    last[3] = 77;
    bench.credits[X] = [0; VCS];
    crossbar.set_down(X, false);
    give(&mut bench, &mut crossbar, (FROM_X, 0), &last);
    // Other packets proceed, even behind such requests.
    let response = packet(Command::Done, tag([3, 1, 1], false));
    give(&mut bench, &mut crossbar, (FROM_X, 2), &response);
    crossbar.run(&mut bench);
    assert_eq!(crossbar.next_cycle(), None, "no packet moves or requests");
    bench.credits[X] = [u32::MAX; VCS];
    crossbar.wake();
    crossbar.run(&mut bench);
    let sent = &bench.sent[X];
    assert_eq!(
        sent.len() as u32,
        super::super::super::MEMORY_FLITS / 10 * 10 + 4 + 2
    );
    let requests: Vec<u64> = sent
        .iter()
        .filter(|(_, vc, _)| *vc == 0)
        .map(|(.., flit)| flit.word)
        .collect();
    assert_eq!(requests.last(), Some(&77), "the kept request comes last");
    assert_eq!((crossbar.flits(), crossbar.kept_flits()), (0, 0));
    assert_eq!(crossbar.counters().abandoned_packets, 0);
}

#[test]
fn a_request_that_follows_others_to_a_processor_that_is_back_is_not_abandoned() {
    let (mut bench, mut crossbar) = rerouting();
    crossbar.set_down(PROCESSOR, true);
    crossbar.table.set(4, entry([1, 1, 1], true));
    let words = packet(Command::Put8, tag([1, 1, 1], false));
    let most = super::super::super::MEMORY_FLITS / 2 / 10;
    for _ in 0..most {
        give(&mut bench, &mut crossbar, (FROM_X, 0), &words);
        crossbar.run(&mut bench);
    }
    bench.credits[PROCESSOR] = [0; VCS];
    crossbar.set_down(PROCESSOR, false);
    for _ in 0..3 {
        give(&mut bench, &mut crossbar, (FROM_X, 0), &words);
        crossbar.run(&mut bench);
    }
    assert_eq!(crossbar.counters().abandoned_packets, 0);
    bench.credits[PROCESSOR] = [u32::MAX; VCS];
    crossbar.wake();
    crossbar.run(&mut bench);
    assert_eq!(bench.sent[PROCESSOR].len() as u32, (most + 3) * 10);
}
