//! Tests of single parts of an endpoint. Their requests to other parts are the actions that they
//! leave.

use super::*;
use crate::engine::action::Action;
use crate::engine::core::{Core, Segment};
use crate::engine::landing::Destination;
use crate::engine::liveness::Liveness;
use crate::engine::one_sided::OneSided;
use crate::engine::outbox::Outgoing;
use crate::engine::parcel::{End, Parcel};
use crate::engine::pulls::Pulls;
use crate::engine::reach::{NO_HANDLE, Reach};
use crate::engine::renewal::{Renewal, Waiter};
use crate::engine::requests::Requests;
use crate::engine::session::Session;
use crate::engine::shared::{Binds, Failure, Open, Queue, Shared};
use crate::engine::slots::RECEIVES;
use crate::engine::wire::{Head, IN_PLACE, Kind, Purpose};

/// A segment whose content does not matter.
#[derive(Debug)]
struct Zeros;

impl Segment for Zeros {
    fn read(&self, _: u64, out: &mut [u8]) {
        out.fill(0);
    }

    fn write(&self, _: u64, _: &[u8]) {}
}

const LOST: Failure = Failure {
    errno: libc::EHOSTUNREACH,
    why: Why::Unknown,
};

/// A core with two peers, and the state in which it reports completions.
fn core() -> (Core, Shared, [usize; 2]) {
    let address = |processor| Address {
        processor,
        ..Address::default()
    };
    let mut shared = Shared::default();
    let mut core = Core::new(address(0), Box::new(Zeros), true);
    core.binds = Binds {
        transmit: shared
            .queues
            .insert(Queue::default())
            .map(|slot| (slot, false)),
        ..Binds::default()
    };
    let peers = [1, 2].map(|processor| core.peers.number(address(processor)));
    (core, shared, peers)
}

fn errors(shared: &mut Shared) -> Vec<i32> {
    let queue = shared.queues.get_mut(0).expect("it is there");
    queue
        .errors
        .drain(..)
        .map(|(_, failure, _)| failure.errno)
        .collect()
}

fn head(kind: Kind, id: u64) -> Head {
    Head {
        kind,
        id,
        len: 8,
        ..Head::default()
    }
}

#[test]
fn a_request_ends_with_the_fetch_of_its_reply() {
    let (mut core, mut shared, [peer, other]) = core();
    let mut requests = Requests::default();
    let into = Pieces::leaked(vec![0; 8]);
    let message = (head(Kind::Read, 7), Vec::new());
    requests.ask(&mut core, peer, message, (op(1, 0), Some(into)), false);
    assert!(matches!(core.actions.pop_front(), Some(Action::Post(..))));
    let announced = Head {
        purpose: Purpose::Reply,
        key: 7,
        ..head(Kind::Ready, 1)
    };
    // The memory goes only to the peer that was asked, and only once.
    for (from, is_owed) in [(other, false), (peer, true), (peer, false)] {
        requests.reply_announced(&mut core, from, announced);
        match core.actions.pop_front() {
            Some(Action::Pull(_, _, Destination::Reply(Some(_)))) => assert!(is_owed),
            Some(Action::Discard(_, _, true)) => assert!(!is_owed),
            action => panic!("{action:?}"),
        }
    }
    // The end of another transfer does not end the reply.
    let another = Head { id: 2, ..announced };
    for end in [(other, &announced), (peer, &another)] {
        requests.pulled(&core, &mut shared, end, None);
    }
    // The NIC may still write: neither a loss nor another answer ends the request.
    requests.lose(&core, &mut shared, peer, LOST);
    requests.answered(&core, &mut shared, peer, &head(Kind::Done, 7));
    requests.fail(&core, &mut shared, 7, LOST);
    assert_eq!((requests.len(), errors(&mut shared)), (1, vec![]));
    requests.pulled(&core, &mut shared, (peer, &announced), Some(LOST));
    assert_eq!((requests.len(), errors(&mut shared)), (0, vec![LOST.errno]));
}

/// Peers that have ended are lost without a message; the user mends another job.
#[test]
fn a_peer_of_another_job_is_reported() {
    let (mut core, _, [peer, other]) = core();
    let mut liveness = Liveness::default();
    for (peer, status, foreign) in [
        (other, Status::NoHandle, None),
        (peer, Status::WrongKey, Some(core.peers[peer].address)),
    ] {
        liveness.answered(&mut core, peer, status);
        assert!(matches!(core.actions.pop_front(), Some(Action::Lose(..))));
        assert_eq!(liveness.foreign, foreign);
    }
}

#[test]
fn a_transfer_in_place_ends_when_nothing_of_it_can_land() {
    let (mut core, shared, [peer, _]) = core();
    let mut pulls = Pulls::default();
    let into = || Destination::Reply(Some(Pieces::leaked(vec![0; 8])));
    let in_place = Head {
        part: IN_PLACE,
        ..head(Kind::Ready, 1)
    };
    pulls.pull(&mut core, &shared, peer, in_place, into());
    assert!(matches!(core.outbox.front(), Some(Outgoing::Fetch(0))));
    // A second transfer with the same number is rejected, and so is a part of it.
    pulls.pull(&mut core, &shared, peer, in_place, into());
    let rejected = core.actions.pop_front();
    let Some(Action::Pulled(_, _, _, Some(failure))) = rejected else {
        panic!("{rejected:?}");
    };
    assert_eq!(failure.errno, libc::EPROTO);
    let part = Head {
        part_bytes: 8,
        ..head(Kind::Part, 1)
    };
    pulls.part(&mut core, &shared, peer, &part);
    pulls.lose(&mut core, peer, LOST);
    assert!(core.actions.is_empty(), "the NIC still writes");
    pulls.completed(&mut core, &shared, 0, Status::Done);
    assert!(matches!(core.actions.pop_front(), Some(Action::Send(_, head)) if head.failed));
    let ended = core.actions.pop_front();
    let Some(Action::Pulled(_, _, _, Some(failure))) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!(failure.errno, libc::EPROTO, "the first failure counts");
    pulls.check();
    assert!(pulls.left().iter().all(|(_, count)| *count == 0));
}

/// A peer that repeats parts cannot fill the queue of fetches, and a fetch left over from one
/// transfer does not count for another.
#[test]
fn fetches_of_a_transfer_are_distinct_and_do_not_outlive_its_number() {
    let (mut core, shared, [peer, _]) = core();
    let mut pulls = Pulls::default();
    let into = || Destination::Reply(Some(Pieces::leaked(vec![0; 8])));
    let staged = Head {
        part: 0,
        part_bytes: 8,
        ..head(Kind::Ready, 7)
    };
    let fetches = |pulls: &Pulls| pulls.left()[1].1;
    pulls.pull(&mut core, &shared, peer, staged, into());
    for _ in 0..100 {
        pulls.part(&mut core, &shared, peer, &staged);
    }
    assert_eq!(fetches(&pulls), 1);

    pulls.lose(&mut core, peer, LOST);
    assert_eq!(
        (pulls.left()[0].1, fetches(&pulls)),
        (0, 1),
        "it is in flight"
    );
    core.actions.clear();
    let in_place = Head {
        part: IN_PLACE,
        ..staged
    };
    pulls.pull(&mut core, &shared, peer, in_place, into());
    match core.actions.pop_front() {
        Some(Action::Pulled(_, _, _, Some(Failure { errno, .. }))) => {
            assert_eq!(errno, libc::EPROTO);
        }
        action => panic!("{action:?}"),
    }
    pulls.completed(&mut core, &shared, 0, Status::Done);
    pulls.pull(&mut core, &shared, peer, in_place, into());
    assert_eq!((pulls.left()[0].1, fetches(&pulls)), (1, 1));
    pulls.check();
}

#[test]
fn a_staged_transfer_without_bytes_has_ended() {
    let (mut core, shared, [peer, _]) = core();
    let mut pulls = Pulls::default();
    let empty = Head {
        len: 0,
        ..head(Kind::Ready, 7)
    };
    let into = Destination::Reply(None);
    pulls.pull(&mut core, &shared, peer, empty, into);
    let ended = core.actions.pop_front();
    assert!(
        matches!(ended, Some(Action::Pulled(_, _, _, None))),
        "{ended:?}"
    );
    assert!(pulls.left().iter().all(|(_, count)| *count == 0));
}

#[test]
fn messages_after_an_announcement_wait_for_it() {
    let (mut core, mut shared, [peer, other]) = core();
    let mut session = Session::new(&mut core, RECEIVES);
    while core.outbox.front().is_some() {
        core.outbox.pop();
    }
    let mut announcement = Parcel::new(head(Kind::Ready, 5), Vec::new(), End::Offer(5));
    announcement.is_ready = false;
    session.post(&mut core, &mut shared, peer, announcement);
    session.post(
        &mut core,
        &mut shared,
        peer,
        Parcel::bare(head(Kind::Done, 6)),
    );
    session.send_waiting(&mut core, &mut shared);
    session.check();
    assert_eq!((session.queued(), core.outbox.front().is_none()), (2, true));
    // Other peers do not wait.
    session.post(
        &mut core,
        &mut shared,
        other,
        Parcel::bare(head(Kind::Done, 8)),
    );
    assert!(matches!(core.outbox.front(), Some(Outgoing::Send(0))));
    session.announce(&mut core, &mut shared, peer, head(Kind::Ready, 5));
    session.check();
    assert_eq!(session.queued(), 0);
    // A loss fails the announcement, whose message is in flight.
    core.peers.lose(peer, LOST);
    session.lose(&mut core, &mut shared, peer, (LOST, LOST));
    assert!(matches!(
        core.actions.pop_front(),
        Some(Action::OfferFailed(5, _))
    ));
    assert!(core.actions.is_empty());
}

/// All handles are in use, and other memory gets the one that was closed.
#[test]
fn memory_without_a_handle_is_opened_as_soon_as_there_is_one() {
    let (mut core, mut shared, [peer, other]) = core();
    while core.outbox.front().is_some() {
        core.outbox.pop();
    }
    let Pieces::One(bytes) = Pieces::leaked(vec![0; 64]) else {
        unreachable!("it is one");
    };
    let (handle, base) = (5, bytes.address() / 64 * 64);
    let region = Region {
        bytes,
        access: FI_REMOTE_WRITE,
        base: bytes.address(),
        open: Some(Open {
            reach: Reach { handle, base },
            by: Some(core.address),
        }),
        counters: Vec::new(),
    };
    shared.regions.insert(9, region);
    let mut renewal = Renewal::default();
    let wanted = |handle| Head {
        key: 9,
        handle,
        ..head(Kind::Renew, 0)
    };
    let endpoint = core.address;
    let waiter = |peer| Waiter { endpoint, peer };
    renewal.renew(&mut core, &mut shared, waiter(peer), &wanted(5));
    assert!(matches!(
        core.outbox.front(),
        Some(Outgoing::Deregister(_, 5))
    ));
    core.outbox.pop();
    assert_eq!(shared.reach(9).map(|reach| reach.handle), Some(NO_HANDLE));
    renewal.completed(&mut core, &mut shared, 0, false, (Status::Done, 0));
    for _ in 0..2 {
        assert!(matches!(core.outbox.front(), Some(Outgoing::Register(..))));
        core.outbox.pop();
        renewal.completed(&mut core, &mut shared, 0, true, (Status::TooMany, 0));
        // Others wait too, once each, and the old number is not closed again.
        for peer in [peer, other] {
            renewal.renew(&mut core, &mut shared, waiter(peer), &wanted(5));
        }
        assert!(core.outbox.front().is_none() && core.actions.is_empty());
        renewal.retry(&mut core, &mut shared);
    }
    renewal.completed(&mut core, &mut shared, 0, true, (Status::Done, 8));
    for to in [peer, other] {
        let action = core.actions.pop_front();
        let Some(Action::Send(at, head)) = action else {
            panic!("{action:?}");
        };
        assert_eq!((at, head.handle, head.failed), (to, 8, false));
    }
    assert!(core.actions.is_empty());
    assert_eq!(
        (renewal.len(), shared.reach(9).map(|r| r.handle)),
        (0, Some(8))
    );
}

#[test]
fn senders_are_those_that_the_network_interface_names() {
    let (mut core, _, [peer, _]) = core();
    let mut session = Session::new(&mut core, RECEIVES);
    let address = core.peers[peer].address;
    let own = core.address;
    let heads = [
        (address, 1, true),
        (address, 2, false),
        (own, own.processor, false),
    ];
    for (seq, (from, processor, is_taken)) in heads.into_iter().enumerate() {
        let message = Head {
            from,
            seq: u64::from(!is_taken && seq > 0),
            ..head(Kind::Done, 3)
        };
        session.message(&mut core, processor, message, Vec::new());
        let arrived = core.actions.pop_front();
        assert_eq!(arrived.is_some(), is_taken, "{arrived:?}");
        let lost = Head {
            kind: Kind::Lost,
            ..message
        };
        session.message(&mut core, processor, lost, Vec::new());
        let lost = core.actions.pop_front();
        assert_eq!(lost.is_some(), is_taken, "{lost:?}");
    }
}

/// The handle in the command of a put.
fn handle_of(one_sided: &OneSided, slot: usize) -> u16 {
    match one_sided.request(slot) {
        Some(phitwire_client::door::Request::Put { to, .. }) => to.handle,
        other => panic!("{other:?}"),
    }
}

#[test]
fn handles_from_peers_are_used_until_withdrawn() {
    let (mut core, mut shared, [peer, _]) = core();
    let mut one_sided = OneSided::default();
    let reach = Reach {
        handle: 5,
        base: 4096,
    };
    let far = Far {
        number: 0,
        address: 4096,
        key: reach.key(1).expect("its numbers are small"),
    };
    let from = Pieces::leaked(vec![1; 8]);
    // The handle that a put uses, and the peer's answer when that is rejected.
    for (handle, said) in [(5, Some(8)), (8, Some(9)), (9, None), (5, None)] {
        let to = OneSided::reach_of(&core, peer, &far, 8).expect("NICs reach it");
        one_sided.put(&mut core, &mut shared, to, (&from, op(1, 0)));
        assert_eq!(handle_of(&one_sided, 0), handle);
        one_sided.completed(&mut core, &mut shared, 0, (Status::NoHandle, 0));
        let asked = core.actions.pop_front();
        assert!(matches!(asked, Some(Action::Send(_, head)) if head.handle == handle));
        let renewed = Head {
            key: far.key,
            handle: said.unwrap_or(0),
            failed: said.is_none(),
            ..head(Kind::Renewed, 0)
        };
        one_sided.renewed(&mut core, &mut shared, peer, &renewed);
        if let Some(said) = said {
            assert_eq!(handle_of(&one_sided, 0), said);
            one_sided.completed(&mut core, &mut shared, 0, (Status::Done, 0));
            assert_eq!(one_sided.learned(), 1);
        }
        assert_eq!(one_sided.len(), 0);
    }
    assert_eq!((errors(&mut shared).len(), one_sided.learned()), (2, 0));
}

#[test]
fn handles_of_lost_peers_are_dropped() {
    let (mut core, mut shared, peers) = core();
    let mut one_sided = OneSided::default();
    let (handle, base) = (5, 4096);
    let far = Far {
        number: 0,
        address: 4096,
        key: Reach { handle, base }
            .key(1)
            .expect("its numbers are small"),
    };
    let from = Pieces::leaked(vec![1; 8]);
    for (slot, peer) in peers.into_iter().enumerate() {
        let to = OneSided::reach_of(&core, peer, &far, 8).expect("NICs reach it");
        one_sided.put(&mut core, &mut shared, to, (&from, op(1, 0)));
        one_sided.completed(&mut core, &mut shared, slot, (Status::NoHandle, 0));
        let renewed = Head {
            key: far.key,
            handle: 8,
            ..head(Kind::Renewed, 0)
        };
        one_sided.renewed(&mut core, &mut shared, peer, &renewed);
    }
    assert_eq!(one_sided.learned(), 2);
    core.peers.lose(peers[0], LOST);
    one_sided.lose(&mut core, &mut shared, peers[0]);
    assert_eq!(one_sided.learned(), 1);
}

/// A peer may still use the other handle of such a key.
#[test]
fn keys_of_renewed_memory_do_not_recur() {
    let (mut core, mut shared, [peer, _]) = core();
    let Pieces::One(bytes) = Pieces::leaked(vec![0; 64]) else {
        unreachable!("it is one");
    };
    let (handle, base) = (5, bytes.address() / 64 * 64);
    let reach = Reach { handle, base };
    let mut keys = Vec::new();
    for _ in 0..2 {
        let key = shared.new_key_of(reach).expect("there are many");
        let region = Region {
            bytes,
            access: FI_REMOTE_WRITE,
            base,
            open: Some(Open {
                reach,
                by: Some(core.address),
            }),
            counters: Vec::new(),
        };
        shared.regions.insert(key, region);
        keys.push(key);
    }
    let mut renewal = Renewal::default();
    let endpoint = core.address;
    let waiter = Waiter { endpoint, peer };
    let wanted = Head::renewal(keys[0], handle);
    renewal.renew(&mut core, &mut shared, waiter, &wanted);
    for (is_opened, word) in [(false, 0), (true, 8)] {
        let ended = (Status::Done, word);
        renewal.completed(&mut core, &mut shared, 0, is_opened, ended);
    }
    shared.regions.clear();
    let later: Vec<_> = (0..1024).filter_map(|_| shared.new_key_of(reach)).collect();
    assert_eq!(later.len(), 1024);
    assert!(!later.contains(&keys[0]) && later.contains(&keys[1]));
}
