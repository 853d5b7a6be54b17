use super::*;
use phitwire::rng::Rng;
use phitwire_framing::aries::flit::{NodeId, Routing};
use std::collections::VecDeque;

const WRITTEN: Arrived = Arrived {
    written: 1,
    packets: 0,
    refused: 0,
    malformed: 0,
};
const REFUSED: Arrived = Arrived {
    written: 0,
    packets: 0,
    refused: 1,
    malformed: 0,
};
const MALFORMED: Arrived = Arrived {
    written: 0,
    packets: 0,
    refused: 0,
    malformed: 1,
};

impl Arrived {
    fn plus(self, other: Self) -> Self {
        Self {
            written: self.written + other.written,
            packets: self.packets + other.packets,
            refused: self.refused + other.refused,
            malformed: self.malformed + other.malformed,
        }
    }

    fn times(self, times: u32) -> Self {
        (0..times).fold(Self::default(), |sum, _| sum.plus(self))
    }
}

fn packet(vc: u8, flits: u8, tag: u64) -> Vec<Flit> {
    let to = NodeId::new(1, 2, 3);
    let head = Head::new(vc >= 4, flits, to, Routing::Adaptive0, tag as u16, 5).with_vc(vc);
    let rest = (1..flits).map(|i| Flit::new(tag << 8 | u64::from(i)));
    core::iter::once(head.flit()).chain(rest).collect()
}

#[test]
fn every_channel_is_a_queue_of_its_own_whatever_the_order() {
    let mut rng = Rng::new(3, 0);
    let mut input = AriesInput::with_depth(300);
    let mut model: [VecDeque<Flit>; VCS] = Default::default();
    for tag in 0..20_000 {
        let (vc, flits) = (rng.below(8) as u8, 1 + rng.below(14) as u8);
        let used: usize = model.iter().map(VecDeque::len).sum();
        if used + usize::from(flits) <= 300 {
            let packet = packet(vc, flits, tag);
            let whole = Arrived {
                packets: 1,
                ..WRITTEN.times(flits.into())
            };
            assert_eq!(input.write(&packet), whole);
            model[usize::from(vc)].extend(packet);
        }
        for _ in 0..rng.below(16) {
            let vc = rng.below(8) as usize;
            assert_eq!(input.front(vc), model[vc].front().copied());
            assert_eq!(input.pop(vc), model[vc].pop_front());
            assert_eq!(input.len(vc) as usize, model[vc].len());
            assert_eq!(input.pending_vcs() >> vc & 1 != 0, !model[vc].is_empty());
        }
    }
    let mut popped = 0;
    for vc in 0..VCS {
        popped += input.take_acks(vc);
        while input.pop(vc).is_some() {}
    }
    assert!(popped > 10_000 && input.is_empty());
    assert!(input.blocks.len() <= input.free_blocks as usize);
    assert_eq!(
        input.free_blocks as usize,
        300_usize.div_ceil(BLOCK) + 2 * VCS,
        "no block is lost"
    );
}

/// Packets, idle flits between them, and occasional invalid heads.
fn traffic(rng: &mut Rng, packets: u64) -> Vec<Flit> {
    let mut flits = Vec::new();
    for tag in 0..packets {
        match rng.below(20) {
            0 => flits.push(Flit::new(15 << 40)),
            1..5 => flits.extend([Flit::IDLE; 3]),
            _ => {}
        }
        let (vc, length) = (rng.below(8) as u8, 1 + rng.below(14) as u8);
        flits.extend(packet(vc, length, tag));
    }
    flits
}

#[test]
fn many_flits_at_once_do_what_they_do_one_by_one() {
    let mut rng = Rng::new(11, 0);
    let (mut whole, mut single) = (AriesInput::with_depth(64), AriesInput::with_depth(64));
    let (mut refused, mut cut, mut taken) = (0, 0, 0);
    for _ in 0..400 {
        let most = 1 + rng.below(17);
        let flits = traffic(&mut rng, 30);
        let mut flits = flits.as_slice();
        while !flits.is_empty() {
            let (now, later) = flits.split_at(flits.len().min(1 + rng.below(20) as usize));
            flits = later;
            let one_by_one = now.iter().map(|flit| single.write(&[*flit]));
            let one_by_one = one_by_one.fold(Arrived::default(), Arrived::plus);
            let arrived = whole.write(now);
            assert_eq!(arrived, one_by_one);
            refused += arrived.refused;
            if rng.chance(1, 50) {
                let was_open = whole.cut();
                assert_eq!(was_open, single.cut());
                cut += u32::from(was_open);
                flits = &[];
            }
            for vc in 0..VCS {
                let mut into = vec![Flit::IDLE; rng.below(most) as usize];
                let got = whole.pop_into(vc, &mut into);
                into.truncate(got);
                let model: Vec<Flit> = (0..into.len()).map_while(|_| single.pop(vc)).collect();
                assert_eq!(into, model);
                taken += got;
            }
            assert_eq!(format!("{whole:?}"), format!("{single:?}"));
        }
        whole.cut();
        single.cut();
    }
    let enough = refused > 100 && cut > 10 && taken > 10_000;
    assert!(enough, "{refused} rejected, {cut} cut, {taken} accepted");
}

#[test]
fn changes_since_the_last_poll_are_reported() {
    let mut rng = Rng::new(6, 0);
    let mut input = AriesInput::with_depth(200);
    let (mut freed, mut popped) = ([0; VCS], [0; VCS]);
    for tag in 0..20_000 {
        let before: [u32; VCS] = core::array::from_fn(|vc| input.len(vc));
        for _ in 0..rng.below(3) {
            input.write(&packet(rng.below(8) as u8, 1 + rng.below(14) as u8, tag));
        }
        let mut arrived = [0; VCS];
        input.take_changes(|vc, change| match change {
            Change::Arrived(flits) => arrived[vc] = flits,
            Change::Front => panic!("the front never goes back"),
        });
        for vc in 0..VCS {
            assert_eq!(input.len(vc), before[vc] + arrived[vc]);
            let mut into = vec![Flit::IDLE; rng.below(12) as usize];
            popped[vc] += input.pop_into(vc, &mut into) as u32;
            popped[vc] += u32::from(input.pop(vc).is_some());
        }
        if rng.chance(1, 3) {
            input.take_freed(|vc, flits| freed[vc] += flits);
            assert_eq!(freed, popped);
        }
    }
    assert!(popped.iter().all(|flits| *flits > 1_000), "{popped:?}");
}

#[test]
fn one_channel_may_use_it_all_and_no_more() {
    let mut input = AriesInput::with_depth(1_024);
    let mut written = 0;
    while input.write(&packet(2, 1, 0)) != REFUSED {
        written += 1;
    }
    assert_eq!(
        written,
        1_024 + 2 * VCS * BLOCK,
        "credits plus the spare blocks"
    );
    assert_eq!(input.write(&[Flit::IDLE]), Arrived::default());
    assert_eq!(input.write(&[Flit::new(15 << 40)]), MALFORMED);
}

#[test]
fn a_packet_without_room_is_refused_whole() {
    let mut input = AriesInput::with_depth(14);
    while input.write(&packet(2, 1, 0)) != REFUSED {}
    for flit in packet(3, 9, 1) {
        assert_eq!(input.write(&[flit]), REFUSED);
    }
    assert_eq!(input.write(&packet(3, 9, 1)), REFUSED.times(9));
    assert_eq!(input.len(3), 0);
    input.pop(2);
    let next = input.write(&[Flit::IDLE]);
    assert_eq!(next, Arrived::default(), "the packet has ended");
}

#[test]
fn a_packet_cut_off_is_completed_and_poisoned() {
    for popped in [0, 1, 3] {
        let mut input = AriesInput::with_depth(64);
        input.write(&packet(5, 6, 7)[..4]);
        for _ in 0..popped {
            input.pop(5);
        }
        assert!(input.cut() && !input.cut());
        assert_eq!(input.len(5), 6 - popped);
        if popped == 0 {
            let head = Head::parse(input.front(5).unwrap()).unwrap();
            assert!(head.poisoned() && head.packet_id() == 7);
        }
        let mut last = None;
        while let Some(flit) = input.pop(5) {
            last = Some(flit);
        }
        assert_eq!(last, Some(Flit::new(u64::MAX)));
        assert_eq!(input.restart()[5], 0);
    }
}
