//! Programs that wait for something outside of the lab: a launcher, a file, another thread.
//!
//! Such a program has not ended its turn, but must not stop time for ever. It is recognised by its
//! threads: all of them sleep, and they have hardly used any processor time for some milliseconds.
//! (Launchers let programs poll, with short sleeps in between.) A thread that the host does not run
//! for lack of a processor does not sleep. Threads that wait at a door are not looked at.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

/// Time over which the use of processors is measured.
const WINDOW: Duration = Duration::from_millis(3);
/// A process that waits uses less than this share of a processor: one divided by this number.
const SHARE: u64 = 4;

/// The threads of a process that do not wait at a door: whether any of them runs, and the processor
/// time that they have used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Threads {
    run: bool,
    used_ns: u64,
}

#[derive(Debug)]
struct Watched {
    /// Processor time used at `since`.
    used_ns: u64,
    since: Instant,
    is_outside: bool,
}

/// The processes that hold back time.
#[derive(Debug, Default)]
pub(super) struct Outside {
    watched: BTreeMap<i32, Watched>,
    /// How often a process was found to wait for something outside.
    pub(super) found: u64,
}

impl Outside {
    /// Whether `process` waits for something outside. `at_doors` are its threads that wait at
    /// doors. Unless its turn is `overdue`, only a process that was outside is looked at again.
    pub(super) fn is_outside(&mut self, process: i32, at_doors: &[u64], overdue: bool) -> bool {
        let was_outside = || self.watched.get(&process).is_some_and(|it| it.is_outside);
        if !overdue && !was_outside() {
            return false;
        }
        let Some(threads) = threads_of(process, at_doors) else {
            return false;
        };
        let now = Instant::now();
        let watched = self.watched.entry(process).or_insert(Watched {
            used_ns: threads.used_ns,
            since: now,
            is_outside: false,
        });
        let window = now.duration_since(watched.since);
        let used = threads.used_ns.saturating_sub(watched.used_ns);
        let is_much = used > (window.max(WINDOW).as_nanos() as u64) / SHARE;
        if threads.run || is_much {
            watched.is_outside = false;
        } else if window >= WINDOW && !watched.is_outside {
            watched.is_outside = true;
            self.found += 1;
        }
        if threads.run || is_much || window >= WINDOW {
            (watched.since, watched.used_ns) = (now, threads.used_ns);
        }
        watched.is_outside
    }

    /// Whether any process is watched.
    pub(super) fn is_empty(&self) -> bool {
        self.watched.is_empty()
    }

    /// Forgets the processes that do not hold back time.
    pub(super) fn keep(&mut self, holds: impl Fn(i32) -> bool) {
        self.watched.retain(|&process, _| holds(process));
    }
}

/// `None` if the process is not visible here.
fn threads_of(process: i32, at_doors: &[u64]) -> Option<Threads> {
    let mut all = Threads {
        run: false,
        used_ns: 0,
    };
    for entry in fs::read_dir(format!("/proc/{process}/task")).ok()? {
        let path = entry.ok()?.path();
        let number = path.file_name()?.to_str()?.parse().ok()?;
        if at_doors.contains(&number) {
            continue;
        }
        let Ok(stat) = fs::read_to_string(path.join("stat")) else {
            continue; // The thread has ended.
        };
        // The name before may contain anything, even parentheses.
        let (_, after) = stat.rsplit_once(')')?;
        all.run |= !matches!(after.trim_start().chars().next(), Some('S' | 'I'));
        let used = fs::read_to_string(path.join("schedstat")).unwrap_or_default();
        let used = used.split(' ').next().and_then(|used| used.parse().ok());
        all.used_ns = all.used_ns.wrapping_add(used.unwrap_or(0));
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_sleeping_process_is_outside_after_a_while_and_a_spinning_one_never() {
        let run = |script: &str| Command::new("sh").args(["-c", script]).spawn();
        let mut sleeper = run("exec sleep 60").expect("a shell");
        let mut spinner = run("while :; do :; done").expect("a shell");
        let mut outside = Outside::default();
        let end = Instant::now() + Duration::from_secs(30);
        let pid = |child: &std::process::Child| child.id().cast_signed();
        while !outside.is_outside(pid(&sleeper), &[], true) {
            assert!(Instant::now() < end, "it sleeps");
            assert!(!outside.is_outside(pid(&spinner), &[], true));
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(outside.found, 1);
        outside.keep(|process| process == pid(&spinner));
        assert!(
            !outside.is_outside(pid(&sleeper), &[], true),
            "watched from now on"
        );
        for child in [&mut sleeper, &mut spinner] {
            child.kill().expect("it runs");
            child.wait().expect("it has ended");
        }
    }
}
