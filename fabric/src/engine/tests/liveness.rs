//! Silent peers that are awaited: probed, and given up or not.

use super::*;
use crate::engine::liveness::{PATIENCE, TICK};

/// Checks until a peer that never replies is given up, and a few more.
const ENOUGH: u32 = (PATIENCE.as_millis() / TICK.as_millis()) as u32 + 8;
const LOST: i32 = libc::EHOSTUNREACH;

impl One {
    /// Checks the awaited peers, and takes in everything that follows.
    fn look(&mut self, fake: &Fake) {
        self.endpoint.tick(&mut self.shared);
        self.take_all_in(fake);
    }

    /// Makes progress until nothing more arrives, without checks: they alone are the time of these
    /// tests.
    fn take_all_in(&mut self, fake: &Fake) {
        loop {
            fake.settle();
            self.endpoint.looked = Instant::now();
            if !self.endpoint.progress(&mut self.shared) {
                return;
            }
        }
    }

    fn looks(&mut self, fake: &Fake, count: u32) -> Vec<(usize, i32, Why)> {
        (0..count).for_each(|_| self.look(fake));
        let mut errors = self.errors();
        errors.sort_unstable_by_key(|error| error.0);
        errors
    }

    /// Posts a receive from one endpoint of the vector, or from any.
    fn expect(&mut self, from: Option<usize>, tagged: bool, context: usize) {
        let (mut posted, _) = Self::posted(context, 1, 8);
        posted.from = from.map(|n| self.address(n));
        self.endpoint
            .receive(&mut self.shared, tagged, posted, false);
    }

    fn address(&self, number: usize) -> crate::engine::wire::Address {
        let vector = self.shared.vectors.get(0).expect("it is there");
        vector.get(number as u64).expect("it has so many")
    }

    /// Commands in flight, except posted receives.
    fn under_way(&self) -> u64 {
        self.endpoint.nic.under_way() - crate::engine::slots::RECEIVES as u64
    }
}

#[test]
fn who_lives_and_says_nothing_is_not_lost() {
    let fake = Fake::start(3);
    let mut all = all(&fake);
    all[0].expect(Some(1), true, 1);
    all[0].expect(None, false, 2);
    // Let only the first program make progress.
    for _ in 0..100 {
        all[0].look(&fake);
        assert!(all[0].under_way() <= 8, "questions accumulate");
    }
    assert_eq!(all[0].errors(), []);
    all[1].send(0, 1, 3, pattern(8, 0));
    assert_eq!([wait(&mut all, 0).context], [1]);
}

#[test]
fn who_waits_for_nobody_asks_nobody() {
    let fake = Fake::start(2);
    let mut all = all(&fake);
    fake.silence(1);
    assert_eq!(all[0].looks(&fake, ENOUGH), []);
    assert_eq!(all[0].under_way(), 0);
}

#[test]
fn what_waits_for_a_dead_one_fails() {
    let fake = Fake::start(3);
    let mut all = all(&fake);
    fake.silence(1);
    all[0].expect(Some(1), true, 1);
    all[0].expect(Some(1), false, 2);
    all[0].expect(None, true, 3);
    all[0].expect(Some(2), true, 4);
    all[0].send(1, 1, 5, pattern(PART + 1, 0));
    all[0].send(1, 1, 6, pattern(8, 0));
    let far = Far {
        number: 1,
        address: 0,
        key: 1,
    };
    let One { shared, endpoint } = &mut all[0];
    let into = Pieces::leaked(vec![0; 8]);
    let asked = endpoint.read(shared, far, into, op(7, 0));
    assert_eq!(asked, Ok(()));
    assert_eq!(
        all[0].looks(&fake, ENOUGH),
        [
            (1, LOST, Why::Unreachable),
            (2, LOST, Why::Unreachable),
            (3, LOST, Why::SomeoneLost),
            (5, libc::ETIMEDOUT, Why::Unknown),
            (6, libc::ETIMEDOUT, Why::Unknown),
            (7, libc::ETIMEDOUT, Why::Unknown),
        ]
    );
    assert!(all[0].under_way() <= 8, "questions accumulate");
    // Operations on lost peers now fail at once; those from any source were failed before.
    all[0].expect(Some(1), true, 11);
    all[0].expect(None, true, 12);
    all[0].send(1, 1, 13, pattern(8, 0));
    assert_eq!(
        all[0].looks(&fake, 0),
        [(11, LOST, Why::Unreachable), (13, LOST, Why::Unreachable)]
    );
    // Messages of live peers still arrive.
    all[2].send(0, 1, 0, pattern(8, 0));
    assert_eq!(wait(&mut all, 0).context, 4);
    assert!(all[0].endpoint.stages.is_empty());
}

#[test]
fn all_are_lost_to_one_who_is_cut_off() {
    let fake = Fake::start(8);
    let mut all = all(&fake);
    fake.silence(0);
    all[0].expect(None, true, 1);
    // The peers are probed in turn.
    assert_eq!(
        all[0].looks(&fake, ENOUGH + 4),
        [(1, LOST, Why::SomeoneLost)]
    );
    all[0].expect(Some(7), true, 2);
    assert_eq!(all[0].looks(&fake, ENOUGH), [(2, LOST, Why::Unreachable)]);
}

/// Programs took the null context of a failed injection for an operation of their own.
#[test]
fn what_was_injected_fails_without_a_word() {
    let fake = Fake::start(2);
    let mut all = all(&fake);
    fake.silence(1);
    let inject = |one: &mut One| {
        let from = Pieces::leaked(vec![0; 8]);
        let silent = Op {
            tells: false,
            ..op(0, FI_SEND)
        };
        one.endpoint
            .send(&mut one.shared, 1, from, (None, None), silent)
    };
    assert_eq!(inject(&mut all[0]), Ok(()));
    assert_eq!(all[0].looks(&fake, ENOUGH), []);
    // The next injection is rejected.
    assert_eq!(inject(&mut all[0]), Err(LOST));
}

/// For seven and a half seconds, whenever the cut begins.
#[test]
fn a_way_that_is_cut_for_a_while_loses_nobody() {
    let fake = Fake::start(2);
    let mut all = all(&fake);
    all[0].expect(Some(1), true, 1);
    for round in 0..5 {
        fake.silence(1);
        assert_eq!(all[0].looks(&fake, 15), [], "round {round}");
        fake.rejoin();
        assert_eq!(all[0].looks(&fake, 10 + round), [], "round {round}");
    }
    all[1].send(0, 1, 2, pattern(8, 0));
    assert_eq!(wait(&mut all, 0).context, 1);
}

#[test]
fn a_program_that_has_ended_is_lost_to_who_waits_for_it() {
    let fake = Fake::start(3);
    let mut all = all(&fake);
    all[0].expect(Some(2), true, 1);
    all[0].expect(None, false, 2);
    all.pop();
    assert_eq!(all[0].looks(&fake, 8), [(1, LOST, Why::Departed)]);
    // The program may have ended in order: receives from any source wait on.
    all[0].expect(Some(2), false, 3);
    assert_eq!(all[0].looks(&fake, 0), [(3, LOST, Why::Departed)]);
    assert_eq!(all[0].looks(&fake, ENOUGH), []);
}

#[test]
fn what_came_before_the_end_is_received() {
    let fake = Fake::start(2);
    let mut all = all(&fake);
    all[1].send(0, 1, 0, pattern(8, 0));
    all[1].send(0, 2, 0, pattern(PART, 0));
    // Let the NIC take the messages first: those left in the ring are lost with the program.
    all[1].take_all_in(&fake);
    all.pop();
    all[0].expect(Some(1), false, 1);
    assert_eq!(all[0].looks(&fake, 8), [(1, LOST, Why::Departed)]);
    all[0].expect(Some(1), true, 2);
    assert_eq!(wait(&mut all, 0).context, 2);
    // The long message was only announced.
    all[0].receive(2, 3, PART);
    assert_eq!(all[0].looks(&fake, 0), [(3, LOST, Why::Departed)]);
}

#[test]
fn who_looks_for_a_message_of_a_dead_one_is_told() {
    let fake = Fake::start(2);
    let mut all = all(&fake);
    fake.silence(1);
    let (mut wanted, _) = One::posted(1, 1, 0);
    wanted.from = Some(all[0].address(1));
    let mut looks = 0;
    loop {
        all[0].peek(&wanted, 0);
        match all[0].looks(&fake, 1)[..] {
            [(1, libc::ENOMSG, _)] => looks += 1,
            [(1, LOST, Why::Unreachable)] => break,
            ref other => panic!("{other:?}"),
        }
        assert!(looks < ENOUGH, "it is never told");
    }
    assert!(looks > 10, "after {looks} looks");
}

/// MPI receives active messages in pools; waiting for the reply of a lost peer would never end.
#[test]
fn a_pool_is_told_of_the_lost_and_serves_on() {
    let fake = Fake::start(3);
    let mut all = all(&fake);
    fake.silence(1);
    let (posted, _) = One::posted(1, 1, 1000);
    let One { shared, endpoint } = &mut all[0];
    endpoint.receive(shared, true, posted, true);
    assert_eq!(all[0].looks(&fake, ENOUGH), [(1, LOST, Why::SomeoneLost)]);
    assert_eq!(all[0].looks(&fake, ENOUGH), [], "once");
    all[2].send(0, 1, 2, pattern(8, 0));
    assert_eq!(wait(&mut all, 0).context, 1);
}

#[test]
fn somebody_lost_is_told_to_the_next_who_waits_for_anyone() {
    let fake = Fake::start(2);
    let mut all = all(&fake);
    fake.silence(1);
    all[0].expect(Some(1), true, 1);
    assert_eq!(all[0].looks(&fake, ENOUGH), [(1, LOST, Why::Unreachable)]);
    all[0].expect(None, true, 2);
    assert_eq!(all[0].looks(&fake, 0), [(2, LOST, Why::SomeoneLost)]);
    all[0].expect(None, true, 3);
    assert_eq!(all[0].looks(&fake, 0), []);
}

#[test]
fn without_an_end_of_patience_nobody_is_lost() {
    let fake = Fake::start(2);
    let mut all = all(&fake);
    all[0].endpoint.lookout.wait_for(Duration::ZERO);
    fake.silence(1);
    all[0].expect(Some(1), true, 1);
    assert_eq!(all[0].looks(&fake, 2 * ENOUGH), []);
}

/// A NIC has receives for four programs.
#[test]
fn who_found_no_place_for_receives_has_them_when_another_leaves() {
    let fake = Fake::start(1);
    let doors = vec![fake.doors[0].clone(); 5];
    let mut all = all_at(&doors);
    all[0].send(4, 1, 1, pattern(8, 0));
    all[4].receive(1, 2, 8);
    all[4].look(&fake);
    all[0].look(&fake);
    assert_eq!(all[0].under_way(), 1, "the message waits");
    all.remove(1);
    fake.settle();
    all[3].look(&fake);
    assert_eq!(wait(&mut all, 3).context, 2);
    assert_eq!(wait(&mut all, 0).context, 1);
    assert_eq!(all[3].under_way(), 0, "all are posted");
}

/// Closing, where a fruitless wait takes five seconds.
mod closing {
    use super::*;

    /// Shorter than the two seconds after which `tick` probes awaited peers.
    const SOON: Duration = Duration::from_secs(1);

    /// Five endpoints at one NIC, the last of which found no room for receives: messages to it
    /// wait, like those to a program that has ended.
    fn with_one_that_receives_nothing(fake: &Fake) -> Vec<One> {
        all_at(&vec![fake.doors[0].clone(); 5])
    }

    impl One {
        /// Closes it. Returns how long that waited.
        fn drain(&mut self) -> Duration {
            let begin = Instant::now();
            self.endpoint.drain(&mut self.shared);
            begin.elapsed()
        }
    }

    /// Ranks that end together owe each other acknowledgements.
    #[test]
    fn an_acknowledgement_to_an_ended_program_keeps_nobody() {
        let fake = Fake::start(1);
        let mut all = with_one_that_receives_nothing(&fake);
        // Beyond half of its window it requests an acknowledgement.
        (0..10).for_each(|n| all[4].send(0, 1, n, pattern(8, n)));
        all[4].take_all_in(&fake);
        all[0].take_all_in(&fake);
        assert_eq!(all[0].under_way(), 1, "it is owed, and finds no receive");
        all.pop();
        fake.settle();
        let took = all[0].drain();
        assert!(took < SOON, "{took:?}");
        // Earlier messages have arrived.
        for n in 0..10 {
            let into = all[0].receive(1, 20 + n, 8);
            assert_eq!(wait(&mut all, 0).context, 20 + n);
            assert_eq!(into.now(), pattern(8, n));
        }
    }

    #[test]
    fn a_message_to_an_ended_program_fails_at_once() {
        let fake = Fake::start(1);
        let mut all = with_one_that_receives_nothing(&fake);
        // More than its window: some wait for acknowledgements.
        (0..20).for_each(|n| all[0].send(4, 1, n, pattern(8, 0)));
        fake.settle();
        assert!(all[0].endpoint.queued > 0);
        all.pop();
        fake.settle();
        let took = all[0].drain();
        assert!(took < SOON, "{took:?}");
        let mut errors = all[0].errors();
        errors.sort_unstable_by_key(|error| error.0);
        let contexts: Vec<_> = errors.iter().map(|error| error.0).collect();
        assert_eq!(contexts, (0..20).collect::<Vec<_>>());
        // The fate of the messages sent is unknown; the rest was not sent.
        let is_told = |&(_, errno, why): &(usize, i32, Why)| {
            errno == LOST && matches!(why, Why::Unknown | Why::Departed)
        };
        assert!(errors.iter().all(is_told), "{errors:?}");
    }

    /// A live peer that is unreachable for a while gets everything in the end.
    #[test]
    fn who_lives_is_waited_for() {
        let fake = Fake::start(2);
        let mut all = all(&fake);
        fake.silence(1);
        all[0].send(1, 1, 1, pattern(8, 3));
        let pause = Duration::from_millis(600);
        let took = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(pause);
                fake.rejoin();
            });
            all[0].drain()
        });
        assert!(took > pause / 2, "{took:?}");
        assert_eq!(all[0].errors(), []);
        all.remove(0);
        let into = all[0].receive(1, 2, 8);
        assert_eq!(wait(&mut all, 0).context, 2);
        assert_eq!(into.now(), pattern(8, 3));
    }

    /// A live peer without receives replies to each probe: nothing is given up.
    #[test]
    fn who_lives_without_receives_is_waited_for() {
        let fake = Fake::start(1);
        let mut all = with_one_that_receives_nothing(&fake);
        all[0].send(4, 1, 1, pattern(8, 0));
        let took = all[0].drain();
        assert!(took > SOON, "{took:?}");
        assert_eq!(all[0].errors(), []);
    }

    #[test]
    fn who_says_nothing_has_not_ended() {
        let fake = Fake::start(2);
        let mut all = all(&fake);
        fake.silence(1);
        all[0].send(1, 1, 1, pattern(8, 0));
        let took = all[0].drain();
        assert!(took > SOON, "{took:?}");
        assert_eq!(all[0].errors(), []);
        // The message, one probe of closing, and those of the checks, one in two seconds.
        assert!(all[0].under_way() <= 4, "questions accumulate");
        // The peer is reported as dead, not as ended.
        assert_eq!(
            all[0].looks(&fake, ENOUGH),
            [(1, libc::ETIMEDOUT, Why::Unknown)]
        );
    }

    #[test]
    fn a_door_that_is_killed_ends_it() {
        let mut fake = Fake::start(2);
        let mut all = all(&fake);
        fake.silence(1);
        all[0].send(1, 1, 1, pattern(8, 0));
        fake.settle();
        fake.stop();
        let took = all[0].drain();
        assert!(took < SOON, "{took:?}");
        assert_eq!(all[0].errors(), [(1, libc::ENETDOWN, Why::Unknown)]);
    }
}
