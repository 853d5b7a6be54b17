//! Blocks that arrive as lines.

use super::*;

impl Bench {
    /// Delivers the lines `which` of block `number` to address 0.
    fn lines(&mut self, number: u32, which: &[u64]) {
        let size = self.size as u64;
        let mut all = self.stamp.lines(BASE, number);
        for at in (0..size).step_by(LINE) {
            let line = all.next_line();
            let line = &line[..(size - at).min(LINE as u64) as usize];
            if which.contains(&(at / 64)) {
                let at = BASE + at;
                let whole = self.checker.line(SOURCE, at, line, &self.memory);
                self.memory.write(at, line).unwrap();
                if let Some((index, number)) = whole {
                    self.checker.block(SOURCE, index, number, &self.memory);
                }
            }
        }
    }

    /// Announces the complete block `number` at address 0, as the source does.
    fn said(&mut self, number: u32) -> TrafficReport {
        self.checker.block(SOURCE, 0, number, &self.memory);
        self.report(1)
    }
}

const WHOLE: [u64; 4] = [0, 1, 2, 3];

#[test]
fn late_lines_of_a_block_spoil_no_later_one() {
    let mut bench = Bench::new(200);
    bench.lines(0, &WHOLE);
    assert_eq!(bench.said(0), seen(1, 0));
    // The source does not know the fate of blocks 1 and 2.
    bench.lines(1, &[0]);
    bench.lines(3, &[2, 0]);
    bench.lines(1, &[1, 2]);
    bench.lines(2, &[0]);
    bench.lines(3, &[1, 3]);
    bench.lines(1, &[3]);
    let report = bench.said(3);
    assert_eq!((report.delivered, report.missing), (2, 2), "{report:?}");
    assert_eq!((report.corrupted, report.stale), (0, 3), "{report:?}");
    // Lines overwritten earlier do not affect the next block.
    bench.lines(2, &[1]);
    bench.lines(4, &WHOLE);
    let report = bench.said(4);
    assert_eq!((report.delivered, report.stale), (3, 3), "{report:?}");
    assert_eq!(report.corrupted, 0);
}

#[test]
fn canary_a_line_that_never_came_is_not_taken_for_one_that_was_overwritten() {
    // Line 2 of block 1 is acknowledged but missing.
    for late in [[2, 2], [2, 0], [0, 2]] {
        let mut bench = Bench::new(256);
        bench.lines(0, &late[..1]);
        bench.lines(1, &[0, 1, 3]);
        bench.lines(0, &late[1..]);
        let report = bench.said(1);
        assert_eq!((report.delivered, report.corrupted), (0, 1), "{report:?}");
    }
    // A line that was overwritten in the block before.
    let mut bench = Bench::new(256);
    bench.lines(1, &WHOLE);
    bench.lines(0, &[2]);
    assert_eq!(bench.said(1).corrupted, 0);
    bench.lines(2, &[0, 1, 3]);
    assert_eq!(bench.said(2).corrupted, 1);
    // A line that was damaged when it was overwritten.
    let mut bench = Bench::new(256);
    bench.lines(1, &WHOLE);
    bench.memory.write(BASE + 130, &[0xff]).unwrap();
    bench.lines(0, &[2]);
    assert_eq!(bench.said(1).corrupted, 1);
    // A line that is damaged after that.
    let mut bench = Bench::new(256);
    bench.lines(1, &WHOLE);
    bench.lines(0, &[2]);
    bench.memory.write(BASE + 130, &[0xff]).unwrap();
    assert_eq!(bench.said(1).corrupted, 1);
}

#[test]
fn a_block_that_another_has_followed_already_is_not_judged() {
    let mut bench = Bench::new(256);
    bench.lines(0, &WHOLE);
    bench.lines(1, &[2]);
    let report = bench.said(0);
    assert_eq!((report.delivered, report.stale), (0, 1), "{report:?}");
    bench.lines(1, &[3, 1, 0]);
    let report = bench.said(1);
    assert_eq!((report.delivered, report.missing), (1, 1), "{report:?}");
    assert_eq!(report.corrupted, 0);
}

#[test]
fn damaged_lines_and_those_of_other_runs_begin_no_block() {
    let mut bench = Bench::new(256);
    bench.lines(0, &WHOLE);
    let mut line = Stamp::of_run(9, 9, SOURCE, TARGET)
        .lines(BASE, 5)
        .next_line();
    bench.checker.line(SOURCE, BASE, &line, &bench.memory);
    line = bench.stamp.lines(BASE, 5).next_line();
    line[63] ^= 1;
    bench.checker.line(SOURCE, BASE, &line, &bench.memory);
    // Writes that are not lines, or lie outside the run's addresses, have no effect either.
    line = bench.stamp.lines(BASE + 5, 5).next_line();
    bench.checker.line(SOURCE, BASE + 5, &line, &bench.memory);
    bench
        .checker
        .line(SOURCE, BASE + 4 * 256, &line, &bench.memory);
    bench.checker.line(SOURCE, BASE - 64, &line, &bench.memory);
    assert_eq!(bench.said(0), seen(1, 0));
}

#[test]
fn a_block_is_checked_when_its_last_line_arrives() {
    let mut bench = Bench::new(200);
    let last = |stamp: Stamp, number: u32| {
        let mut lines = stamp.lines(BASE + 192, number);
        lines.next_line()
    };
    let says = |bench: &mut Bench, line: &[u8]| {
        bench.checker.line(SOURCE, BASE + 192, line, &bench.memory);
        bench.memory.write(BASE + 192, line).unwrap();
        bench
            .checker
            .last_line(SOURCE, BASE + 192, line, &bench.memory)
    };
    let stamp = bench.stamp;
    for number in 0..2 {
        bench.lines(number, &[0, 1, 2]);
        assert!(says(&mut bench, &last(stamp, number)[..8]));
    }
    assert_eq!(bench.report(1), seen(2, 0));
    // A duplicate; a block that another has followed; one of another run; one with a damaged word.
    assert!(says(&mut bench, &last(stamp, 1)[..8]));
    assert_eq!(bench.report(1).duplicated, 1);
    bench.lines(3, &[1]);
    assert!(says(&mut bench, &last(stamp, 2)[..8]));
    assert_eq!(bench.report(1).stale, 1);
    let other = Stamp::of_run(9, 9, SOURCE, TARGET);
    assert!(says(&mut bench, &last(other, 2)[..8]));
    let report = bench.report(1);
    assert_eq!((report.stale, report.corrupted), (2, 0), "{report:?}");
    let mut bad = last(stamp, 3);
    bad[1] ^= 1;
    assert!(says(&mut bench, &bad[..8]));
    assert_eq!(bench.report(1).corrupted, 1);
    // Lines that arrive after the final one: the block is judged once all are there.
    bench.lines(4, &[2]);
    assert!(says(&mut bench, &last(stamp, 4)[..8]));
    for (line, delivered) in [(0, 2), (1, 3)] {
        bench.lines(4, &[line]);
        assert_eq!(bench.report(1).delivered, delivered);
    }
    // A late line of an earlier block does not cause a second judgement.
    bench.lines(3, &[0]);
    assert_eq!(bench.report(1).delivered, 3);
    assert_eq!(bench.report(1).duplicated, 1);
    // A line that never arrives, and one that arrives damaged.
    bench.lines(5, &[0, 2]);
    assert!(says(&mut bench, &last(stamp, 5)[..8]));
    let report = bench.report(1);
    assert_eq!((report.delivered, report.corrupted), (3, 1), "{report:?}");
    let mut damaged = stamp.lines(BASE + 64, 5).next_line();
    for at in [63, 1] {
        damaged[at] ^= 1;
        let whole = bench
            .checker
            .line(SOURCE, BASE + 64, &damaged, &bench.memory);
        bench.memory.write(BASE + 64, &damaged).unwrap();
        assert_eq!(whole, (at == 63).then_some((0, 5)), "byte {at}");
    }
    bench.checker.block(SOURCE, 0, 5, &bench.memory);
    let report = bench.report(1);
    assert_eq!((report.delivered, report.corrupted), (3, 2), "{report:?}");
    // Writes to other addresses are not judged.
    let (checker, memory) = (&mut bench.checker, &bench.memory);
    let line = last(stamp, 6);
    assert!(!checker.last_line(SOURCE, BASE + 193, &line, memory));
    assert!(!checker.last_line(SOURCE, BASE + 4 * 256, &line, memory));
    assert!(!checker.last_line(SOURCE + 1, BASE + 192, &line, memory));
}
