use super::*;
use phitwire::nic::periods::Incarnation;
use phitwire::rng::Rng;
use phitwire::time::Duration;
use std::collections::HashSet;

fn fresh(capacity: u32) -> Outstanding {
    successor(capacity, Time::ZERO)
}

fn successor(capacity: u32, now: Time) -> Outstanding {
    let timeout = Duration::from_ms(2_000);
    let after = Incarnation {
        clock_ns: 0,
        first: now == Time::ZERO,
    };
    Outstanding::new(capacity, Periods::new(after, now, timeout, 1))
}

fn entry_at(ns: u64) -> PendingEntry {
    PendingEntry {
        posted: Time::from_ns(ns),
        offset: ns,
        ..PendingEntry::NONE
    }
}

fn at(ns: u64) -> Pending {
    Pending::new(entry_at(ns), Landing::NONE)
}

#[test]
fn requests_expire_in_posting_order_and_only_when_due() {
    let mut table = fresh(4);
    let ids: Vec<PacketId> = (1..=4)
        .map(|ns| table.begin(at(ns), Routing::Adaptive0).0)
        .collect();
    assert!(!table.has_room(Share::Bulk) && table.has_room(Share::Reserve));
    table.finish(ids[1]);
    assert_eq!(table.slab.oldest(), Some(Time::from_ns(1)));
    assert_eq!(table.expire(Time::from_ns(3)).unwrap().0, ids[0]);
    assert_eq!(table.expire(Time::from_ns(3)).unwrap().1.offset, 3);
    assert!(table.expire(Time::from_ns(3)).is_none());
    assert_eq!((table.slab.used(), table.slab.quarantined()), (1, 2));
}

/// Regression: a run took all ids, so users waited until its end.
#[test]
fn ids_are_reserved_for_users_only_while_bulk_uses_the_rest() {
    let of_run = |ns| {
        let entry = PendingEntry {
            origin: RequestOrigin::Transfer(0, TransferStep::Chunk),
            ..entry_at(ns)
        };
        Pending::new(entry, Landing::NONE)
    };
    for capacity in [1, 4, 40, MAX_OUTSTANDING] {
        let few = RESERVED_FOR_USERS.min(capacity);
        let mut table = fresh(capacity);
        for _ in 0..capacity {
            table.begin(of_run(1), Routing::Adaptive0);
        }
        assert!(!table.has_room(Share::Bulk));
        let mut ids = Vec::new();
        while table.has_room(Share::User) {
            ids.push(table.begin(at(2), Routing::Adaptive0).0);
        }
        assert_eq!(ids.len(), few as usize, "{capacity}");
        assert!(table.has_room(Share::Reserve));
        // A completed request makes room for another user, but not for the run.
        table.finish(ids[0]);
        assert!(table.has_room(Share::User) && !table.has_room(Share::Bulk));
        table.expire(Time::from_ns(1)).unwrap();

        let mut alone = fresh(capacity);
        while alone.has_room(Share::User) {
            alone.begin(at(2), Routing::Adaptive0);
        }
        assert_eq!(alone.slab.used(), capacity);
    }
}

#[test]
fn a_late_response_never_completes_another_request() {
    let mut table = fresh(MAX_OUTSTANDING);
    let (old, _) = table.begin(at(1), Routing::Adaptive0);
    table.expire(Time::from_ns(1)).unwrap();
    for ns in 2..1_000_000 {
        let (id, _) = table.begin(at(ns), Routing::Adaptive0);
        assert_ne!(id, old);
        table.finish(id);
    }
    assert!(table.get(old).is_none());
    assert!(table.release(old) && !table.release(old));
}

#[test]
fn nothing_can_be_asked_when_all_ids_of_a_period_are_in_quarantine() {
    let mut table = fresh(MAX_OUTSTANDING);
    let first = table.begin(at(1), Routing::Adaptive0);
    table.expire(Time::NEVER).unwrap();
    for ns in 1..u64::from(IDS) {
        assert!(table.has_room(Share::Bulk) && table.slab.opens().is_none());
        table.begin(at(ns), Routing::Adaptive0);
        table.expire(Time::NEVER).unwrap();
    }
    assert_eq!(table.slab.quarantined(), u32::from(IDS));
    assert!(!table.has_room(Share::Reserve));
    // The id that was unused for the longest time is allocated first.
    let second = Time::ZERO + Duration::from_ms(2_000);
    assert_eq!(table.slab.opens(), Some(second));
    table.slab.advance(second);
    let again = table.begin(at(1 << 21), Routing::Adaptive0);
    assert_eq!(again.0, first.0);
    assert_ne!(again.1, first.1);
    assert!(table.answered_by(first.0, first.1).is_none() && !table.is_recent(first.0, first.1));
}

#[test]
fn an_id_rests_while_all_others_serve() {
    let mut table = fresh(1);
    let mut seen = HashSet::new();
    for ns in 0..u64::from(IDS) {
        let (id, _) = table.begin(at(ns), Routing::Adaptive0);
        assert!(seen.insert(id));
        table.finish(id);
    }
    assert!(!seen.insert(table.begin(at(1 << 20), Routing::Adaptive0).0));
}

#[test]
fn an_id_takes_nothing_over_from_its_last_request() {
    let mut table = fresh(1);
    let landing = |local| Landing {
        local: Some(local),
        flag: Some((local, 1)),
        ..Landing::NONE
    };
    for round in 0..3 {
        for n in 0..u64::from(IDS) {
            let asked = match round {
                1 => Landing::NONE,
                _ => landing(round + n),
            };
            let pending = Pending::new(entry_at(round), asked);
            let (id, _) = table.begin(pending, Routing::Adaptive0);
            assert_eq!(table.get(id).unwrap().landing(), asked);
            if n % 2 == 0 {
                table.finish(id);
            } else {
                let (_, expired) = table.expire(Time::from_ns(round)).unwrap();
                assert_eq!(expired.landing(), asked);
                assert!(table.release(id));
            }
        }
    }
}

/// Thousands of incarnations of one NIC, each killed with requests outstanding whose responses
/// arrive at any later time up to 60 s.
#[test]
fn no_packet_id_is_reused_within_a_minute_across_restarts() {
    for seed in 0..2_000 {
        let mut rng = Rng::new(seed, 9);
        let mut now = Time::from_ns(rng.below(1 << 32));
        let mut asked: Vec<(Time, PacketId, u8)> = Vec::new();
        for _life in 0..5 {
            let mut table = successor(MAX_OUTSTANDING, now);
            for _ in 0..rng.below(200) {
                now += Duration::from_ns(1 << [12, 24, 30][rng.below(3) as usize]);
                table.slab.advance(now);
                while rng.chance(1, 3) && table.expire(now).is_some() {}
                if !table.has_room(Share::Bulk) {
                    continue;
                }
                let (id, echo) = table.begin(
                    Pending::new(
                        PendingEntry {
                            posted: now,
                            ..entry_at(1)
                        },
                        Landing::NONE,
                    ),
                    Routing::Adaptive0,
                );
                // The name of a completed request may be reused.
                if rng.chance(1, 4) {
                    table.finish(id);
                    continue;
                }
                let same = |&&(_, i, e): &&(Time, PacketId, u8)| (i, e) == (id, echo);
                if let Some((before, ..)) = asked.iter().rev().find(same) {
                    let apart = now.since(*before);
                    assert!(apart > Duration::from_ms(62_000), "{seed}: {apart:?}");
                }
                asked.push((now, id, echo));
            }
            now += Duration::from_ns(1 << [20, 28, 34][rng.below(3) as usize]);
        }
    }
}

#[test]
fn every_slot_is_in_exactly_one_list() {
    let mut table = fresh(37);
    let (mut rng, mut live, mut dead) = (Rng::new(5, 0), Vec::new(), Vec::new());
    for ns in 1..200_000 {
        match rng.below(4) {
            0 | 1 if table.has_room(Share::Bulk) => {
                live.push(table.begin(at(ns), Routing::Adaptive0).0)
            }
            2 if !live.is_empty() => {
                table.finish(live.swap_remove(rng.below(live.len() as u64) as usize));
            }
            _ if rng.chance(1, 20) => {
                if let Some((id, _)) = table.expire(Time::from_ns(ns)) {
                    live.retain(|&other| other != id);
                    dead.push(id);
                }
            }
            _ => {
                if let Some(id) = dead.pop() {
                    assert!(table.get(id).is_none() && table.release(id));
                }
            }
        }
        assert_eq!(table.slab.used() as usize, live.len());
        assert_eq!(table.slab.listed(), u32::from(IDS));
    }
    assert!(live.iter().all(|&id| table.get(id).is_some()));
}

/// The id of a deterministic request shows whether its path depends on the address, and on which
/// hash.
#[test]
fn ids_encode_the_hash_of_deterministic_requests() {
    let mut table = fresh(MAX_OUTSTANDING);
    let line = |number: u64| number * Lines::BYTES;
    let at = |offset| {
        let posted = Time::from_ns(1);
        let entry = entry_at(offset);
        Pending::new(PendingEntry { posted, ..entry }, Landing::NONE)
    };
    let hashed = table.begin(at(line(5)), Routing::MinHash).0;
    assert_eq!(Lines::of(hashed.bits()), Some(Lines::hash(line(5))));
    let same = (0..)
        .map(line)
        .filter(|&at| Lines::hash(at) == Lines::hash(line(5)));
    for address in same.take(usize::from(Lines::IDS) - 1) {
        assert!(table.has_id(Routing::NminHash, address));
        table.begin(at(address), Routing::NminHash);
    }
    assert!(
        !table.has_id(Routing::MinHash, line(5)),
        "all ids of the hash are in quarantine"
    );
    let other = (0..)
        .map(line)
        .find(|&at| Lines::hash(at) != Lines::hash(line(5)));
    assert!(table.has_id(Routing::MinHash, other.unwrap()));
    // Ordered requests take ids without a hash.
    while table.has_room(Share::Bulk) {
        let id = table.begin(at(line(5)), Routing::Ordered).0;
        assert_eq!(Lines::of(id.bits()), None);
    }
    table.finish(hashed);
    assert!(table.has_id(Routing::MinHash, line(5)));
}
