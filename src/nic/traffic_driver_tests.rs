use super::*;
use crate::nic::traffic_spec::Pattern;

/// Takes everything at once, and remembers what.
#[derive(Default)]
struct Taken(VecDeque<(u16, Errand, u64)>);

impl Issuer for Taken {
    fn can_go(&self, _address: u64) -> bool {
        true
    }

    fn has_other_ways(&self) -> bool {
        false
    }

    fn issue(&mut self, processor: u16, errand: Errand, message: &Message<'_>) -> bool {
        let address = match message {
            Message::Block(block) => block.address,
            _ => 0,
        };
        self.0.push_back((processor, errand, address));
        true
    }
}

/// Two targets with one address each, of which the first never answers: the run goes on with the second. It stood
/// still for ever where the first was next.
#[test]
fn a_target_all_of_whose_addresses_are_given_up_does_not_hold_up_the_others() {
    let now = Time::ZERO;
    let in_turn = Pattern::List {
        destinations: vec![1, 2],
    };
    for pattern in [Pattern::Uniform, in_turn] {
        let spec = TrafficSpec {
            pattern,
            processors: vec![0, 1, 2],
            size: 100,
            window: 10,
            count: 20,
            addresses: 1,
            ..TrafficSpec::default()
        };
        let mut driver = driver(spec, now);
        let mut taken = Taken::default();
        for _ in 0..50 {
            driver.issue(now, &mut taken);
            while let Some((processor, errand, address)) = taken.0.pop_front() {
                match errand {
                    Errand::Announcement(index) => {
                        driver.announcement_answered(index, false, Answered::Written);
                    }
                    Errand::Repetition(_) => panic!("no time has passed"),
                    Errand::Message(index) => {
                        let answered = if processor == 1 {
                            Answered::Unknown
                        } else {
                            Answered::Written
                        };
                        driver.message_answered(now, now, (index, address), answered);
                    }
                }
            }
        }
        let report = driver.report();
        assert_eq!((report.phase, report.sent), (Phase::Done, 20), "{report:?}");
        assert_eq!((report.acknowledged, report.timed_out), (19, 1));
    }
}

const TIMEOUT: Duration = Duration::from_ms(90);

fn driver(spec: TrafficSpec, now: Time) -> Driver {
    let source = Source {
        processor: 0,
        memory_bytes: 1 << 20,
        nonce: 1,
        abilities: Abilities::ARIES,
        timeout: TIMEOUT,
    };
    let driver = Driver::new(spec, source, |number| Some(number.into()), now);
    driver.expect("a legal run")
}

/// Three time-outs one after the other were waited for.
#[test]
fn a_target_that_no_announcement_reaches_is_known_after_one_time_out() {
    let spec = TrafficSpec {
        pattern: Pattern::List {
            destinations: vec![7, 2],
        },
        count: 4,
        ..TrafficSpec::default()
    };
    let (mut driver, mut taken) = (driver(spec, Time::ZERO), Taken::default());
    let mut announced = Vec::new();
    let mut answered = false;
    for ms in 0..=90 {
        let now = Time::ZERO + Duration::from_ms(ms);
        assert!(driver.deadline().is_none_or(|at| at >= now));
        driver.issue(now, &mut taken);
        while let Some((processor, errand, _)) = taken.0.pop_front() {
            let is_first = matches!(errand, Errand::Announcement(_));
            assert_eq!(is_first, ms == 0, "{errand:?}");
            if processor == 7 {
                announced.push(ms);
            } else if !answered {
                // The second of the first target's is lost as well.
                driver.announcement_answered(1, false, Answered::Written);
                answered = true;
            }
        }
    }
    assert_eq!(announced, [0, 30, 60]);
    assert_eq!(driver.report().phase, Phase::Opening);
    let now = Time::ZERO + TIMEOUT;
    driver.announcement_answered(0, false, Answered::Unknown);
    driver.issue(now, &mut taken);
    let report = driver.report();
    assert_eq!((report.unreachable, report.unreached), (1, vec![7]));
    assert_eq!((report.phase, report.sent), (Phase::Draining, 4));
    // What comes of the repetitions later changes nothing, and is not waited for.
    driver.announcement_answered(0, true, Answered::Unknown);
    while let Some((processor, errand, address)) = taken.0.pop_front() {
        let Errand::Message(index) = errand else {
            panic!("nothing else is sent");
        };
        assert_eq!(processor, 2);
        driver.message_answered(now, now, (index, address), Answered::Written);
    }
    driver.issue(now, &mut taken);
    assert_eq!(driver.report().phase, Phase::Done);
    driver.announcement_answered(0, true, Answered::Written);
    assert_eq!(driver.report().outstanding, 0);
}

#[test]
fn what_was_repeated_is_known_by_its_run() {
    for (serial, index) in [(0, 0), (1, 32_767), (0x1_ffff, 5), (77, 4_096)] {
        let repetition = Repetition::new(serial, index);
        assert_eq!(repetition.of(serial), Some(index));
        assert_eq!(repetition.of(serial + 1), None);
    }
}

/// A repetition that gets through where the first was lost is as good; its time-out says nothing.
#[test]
fn a_repetition_may_reach_who_the_first_did_not() {
    let spec = TrafficSpec {
        pattern: Pattern::List {
            destinations: vec![7],
        },
        count: 1,
        ..TrafficSpec::default()
    };
    let (mut driver, mut taken) = (driver(spec, Time::ZERO), Taken::default());
    driver.issue(Time::ZERO, &mut taken);
    driver.issue(Time::ZERO + Duration::from_ms(60), &mut taken);
    driver.announcement_answered(0, true, Answered::Unknown);
    assert_eq!(driver.report().phase, Phase::Opening);
    driver.announcement_answered(0, true, Answered::Written);
    driver.issue(Time::ZERO + Duration::from_ms(61), &mut taken);
    assert_eq!(driver.report().sent, 1);
}

#[test]
fn an_announcement_that_is_damaged_is_said_again_at_once_but_not_for_ever() {
    let spec = TrafficSpec {
        pattern: Pattern::List {
            destinations: vec![7],
        },
        ..TrafficSpec::default()
    };
    let (mut driver, mut taken) = (driver(spec, Time::ZERO), Taken::default());
    for _ in 0..=REPEATS {
        driver.issue(Time::ZERO, &mut taken);
        assert_eq!(taken.0.len(), 1);
        taken.0.clear();
        driver.announcement_answered(0, false, Answered::Damaged);
    }
    driver.issue(Time::ZERO, &mut taken);
    assert_eq!(driver.report().phase, Phase::Done);
    assert_eq!(driver.report().unreached, [7]);
}

/// The rate was divided by the wait for time-outs as well: 10 s of it after a fault, of a run of 2 s.
#[test]
fn the_wait_for_time_outs_is_no_part_of_the_rate() {
    let second = Duration::from_ms(1_000);
    for (ends_by, duration_ns, count) in [("time", 2 * second.as_ns(), 0), ("count", 0, 150)] {
        let spec = TrafficSpec {
            pattern: Pattern::List {
                destinations: vec![1],
            },
            window: 100,
            duration_ns,
            count,
            ..TrafficSpec::default()
        };
        let (mut driver, mut taken) = (driver(spec, Time::ZERO), Taken::default());
        driver.issue(Time::ZERO, &mut taken);
        taken.0.clear();
        driver.announcement_answered(0, false, Answered::Written);
        driver.issue(Time::ZERO, &mut taken);
        // A second later a hundred are answered; those that follow never are.
        for (_, errand, address) in core::mem::take(&mut taken.0) {
            let Errand::Message(index) = errand else {
                panic!("the run is open");
            };
            driver.message_answered(
                Time::ZERO + second,
                Time::ZERO,
                (index, address),
                Answered::Written,
            );
        }
        driver.issue(Time::ZERO + second, &mut taken);
        driver.issue(Time::ZERO + second.times(2), &mut taken);
        let late = Time::ZERO + second.times(12);
        for (_, errand, address) in core::mem::take(&mut taken.0) {
            let Errand::Message(index) = errand else {
                panic!("the run is open");
            };
            driver.message_answered(late, Time::ZERO, (index, address), Answered::Unknown);
        }
        assert!(driver.issue(late, &mut taken));
        let report = driver.report();
        assert_eq!(report.acknowledged, 100, "ended by {ends_by}");
        let (rate, drain) = match ends_by {
            "time" => (50, 10),
            _ => (100, 11),
        };
        assert_eq!(report.messages_per_second(), rate, "ended by {ends_by}");
        assert_eq!(report.drain_ns, second.times(drain).as_ns());
    }
}
