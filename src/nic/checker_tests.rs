use super::*;
use crate::nic::block_lines::block_found;
use crate::nic::stamp::Found;

const SOURCE: u32 = 9;
const TARGET: u32 = 4;
const BASE: u64 = 0x4000;

fn announcement(run: u64, size: u32) -> Announcement {
    Announcement {
        run,
        nonce: 77,
        op: Operation::Put,
        ordered: true,
        size,
        addresses: 4,
        base: BASE,
    }
}

struct Bench {
    checker: Checker,
    memory: Memory,
    stamp: Stamp,
    size: usize,
    run: u64,
}

impl Bench {
    fn new(size: u32) -> Self {
        let mut checker = Checker::default();
        let mut memory = Memory::new(1 << 20);
        let answer = checker.announce(SOURCE, TARGET, announcement(1, size), &mut memory);
        assert_eq!(answer, Announced::Accepted);
        let stamp = Stamp::of_run(1, 77, SOURCE, TARGET);
        Self {
            checker,
            memory,
            stamp,
            size: size as usize,
            run: 1,
        }
    }

    fn announce(&mut self, run: u64, size: u32) -> Announced {
        self.run = run;
        self.size = size as usize;
        self.stamp = Stamp::of_run(run, 77, SOURCE, TARGET);
        self.take_announcement(announcement(run, size))
    }

    fn take_announcement(&mut self, announcement: Announcement) -> Announced {
        let (checker, memory) = (&mut self.checker, &mut self.memory);
        checker.announce(SOURCE, TARGET, announcement, memory)
    }

    fn put(&mut self, message: &[u8]) {
        self.checker.put(SOURCE, BASE + 64, message);
    }

    fn message(&self, number: u32) -> Vec<u8> {
        let mut data = [0; 64];
        self.stamp.fill(BASE + 64, number, &mut data, self.size);
        data[..self.size].to_vec()
    }

    fn deliver(&mut self, numbers: impl IntoIterator<Item = u32>) -> TrafficReport {
        for number in numbers {
            let data = self.message(number);
            self.put(&data);
        }
        self.report(self.run)
    }

    fn report(&self, run: u64) -> TrafficReport {
        let mut report = TrafficReport::default();
        assert!(self.checker.report(run, &mut report, |_| 0));
        report
    }
}

/// A report with only valid and stale messages.
fn seen(delivered: u64, stale: u64) -> TrafficReport {
    TrafficReport {
        delivered,
        stale,
        ..TrafficReport::default()
    }
}

#[test]
fn messages_in_order_raise_no_complaint_at_any_size() {
    for size in 1..=32 {
        let report = Bench::new(size).deliver(0..1000);
        assert_eq!(report, seen(1000, 0));
    }
}

// Canaries: every kind of damage is recognised. Sizes 4 and 7 use folded stamps.
const SIZES: [u32; 5] = [4, 7, 8, 13, 32];

#[test]
fn canary_duplicate() {
    for size in SIZES {
        let report = Bench::new(size).deliver([0, 1, 2, 2, 3, 0]);
        assert_eq!((report.delivered, report.duplicated), (4, 2), "{size}");
        let others = [report.corrupted, report.misordered, report.missing];
        assert_eq!(others, [0; 3]);
    }
}

#[test]
fn canary_misorder() {
    for size in SIZES {
        let mut bench = Bench::new(size);
        let report = bench.deliver([0, 1, 3, 2, 4]);
        assert_eq!((report.delivered, report.misordered), (5, 1), "{size}");
        let others = [report.corrupted, report.duplicated, report.missing];
        assert_eq!(others, [0; 3]);
        // A repetition of the late message is a duplicate, not a second misorder.
        let report = bench.deliver([2]);
        assert_eq!((report.misordered, report.duplicated), (1, 1));
    }
}

#[test]
fn canary_missing() {
    for size in SIZES {
        let report = Bench::new(size).deliver([0, 1, 4, 5]);
        assert_eq!((report.delivered, report.missing), (4, 2), "{size}");
        let others = [report.corrupted, report.duplicated, report.misordered];
        assert_eq!(others, [0; 3]);
    }
    let mut bench = Bench::new(8);
    let report = bench.deliver([0, 1000]);
    assert_eq!((report.delivered, report.missing), (2, 999));
    assert_eq!(bench.deliver([999]).misordered, 1);
    assert_eq!(bench.deliver([10]).misordered, 2);
    assert_eq!(bench.deliver([10]).duplicated, 1);
}

#[test]
fn canary_corruption() {
    for size in 1..=32 {
        for bit in 0..size as usize * 8 {
            let mut bench = Bench::new(size);
            let mut data = bench.message(0);
            data[bit / 8] ^= 1 << (bit % 8);
            bench.put(&data);
            let report = bench.report(1);
            // A stamp of a few bits may be taken for a neighbouring number, but never for the right
            // one.
            assert!(!report.is_clean(), "{size} bytes, bit {bit}");
            if size > 4 {
                assert_eq!(report.corrupted, 1, "{size} bytes, bit {bit}");
            }
        }
    }
}

#[test]
fn a_message_of_the_wrong_size_or_address_is_corrupt() {
    let mut bench = Bench::new(8);
    let good = bench.message(0);
    bench.checker.put(SOURCE, BASE + 64, &good[..7]);
    bench.checker.put(SOURCE, BASE + 128, &good);
    bench.checker.put(SOURCE, BASE + 65, &good);
    assert_eq!(bench.report(1).corrupted, 3);
}

#[test]
fn writes_outside_the_run_are_not_judged() {
    let mut bench = Bench::new(8);
    let good = bench.message(0);
    bench.checker.put(SOURCE, BASE - 1, &good);
    bench.checker.put(SOURCE, BASE + 4 * 64, &good);
    bench.checker.put(SOURCE + 1, BASE + 64, &good);
    bench.checker.put(0x7fff, BASE + 64, &good);
    assert_eq!(bench.report(1), TrafficReport::default());
}

#[test]
fn the_next_run_starts_over_and_stragglers_are_not_corrupt() {
    let mut bench = Bench::new(8);
    bench.deliver([0, 1, 2]);
    let old = bench.message(3);
    bench.take_announcement(announcement(2, 8));
    bench.put(&old);
    bench.stamp = Stamp::of_run(2, 77, SOURCE, TARGET);
    bench.deliver([0, 1]);
    assert_eq!(bench.checker.stragglers(), 1);
    assert_eq!(bench.report(2), seen(2, 1));
    assert_eq!(bench.report(1).delivered, 3);
    assert_eq!(bench.checker.latest_run(), Some(2));
}

#[test]
fn the_same_announcement_again_changes_nothing() {
    let mut bench = Bench::new(8);
    bench.deliver([0, 1]);
    bench.take_announcement(announcement(1, 8));
    assert_eq!(bench.deliver([2]).delivered, 3);
    assert_eq!(bench.report(1).missing, 0);
}

#[test]
fn runs_of_many_sources_leave_no_address_counted_that_nobody_writes_to() {
    let mut bench = Bench::new(8);
    let (mut checker, memory) = (Checker::default(), &mut bench.memory);
    let mut run = 0;
    let mut announce = |source| {
        run += 1;
        checker.announce(source, TARGET, announcement(run, 8), memory)
    };
    // Source 1 returns when the counts are full and its own run is the oldest.
    for _ in 0..200 {
        for source in core::iter::once(1).chain([2; KEPT_RUNS - 1]) {
            assert_eq!(announce(source), Announced::Accepted);
        }
    }
    assert_eq!(checker.checked, checker.addresses_checked());
    assert_eq!(checker.checked, 8);
}

#[test]
fn announcements_are_taken_apart_with_care() {
    let good = announcement(1, 8);
    let bytes = good.emit(Purpose::Begin);
    assert_eq!(Announcement::parse(&bytes), Some((Purpose::Begin, good)));
    let question = good.emit(Purpose::Ask);
    assert_eq!(Announcement::parse(&question), Some((Purpose::Ask, good)));
    assert_eq!(Announcement::parse(&bytes[..31]), None);
    let bad = [(0, 0), (12, 3), (12, 0x40), (24, 0), (13, 2), (13, 8)];
    let bad = bad.into_iter().chain([(27, 2), (15, 0x7f), (16, 1)]);
    for (at, value) in bad {
        let mut bad = bytes;
        bad[at] = value;
        assert_eq!(Announcement::parse(&bad), None, "byte {at} = {value}");
    }
    let mut checker = Checker::default();
    let mut memory = Memory::new(BASE + 4 * 64 - 1);
    let answer = checker.announce(SOURCE, TARGET, good, &mut memory);
    assert_eq!(answer, Announced::OutOfRange);
    let far = Announcement {
        base: u64::MAX - 63,
        ..good
    };
    let answer = checker.announce(SOURCE, TARGET, far, &mut memory);
    assert_eq!(answer, Announced::OutOfRange);
}

#[test]
fn old_runs_and_too_many_addresses_are_given_up() {
    let mut checker = Checker::default();
    let mut memory = Memory::new(1 << 20);
    for run in 1..=20 {
        let answer = checker.announce(run, TARGET, announcement(run.into(), 8), &mut memory);
        assert_eq!(answer, Announced::Accepted);
    }
    assert!(!checker.report(4, &mut TrafficReport::default(), |_| 0));
    assert!(checker.report(5, &mut TrafficReport::default(), |_| 0));
    assert_eq!(checker.checked, 16 * 4);
    let full = (0..2000).any(|source| {
        let many = Announcement {
            addresses: MAX_ADDRESSES,
            ..announcement(30, 8)
        };
        checker.announce(source, TARGET, many, &mut memory) == Announced::Full
    });
    assert!(full);
}

#[test]
fn a_get_run_finds_its_memory_filled() {
    let mut checker = Checker::default();
    let mut memory = Memory::new(1 << 20);
    let gets = Announcement {
        op: Operation::Get,
        ..announcement(3, 8)
    };
    checker.announce(SOURCE, TARGET, gets, &mut memory);
    let mut line = [0; 64];
    memory.read(BASE + 3 * 64, &mut line).unwrap();
    assert_eq!(line, read_line(BASE + 3 * 64));
}

#[test]
fn a_target_knows_of_the_run_that_was_announced_last_and_of_no_other() {
    let mut bench = Bench::new(8);
    let known = |bench: &Bench, run| bench.checker.knows(SOURCE, &announcement(run, 8));
    assert_eq!(known(&bench, 1), Announced::Accepted);
    assert_eq!(known(&bench, 2), Announced::Unknown);
    let of_another = bench.checker.knows(SOURCE + 1, &announcement(1, 8));
    assert_eq!(of_another, Announced::Unknown);
    bench.announce(2, 8);
    assert_eq!(known(&bench, 1), Announced::Unknown);
    // A restarted target.
    let fresh = Checker::default();
    assert_eq!(fresh.knows(SOURCE, &announcement(2, 8)), Announced::Unknown);
}

#[test]
fn a_refused_run_reports_the_later_run_that_blocks_it() {
    let mut bench = Bench::new(8);
    bench.announce(9, 8);
    assert_eq!(bench.announce(3, 8), Announced::Outdated);
    assert_eq!(bench.report(3).outdated_by, 9);
    assert_eq!(bench.report(9).outdated_by, 0);
    let of_another = |bench: &mut Bench, run| {
        let (checker, memory) = (&mut bench.checker, &mut bench.memory);
        checker.announce(SOURCE + 1, TARGET, announcement(run, 8), memory)
    };
    assert_eq!(of_another(&mut bench, 5), Announced::Accepted);
    assert_eq!(of_another(&mut bench, 3), Announced::Outdated);
    // Report the highest: the first source would reject the numbers in between too.
    assert_eq!(bench.report(3).outdated_by, 9);
}

#[test]
fn a_block_is_as_bad_as_its_worst_line() {
    let mut memory = Memory::new(1 << 16);
    let found = |memory: &Memory, size| block_found(memory, 0x1000, 0x8000, size);
    assert_eq!(found(&memory, 1_000), Found::Blank);
    for at in (0..1_024).step_by(64) {
        memory.write(0x1000 + at, &read_line(0x8000 + at)).unwrap();
    }
    assert_eq!(found(&memory, 1_000), Found::Whole);
    memory.write(0x1000 + 960, &[0; 40]).unwrap();
    assert_eq!(found(&memory, 1_000), Found::Blank, "the last line");
    assert_eq!(found(&memory, 1_001), Found::Wrong, "part of a line");
    memory.write(0x1000 + 130, &[0]).unwrap();
    assert_eq!(
        found(&memory, 1_000),
        Found::Wrong,
        "a byte of another line"
    );
}

/// Regression (soak seed 8118): more than 32 messages lost in a row counted as corrupted.
#[test]
fn a_long_loss_is_recognised_at_every_numbered_size() {
    for size in [4, 5, 7, 8, 32] {
        let report = Bench::new(size).deliver((0..3).chain(5_000..5_010));
        assert_eq!((report.delivered, report.missing), (13, 4_997), "{size}");
        assert_eq!((report.corrupted, report.misordered), (0, 0), "{size}");
    }
}

/// Regression: only one earlier run's stamp was kept, so late messages of older runs counted as
/// corrupted, 27 to 196 of them after two stalled runs.
#[test]
fn late_messages_of_earlier_runs_are_stale_and_not_corrupt() {
    for size in [8, 9, 16, 32, 64] {
        let mut bench = Bench::new(size);
        let mut late = Vec::new();
        for run in 1..=40_u64 {
            let answer = bench.announce(run << 33 | 5, size);
            assert_eq!(answer, Announced::Accepted);
            bench.deliver([0, 1, 2]);
            late.extend((3..60).map(|number| bench.message(number)));
        }
        let run = 41 << 33 | 5;
        bench.announce(run, size);
        bench.deliver([0, 1]);
        for message in &late {
            bench.put(message);
        }
        let report = bench.deliver([2]);
        assert_eq!(report, seen(3, late.len() as u64), "{size} bytes");
        // Canary: a damaged message among them does not count as late.
        let mut damaged = late[7].clone();
        damaged[0] ^= 1;
        bench.put(&damaged);
        assert_eq!(bench.report(run).corrupted, 1, "{size} bytes");
    }
}

/// A restarted target knows no earlier run; a restarted source has another nonce.
#[test]
fn late_messages_are_known_by_a_target_that_has_just_been_started() {
    let mut old = Bench::new(8);
    old.announce(7, 8);
    let late = old.message(40_000);
    let mut bench = Bench::new(8);
    let restarted = Announcement {
        nonce: 78,
        ..announcement(7, 8)
    };
    assert_eq!(bench.take_announcement(restarted), Announced::Accepted);
    bench.run = 7;
    bench.stamp = Stamp::of_run(7, 78, SOURCE, TARGET);
    bench.deliver([0]);
    bench.put(&late);
    let report = bench.deliver([1]);
    assert_eq!((report.delivered, report.stale), (2, 1));
    assert_eq!((report.corrupted, report.missing), (0, 0));
}

#[test]
fn short_messages_of_the_last_runs_are_known_too() {
    for size in [4, 5, 7] {
        let mut bench = Bench::new(size);
        let mut late = Vec::new();
        for run in 2..=5 {
            bench.announce(run, size);
            bench.deliver([0, 1, 2]);
            late.extend((3..40).map(|number| bench.message(number)));
        }
        bench.announce(6, 8);
        bench.deliver([0, 1]);
        late.iter().for_each(|message| bench.put(message));
        let report = bench.deliver([2]);
        assert_eq!((report.delivered, report.stale), (3, 4 * 37), "{size}");
        assert_eq!((report.corrupted, report.missing), (0, 0), "{size}");
    }
}

#[test]
fn a_late_announcement_does_not_end_the_run_of_now() {
    let mut bench = Bench::new(8);
    assert_eq!(bench.announce(9, 8), Announced::Accepted);
    bench.deliver([0, 1]);
    assert_eq!(
        bench.take_announcement(announcement(8, 32)),
        Announced::Outdated
    );
    assert_eq!(bench.deliver([2, 3]).delivered, 4);
    assert_eq!(bench.report(9).corrupted, 0);
    assert_eq!(bench.checker.stragglers(), 1);
}

#[test]
fn a_block_over_which_another_run_has_written_is_not_corrupt() {
    let mut bench = Bench::new(200);
    bench.announce(2, 200);
    let old = bench.stamp;
    bench.announce(3, 200);
    let write = |bench: &mut Bench, stamp: Stamp, number, lines: &[u64]| {
        let mut all = stamp.lines(BASE, number);
        for at in (0..256).step_by(LINE) {
            let line = all.next_line();
            if lines.contains(&(at / 64)) {
                bench.memory.write(BASE + at, &line).unwrap();
            }
        }
    };
    let stamp = bench.stamp;
    write(&mut bench, stamp, 0, &[0, 1, 2, 3]);
    write(&mut bench, old, 9, &[1, 3]);
    bench.checker.block(SOURCE, 0, 0, &bench.memory);
    let report = bench.report(3);
    assert_eq!((report.delivered, report.stale), (1, 2));
    assert_eq!(report.corrupted, 0);
    // Canary: real damage in the block is still found.
    bench.memory.write(BASE + 70, &[0xff]).unwrap();
    bench.checker.block(SOURCE, 0, 1, &bench.memory);
    assert_eq!(bench.report(3).corrupted, 1);
}

#[path = "checker_block_tests.rs"]
mod blocks;
