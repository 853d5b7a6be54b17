//! The core that a process stays on while it has little to do.
//!
//! In a lab of many processes per core most of them sleep most of the time, and whoever sends to one
//! wakes it. The kernel puts it on a core that idles, if there is one, which is another one than the
//! sender's: that core has to be woken too, and has nothing of the process in its caches. For an
//! allreduce of twelve network interfaces on two cores that was a fifth of its time. So each process
//! has a core of its own choice, neighbours the same one, and leaves it for all others as long as it
//! could run for more than half of the time.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// How often it is looked how busy the process is, while it is awake.
const LOOK: Duration = Duration::from_millis(50);

/// Processes of neighbouring numbers that have the same core: a network interface and its router
/// have one number, and the routers of the next number are linked to each other.
const NEIGHBOURS: usize = 2;

/// Where the calling thread may run, and where it stays while it has little to do.
#[derive(Debug)]
pub struct Home {
    anywhere: CpuSet,
    own: CpuSet,
    /// What the kernel says of how long the thread ran and waited for a core.
    schedstat: File,
    is_there: bool,
    looked: Instant,
    /// Nanoseconds in which it could run, until then.
    runnable: u64,
}

impl Home {
    /// Moves the calling thread to its core, which follows from the lowest number of its links.
    /// `None` where there is no choice, or the kernel does not tell how busy it is.
    pub fn of(number: u16) -> Option<Self> {
        let this = Pid::from_raw(0);
        let anywhere = sched_getaffinity(this).ok()?;
        let is_allowed = |&core: &usize| anywhere.is_set(core) == Ok(true);
        let cores: Vec<usize> = (0..CpuSet::count()).filter(is_allowed).collect();
        if cores.len() < 2 {
            return None;
        }
        let mut own = CpuSet::new();
        own.set(core_of(number, &cores)).ok()?;
        let mut home = Self {
            anywhere,
            own,
            schedstat: File::open("/proc/thread-self/schedstat").ok()?,
            is_there: false,
            looked: Instant::now(),
            runnable: 0,
        };
        home.runnable = home.runnable_ns()?;
        home.go(true);
        Some(home)
    }

    /// Leaves the core when the process has become busy, and comes back when it is no more.
    pub fn look(&mut self, now: Instant) {
        let span = now.saturating_duration_since(self.looked);
        if span < LOOK {
            return;
        }
        let Some(runnable) = self.runnable_ns() else {
            return;
        };
        let busy = Duration::from_nanos(runnable.saturating_sub(self.runnable));
        (self.looked, self.runnable) = (now, runnable);
        let stays = belongs_home(self.is_there, busy, span);
        if stays != self.is_there {
            self.go(stays);
        }
    }

    fn go(&mut self, home: bool) {
        let cores = if home { &self.own } else { &self.anywhere };
        match sched_setaffinity(Pid::from_raw(0), cores) {
            Ok(()) => self.is_there = home,
            // The cores may have been taken away meanwhile: where it runs is the kernel's choice.
            Err(error) => tracing::debug!(%error, "the cores of the process stay as they were"),
        }
    }

    /// Nanoseconds in which the thread ran or waited for a core.
    fn runnable_ns(&self) -> Option<u64> {
        let mut text = [0; 96];
        let bytes = self.schedstat.read_at(&mut text, 0).ok()?;
        let text = str::from_utf8(&text[..bytes]).ok()?;
        let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
        let (ran, waited) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(ran + waited)
    }
}

/// The core of the processes whose lowest link has `number`.
const fn core_of(number: u16, cores: &[usize]) -> usize {
    cores[number as usize / NEIGHBOURS % cores.len()]
}

/// Whether a process that could run for `busy` of the last `span` belongs on its core.
fn belongs_home(is_there: bool, busy: Duration, span: Duration) -> bool {
    match is_there {
        true => busy * 2 <= span,
        // Who has just left is not called back for a pause.
        false => busy * 4 < span,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_core_and_all_cores_have_some() {
        let cores = [1, 4, 5];
        let chosen: Vec<_> = (0..8).map(|number| core_of(number, &cores)).collect();
        assert_eq!(chosen, [1, 1, 4, 4, 5, 5, 1, 1]);
    }

    #[test]
    fn who_is_busy_leaves_and_comes_back_when_it_rests() {
        let ms = Duration::from_millis;
        assert!(belongs_home(true, ms(50), ms(100)));
        assert!(!belongs_home(true, ms(51), ms(100)));
        assert!(!belongs_home(false, ms(25), ms(100)));
        assert!(belongs_home(false, ms(24), ms(100)));
    }

    #[test]
    fn a_thread_that_computes_may_run_anywhere_again() {
        std::thread::spawn(|| {
            let this = Pid::from_raw(0);
            let before = sched_getaffinity(this).expect("every thread has cores");
            let Some(mut home) = Home::of(3) else {
                return; // One core, or a kernel that counts nothing.
            };
            assert_eq!(sched_getaffinity(this), Ok(home.own));
            let begin = Instant::now();
            while begin.elapsed() < 2 * LOOK {
                std::hint::spin_loop();
            }
            home.look(Instant::now());
            assert_eq!(sched_getaffinity(this), Ok(before));
            std::thread::sleep(2 * LOOK);
            home.look(Instant::now());
            assert_eq!(sched_getaffinity(this), Ok(home.own));
        })
        .join()
        .expect("the thread ends well");
    }
}
