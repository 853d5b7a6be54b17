use super::*;
use crate::nic::traffic_issuer::Block;
use crate::nic::traffic_pattern::TrafficPattern;
use crate::nic::traffic_spec::tests::FULL;

/// Accepts and records every request, but none while closed.
#[derive(Default)]
struct Taken(VecDeque<(u16, RunRequest, u64)>, bool);

impl Issuer for Taken {
    fn can_go(&self, _address: u64) -> bool {
        true
    }

    fn has_alternative_paths(&self) -> bool {
        false
    }

    fn issue(&mut self, processor: u16, request: RunRequest, message: &Message<'_>) -> bool {
        if self.1 {
            return false;
        }
        let address = match *message {
            Message::Block(Block { address, .. })
            | Message::Put { address, .. }
            | Message::Get { address, .. }
            | Message::Add { address } => address,
            Message::Announce(_) => 0,
        };
        self.0.push_back((processor, request, address));
        true
    }
}

/// Two targets with one address each; the first never responds, so the run continues with the
/// second. Regression: it stalled forever when the first was next.
#[test]
fn a_target_all_of_whose_addresses_are_given_up_does_not_hold_up_the_others() {
    let now = Time::ZERO;
    let in_turn = run_to(&[1, 2]).pattern;
    for pattern in [TrafficPattern::Uniform, in_turn] {
        let spec = TrafficSpec {
            pattern,
            processors: vec![0, 1, 2],
            // The last line has no room for its number.
            size: 65,
            window: 10,
            count: 20,
            addresses: 1,
            ..TrafficSpec::default()
        };
        let mut driver = driver(spec, now);
        let mut taken = Taken::default();
        for _ in 0..50 {
            driver.issue(now, &mut taken);
            while let Some((processor, request, address)) = taken.0.pop_front() {
                match request {
                    RunRequest::Announcement(index) => {
                        driver.announcement_answered(
                            (index, false),
                            Duration::ZERO,
                            Answered::Written,
                        );
                    }
                    RunRequest::Repetition { .. } | RunRequest::Question(_) => {
                        panic!("unexpected request")
                    }
                    RunRequest::Message(index) => {
                        let answered = [Answered::Written, Answered::Unknown];
                        let answered = answered[usize::from(processor == 1)];
                        driver.message_answered(now, now, (index, address), answered);
                    }
                }
            }
        }
        let report = driver.report();
        assert_eq!(
            (report.phase, report.sent),
            (RunPhase::Done, 20),
            "{report:?}"
        );
        assert_eq!((report.acknowledged, report.timed_out), (19, 1));
    }
}

/// A block may follow one of unknown fate to the same address. Regression: a run of blocks ended
/// when its target was unreachable for a while.
#[test]
fn blocks_follow_those_of_which_nothing_is_known() {
    use Operation::{Get, Put};
    for (op, size, follows) in [
        (Get, 128, true),
        (Get, 65, true),
        (Put, 128, true),
        (Put, 72, true),
        (Put, 65, false),
        (Put, 71, false),
    ] {
        let spec = TrafficSpec {
            op,
            size,
            window: 64,
            count: 100,
            addresses: 2,
            ..run_to(&[1])
        };
        let (mut driver, mut taken) = driven(spec);
        open(&mut driver, &mut taken, 0..1);
        for answered in [Answered::Unknown, Answered::Refused, Answered::Written] {
            for _ in 0..5 {
                driver.issue(ms(0), &mut taken);
                assert!(taken.0.len() <= 2, "one request per address at a time");
                answer(&mut driver, &mut taken, ms(9), ms(0), answered);
            }
        }
        driver.issue(ms(9), &mut taken);
        let report = driver.report();
        let counts = (report.timed_out, report.refused, report.acknowledged);
        let expected = if follows { (10, 10, 10) } else { (2, 0, 0) };
        assert_eq!(counts, expected, "{op:?} {size}: {report:?}");
        assert_eq!(driver.is_done(), !follows);
    }
}

const TIMEOUT: Duration = Duration::from_ms(90);

fn run_to(destinations: &[u16]) -> TrafficSpec {
    let destinations = destinations.to_vec();
    TrafficSpec {
        pattern: TrafficPattern::List { destinations },
        ..TrafficSpec::default()
    }
}

fn driven(spec: TrafficSpec) -> (Driver, Taken) {
    (driver(spec, Time::ZERO), Taken::default())
}

fn ms(ms: u64) -> Time {
    Time::ZERO + Duration::from_ms(ms)
}

/// Responds to all outstanding messages, which were sent at `sent`.
fn answer(driver: &mut Driver, taken: &mut Taken, now: Time, sent: Time, answered: Answered<'_>) {
    for (_, request, address) in core::mem::take(&mut taken.0) {
        let RunRequest::Message(index) = request else {
            panic!("the run is still open");
        };
        driver.message_answered(now, sent, (index, address), answered);
    }
}

/// Lets `driver` announce its run, which the targets in `indices` accept.
fn open(driver: &mut Driver, taken: &mut Taken, indices: core::ops::Range<u16>) {
    driver.issue(Time::ZERO, taken);
    taken.0.clear();
    indices.for_each(|index| {
        driver.announcement_answered((index.into(), false), Duration::ZERO, Answered::Written)
    });
}

fn driver(spec: TrafficSpec, now: Time) -> Driver {
    let source = Source {
        processor: 0,
        memory_bytes: 1 << 20,
        nonce: 1,
        abilities: FULL,
        timeout: TIMEOUT,
    };
    let driver = Driver::new(spec, source, |number| Some(number.into()), now);
    driver.expect("a valid run")
}

/// Regression: the run waited for three successive timeouts.
#[test]
fn a_target_that_no_announcement_reaches_is_known_after_one_time_out() {
    let spec = TrafficSpec {
        count: 4,
        ..run_to(&[7, 2])
    };
    let (mut driver, mut taken) = driven(spec);
    let mut announced = Vec::new();
    let mut answered = false;
    for ms in 0..=90 {
        let now = Time::ZERO + Duration::from_ms(ms);
        assert!(driver.deadline().is_none_or(|at| at >= now));
        driver.issue(now, &mut taken);
        while let Some((processor, request, _)) = taken.0.pop_front() {
            let is_first = matches!(request, RunRequest::Announcement(_));
            assert_eq!(is_first, ms == 0, "{request:?}");
            if processor == 7 {
                announced.push(ms);
            } else if !answered {
                // The second target responds to its first announcement, the first target to none.
                driver.announcement_answered((1, false), Duration::ZERO, Answered::Written);
                answered = true;
            }
        }
    }
    assert_eq!(announced, [0, 1, 2, 3, 4, 5, 6, 7, 8, 38, 68]);
    assert_eq!(driver.report().phase, RunPhase::Opening);
    let now = Time::ZERO + TIMEOUT;
    driver.announcement_answered((0, false), Duration::ZERO, Answered::Unknown);
    driver.issue(now, &mut taken);
    let report = driver.report();
    assert_eq!((report.unreachable, report.unreached), (1, vec![7]));
    assert_eq!((report.phase, report.sent), (RunPhase::Draining, 4));
    // Later responses to repetitions change nothing, and the run does not wait for them.
    driver.announcement_answered((0, true), Duration::ZERO, Answered::Unknown);
    while let Some((processor, request, address)) = taken.0.pop_front() {
        let RunRequest::Message(index) = request else {
            panic!("only messages are sent");
        };
        assert_eq!(processor, 2);
        driver.message_answered(now, now, (index, address), Answered::Written);
    }
    driver.issue(now, &mut taken);
    assert_eq!(driver.report().phase, RunPhase::Done);
    driver.announcement_answered((0, true), Duration::ZERO, Answered::Written);
    assert_eq!(driver.report().outstanding, 0);
}

/// A run may end while its repetitions are in flight, and another may begin.
#[test]
fn a_repetition_counts_for_its_own_run_only() {
    let (mut driver, mut taken) = driven(run_to(&[7, 2]));
    driver.issue(Time::ZERO, &mut taken);
    let serial = driver.serial;
    driver.repetition_answered((1, serial + 1), Duration::ZERO, Answered::Written);
    assert!(matches!(driver.targets[1].state, State::Unknown { .. }));
    driver.repetition_answered((1, serial), Duration::ZERO, Answered::Written);
    assert!(!matches!(driver.targets[1].state, State::Unknown { .. }));
}

/// The run opens when a repetition arrives after the first announcement was lost; timeouts of
/// repetitions are ignored.
#[test]
fn a_repeated_announcement_may_reach_a_target_that_missed_the_first() {
    let spec = TrafficSpec {
        count: 1,
        ..run_to(&[7])
    };
    let (mut driver, mut taken) = driven(spec);
    driver.issue(Time::ZERO, &mut taken);
    driver.issue(Time::ZERO + Duration::from_ms(60), &mut taken);
    driver.announcement_answered((0, true), Duration::ZERO, Answered::Unknown);
    assert_eq!(driver.report().phase, RunPhase::Opening);
    driver.announcement_answered((0, true), Duration::ZERO, Answered::Written);
    driver.issue(Time::ZERO + Duration::from_ms(61), &mut taken);
    assert_eq!(driver.report().sent, 1);
}

#[test]
fn a_damaged_announcement_is_resent_at_once_a_limited_number_of_times() {
    let (mut driver, mut taken) = driven(run_to(&[7]));
    for _ in 0..=REPEATS {
        driver.issue(Time::ZERO, &mut taken);
        assert_eq!(taken.0.len(), 1);
        taken.0.clear();
        driver.announcement_answered((0, false), Duration::ZERO, Answered::Damaged);
    }
    driver.issue(Time::ZERO, &mut taken);
    assert_eq!(driver.report().phase, RunPhase::Done);
    assert_eq!(driver.report().unreached, [7]);
}

/// Regression: the rate included the wait for timeouts, 10 s after a fault for a run of 2 s.
#[test]
fn the_wait_for_time_outs_is_no_part_of_the_rate() {
    let second = Duration::from_ms(1_000);
    for (ends_by, duration_ns, count) in [("time", 2 * second.as_ns(), 0), ("count", 0, 150)] {
        let spec = TrafficSpec {
            window: 100,
            duration_ns,
            count,
            ..run_to(&[1])
        };
        let (mut driver, mut taken) = driven(spec);
        open(&mut driver, &mut taken, 0..1);
        driver.issue(Time::ZERO, &mut taken);
        // After a second a hundred have completed; the others never do.
        let (begin, at) = (Time::ZERO, Time::ZERO + second);
        answer(&mut driver, &mut taken, at, begin, Answered::Written);
        driver.issue(Time::ZERO + second, &mut taken);
        driver.issue(Time::ZERO + second.times(2), &mut taken);
        let late = Time::ZERO + second.times(12);
        answer(&mut driver, &mut taken, late, begin, Answered::Unknown);
        assert!(driver.issue(late, &mut taken));
        let report = driver.report();
        assert_eq!(report.acknowledged, 100, "ended by {ends_by}");
        let (rate, drain) = if count == 0 { (50, 10) } else { (100, 11) };
        assert_eq!(report.messages_per_second(), rate, "ended by {ends_by}");
        assert_eq!(report.drain_ns, second.times(drain).as_ns());
    }
}

/// Announcements by `driver` at the times `ms`, without any response: target, time, and whether it
/// is a repetition.
fn announced(
    driver: &mut Driver,
    taken: &mut Taken,
    ms: core::ops::Range<u64>,
) -> Vec<(u16, u64, bool)> {
    let mut all = Vec::new();
    for ms in ms {
        driver.issue(Time::ZERO + Duration::from_ms(ms), taken);
        while let Some((processor, request, _)) = taken.0.pop_front() {
            let again = matches!(request, RunRequest::Repetition { .. });
            all.push((processor, ms, again));
        }
    }
    all
}

/// Times in ms of the announcements to a silent target, starting at `from`.
fn attempts(from: u64) -> Vec<u64> {
    let quick = [0, 1, 3, 7, 15, 23, 31, 39, 47];
    let after = quick.into_iter().chain([77, 107]);
    after.map(|ms| from + ms).collect()
}

/// Announcements to a processor at these times; all but the first are repetitions.
fn to(processor: u16, at: &[u64]) -> Vec<(u16, u64, bool)> {
    let each = at.iter().enumerate();
    each.map(|(n, &ms)| (processor, ms, n > 0)).collect()
}

/// Regression: on an idle network every fault that hit the next packet hit an announcement, and
/// three of them within a timeout were too few.
#[test]
fn a_run_opens_although_its_first_announcements_are_lost() {
    for lost in [1, 3, u64::from(QUICK)] {
        let (mut driver, mut taken) = driven(run_to(&[7]));
        let mut tried = 0;
        for ms in 0..60 {
            let all = announced(&mut driver, &mut taken, ms..ms + 1);
            tried += all.len() as u64;
            if tried > lost {
                driver.announcement_answered((0, true), Duration::ZERO, Answered::Written);
                break;
            }
        }
        driver.issue(Time::ZERO + Duration::from_ms(60), &mut taken);
        assert_eq!(driver.report().phase, RunPhase::Running, "{lost} lost");
    }
}

/// Regression: in a paced lab every announcement was repeated eight times before a response could
/// arrive, so that there were more announcements than messages.
#[test]
fn nothing_is_repeated_before_an_answer_can_have_come() {
    let (mut driver, mut taken) = driven(run_to(&[7, 8]));
    let all = announced(&mut driver, &mut taken, 0..5);
    assert_eq!(all.len(), 6, "at 0, 1 and 3 ms, to both targets");
    // The response to the 1 ms repetition took 4 ms: the next is due at 3 + 8 ms, not at 7.
    driver.announcement_answered((0, true), Duration::from_ms(4), Answered::Written);
    let all = announced(&mut driver, &mut taken, 5..27);
    assert_eq!(all, [(8, 11, true), (8, 19, true)]);
}

/// A restarted NIC cannot send at once. Regression: repetitions counted from the start of the run,
/// and those that could not be sent were lost.
#[test]
fn repetitions_are_counted_from_the_first_that_has_gone() {
    let spec = run_to(&[7]);
    for opens in [0, 29, 30, 31, 59, 60, 61, 2_000] {
        let (mut driver, mut taken) = driven(spec.clone());
        taken.1 = true;
        assert_eq!(announced(&mut driver, &mut taken, 0..opens), []);
        assert_eq!(driver.deadline(), None, "the NIC has its own timers");
        taken.1 = false;
        let all = announced(&mut driver, &mut taken, opens..opens + 500);
        assert_eq!(all, to(7, &attempts(opens)));
    }
    // The issuer is closed for a while: a due repetition is sent as soon as possible, the next
    // after another interval.
    let (mut driver, mut taken) = driven(spec);
    announced(&mut driver, &mut taken, 0..50);
    taken.1 = true;
    announced(&mut driver, &mut taken, 50..85);
    taken.1 = false;
    let all = announced(&mut driver, &mut taken, 85..500);
    assert_eq!(all, [(7, 85, true), (7, 115, true)]);
}

/// Regression: announcements filled the window, so that a window of one message left no room for
/// repetitions.
#[test]
fn repetitions_do_not_wait_for_the_window() {
    let spec = TrafficSpec {
        window: 1,
        ..run_to(&[7, 8])
    };
    let (mut driver, mut taken) = driven(spec);
    let all = announced(&mut driver, &mut taken, 0..120);
    assert_eq!(all, to(7, &attempts(0)));
    driver.announcement_answered((0, false), Duration::ZERO, Answered::Unknown);
    let all = announced(&mut driver, &mut taken, 120..500);
    assert_eq!(all, to(8, &attempts(120)));
    driver.announcement_answered((1, true), Duration::ZERO, Answered::Written);
    driver.announcement_answered((1, false), Duration::ZERO, Answered::Unknown);
    driver.issue(Time::ZERO + Duration::from_ms(500), &mut taken);
    let report = driver.report();
    assert_eq!(
        (report.phase, report.unreached),
        (RunPhase::Running, vec![7])
    );
}

/// Regression: such a target counted as unreachable.
#[test]
fn a_target_that_refuses_the_run_is_distinguished_from_a_silent_one() {
    let spec = TrafficSpec {
        count: 1,
        ..run_to(&[7, 8, 9])
    };
    let (mut driver, mut taken) = driven(spec);
    driver.issue(Time::ZERO, &mut taken);
    driver.announcement_answered((0, false), Duration::ZERO, Answered::Refused);
    driver.announcement_answered((1, false), Duration::ZERO, Answered::Unknown);
    driver.announcement_answered((2, false), Duration::ZERO, Answered::Written);
    // Later results of the first target do not make it unreachable.
    driver.announcement_answered((0, true), Duration::ZERO, Answered::Unknown);
    driver.issue(Time::ZERO, &mut taken);
    let report = driver.report();
    assert!(!report.is_clean());
    assert_eq!((report.unwilling, report.refusers), (1, vec![7]));
    assert_eq!((report.unreachable, report.unreached), (1, vec![8]));
    assert_eq!((report.sent, report.refused), (1, 0));
}

/// The target's answer when asked whether it knows the run.
const KNOWS: Answered<'_> = Answered::Written;
const DOES_NOT: Answered<'_> = Answered::Refused;

/// A run of two gets or additions of `size` to each of two targets. The first target's words are
/// zeros, and it answers with `says` at the end. Returns the counts of corrupted and unwritten
/// results, before and after that answer.
fn zeros_found(op: Operation, size: u32, says: Answered<'_>) -> [(u64, u64); 2] {
    let spec = TrafficSpec {
        op,
        size,
        count: 4,
        ..run_to(&[1, 2])
    };
    let (now, (mut driver, mut taken)) = (Time::ZERO, driven(spec));
    open(&mut driver, &mut taken, 0..2);
    driver.issue(now, &mut taken);
    let sent: Vec<_> = taken.0.drain(..).collect();
    assert_eq!(sent.len(), 4);
    for (processor, request, address) in sent {
        let RunRequest::Message(index) = request else {
            panic!("{request:?}");
        };
        let is_zero = processor == 1;
        let line = [crate::nic::stamp::read_line(address), [0; 64]][usize::from(is_zero)];
        let whole = [Found::Whole, Found::Blank][usize::from(is_zero)];
        let first = driver.targets[index as usize].stamp.first_count(address);
        let answered = match op {
            Operation::Amo => Answered::Added(if is_zero { 0 } else { first }),
            _ if size > MAX_SIZE => Answered::ReadBlock(whole),
            _ => Answered::Read(&line[..size as usize]),
        };
        driver.message_answered(now, now, (index, address), answered);
    }
    let counts = |driver: &Driver| (driver.report().corrupted, driver.report().unwritten);
    assert!(!driver.issue(now, &mut taken), "one target is to be probed");
    let before = counts(&driver);
    for _ in 0..3 {
        let question = (1, RunRequest::Question(0), 0);
        assert_eq!(taken.0.pop_front(), Some(question), "{op:?} {size}");
        assert!(taken.0.is_empty(), "the other target is not probed");
        driver.question_answered(0, Answered::Damaged);
        assert!(!driver.issue(now, &mut taken));
    }
    driver.question_answered(0, says);
    assert!(driver.issue(now, &mut taken), "the run has ended");
    let report = driver.report();
    assert_eq!((report.phase, report.acknowledged), (RunPhase::Done, 4));
    assert!(!report.is_clean() && report.duplicated == 0);
    [before, counts(&driver)]
}

/// Regression: zeros counted as corrupted at every target.
#[test]
fn zeros_are_corrupt_only_where_the_run_is_known() {
    let gets = [1, 2, 3, 4, 5, 8, 31, 64, 65, 4_096].map(|size| (Operation::Get, size));
    for (op, size) in gets.into_iter().chain([(Operation::Amo, 8)]) {
        if op == Operation::Get && size <= MAX_SIZE && size % 4 != 0 {
            continue;
        }
        assert_eq!(zeros_found(op, size, DOES_NOT), [(0, 2), (0, 2)], "{size}");
        assert_eq!(zeros_found(op, size, Answered::Unknown), [(0, 2), (0, 2)]);
        assert_eq!(zeros_found(op, size, KNOWS), [(0, 2), (2, 0)], "{size}");
    }
}

/// A run with a rate to processor 1, opened at time zero.
fn paced(rate: u64, window: u32, duration: Duration, count: u64) -> (Driver, Taken) {
    let spec = TrafficSpec {
        pattern: TrafficPattern::List {
            destinations: vec![1],
        },
        rate,
        window,
        duration_ns: duration.as_ns(),
        count,
        ..TrafficSpec::default()
    };
    let (mut driver, mut taken) = driven(spec);
    open(&mut driver, &mut taken, 0..1);
    (driver, taken)
}

/// A source that is driven only by its deadlines issues one message each time, at its rate.
#[test]
fn a_source_with_a_rate_is_woken_for_each_message() {
    let second = Duration::from_ms(1_000);
    let (mut driver, mut taken) = paced(997, 10, second, 0);
    let (mut now, mut turns) = (Time::ZERO, 0_u64);
    while !driver.issue(now, &mut taken) {
        assert!(taken.0.len() <= 1);
        answer(&mut driver, &mut taken, now, now, Answered::Written);
        if let Some(next) = driver.deadline() {
            // A deadline in the past would spin forever.
            assert!(next > now);
            now = next;
        }
        turns += 1;
    }
    let report = driver.report();
    assert_eq!((report.sent, report.not_offered), (997, 0));
    assert!(turns <= 1_000, "{turns}");
    assert_eq!(now, Time::ZERO + second);
}

/// The window is full, or the link is blocked. A window of messages is sent later; the others are
/// counted as dropped.
#[test]
fn a_source_that_is_held_up_catches_up_with_a_window_of_messages() {
    for link_is_closed in [false, true] {
        let (mut driver, mut taken) = paced(1_000, 10, Duration::from_ms(1_000), 0);
        taken.1 = link_is_closed;
        for at in 0..=100 {
            driver.issue(ms(at), &mut taken);
        }
        let window = if link_is_closed { 0 } else { 10 };
        assert_eq!(driver.report().sent, window);
        assert_eq!(driver.report().not_offered, 90 - window);
        let end = driver.deadline();
        assert_eq!(end, Some(ms(1_000)), "no other wake-up");
        taken.1 = false;
        let all = Answered::Written;
        answer(&mut driver, &mut taken, ms(100), ms(100), all);
        driver.issue(ms(100), &mut taken);
        assert_eq!(driver.report().sent, window + 10);
        // The driver is not called again before 2.5 s, long after the run's end.
        driver.issue(ms(2_500), &mut taken);
        answer(&mut driver, &mut taken, ms(2_500), ms(2_500), all);
        assert!(driver.issue(ms(2_500), &mut taken));
        let report = driver.report();
        let due = report.sent + report.not_offered;
        assert_eq!(due, 1_000, "all messages due in this second");
    }
}

#[test]
fn a_count_ends_a_run_with_a_rate_without_a_debt() {
    let (mut driver, mut taken) = paced(1_000, 10, Duration::ZERO, 15);
    for at in (0..=100).map(ms) {
        driver.issue(at, &mut taken);
        answer(&mut driver, &mut taken, at, at, Answered::Written);
    }
    let report = driver.report();
    assert_eq!((report.sent, report.not_offered), (15, 0));
    let took = report.elapsed_ns;
    assert!((14_000_000..=16_000_000).contains(&took), "{report:?}");
}
