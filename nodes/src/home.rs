//! The core that a process stays on while it has little to do.
//!
//! In a lab of many processes per core most of them sleep most of the time, and whoever sends to one
//! wakes it. The kernel puts it on a core that idles, if there is one, which is another one than the
//! sender's: that core has to be interrupted and woken too, and has nothing of the process in its
//! caches. For an allreduce of twelve network interfaces on two cores that was more than a quarter of
//! its time. So each process has a core of its own, neighbours in the network the same one, and
//! leaves it for any as long as it could run for more than half of the time: because it is busy, or
//! because it waits there for others.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use phitwire::net::{Network, NodeRef};
use phitwire::time::Time;

use crate::clock;

/// How often it is looked how busy the process is, while it is awake.
const LOOK: Duration = Duration::from_millis(20);

/// How long it stays away at least; twice as long whenever it had to leave again soon, and at most.
const AWAY: Duration = Duration::from_millis(100);
const LONGEST_AWAY: Duration = Duration::from_secs(10);

/// Who was at home for so long has not left again soon.
const SETTLED: Duration = Duration::from_secs(2);

/// Where a node stands in its network, among so many: neighbours have places near each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Nodes before it.
    pub before: usize,
    /// All nodes.
    pub nodes: usize,
}

impl Place {
    /// Of the node `name`: routers are in the order of their numbers, which those of a group, a
    /// cabinet or a plane have in a row, and network interfaces behind the router of their first
    /// link. `None` if the network has no such node.
    pub fn of(network: &dyn Network, name: &str) -> Option<Self> {
        let nodes = network.nodes();
        let node = *nodes
            .iter()
            .find(|&&node| network.node_name(node) == name)?;
        let mut routers = vec![None; nodes.len()];
        let position = |node| nodes.iter().position(|&other| other == node);
        for link in 0..network.link_count() {
            let (a, b) = network.ends(link);
            for (end, other) in [(a.node, b.node), (b.node, a.node)] {
                if let (NodeRef::Processor(_), NodeRef::Chip(router), Some(of)) =
                    (end, other, position(end))
                {
                    routers[of].get_or_insert(router);
                }
            }
        }
        let key = |(&node, router): (&NodeRef, &Option<u32>)| match node {
            NodeRef::Chip(router) => (router, None),
            NodeRef::Processor(nic) => (router.unwrap_or(u32::MAX), Some(nic)),
        };
        let keys: Vec<_> = nodes.iter().zip(&routers).map(key).collect();
        let own = keys[position(node)?];
        Some(Self {
            before: keys.iter().filter(|&&key| key < own).count(),
            nodes: nodes.len(),
        })
    }

    /// Its core, of those that there are: each has as many nodes, in a row.
    fn core(self, cores: &[usize]) -> Option<usize> {
        let index = self.before * cores.len() / self.nodes.max(1);
        cores.get(index).copied()
    }
}

/// Where the calling thread may run, and where it stays while it has little to do.
#[derive(Debug)]
pub struct Home {
    anywhere: CpuSet,
    own: CpuSet,
    /// What the kernel says of how long the thread ran and waited for a core.
    schedstat: File,
    looked: Time,
    /// Nanoseconds in which it could run, until then.
    runnable: u64,
    stay: Stay,
}

impl Home {
    /// Moves the calling thread to the core of its place. `None` where there is no choice, or the
    /// kernel does not tell how busy it is.
    pub fn of(place: Place, now: Time) -> Option<Self> {
        let this = Pid::from_raw(0);
        let anywhere = sched_getaffinity(this).ok()?;
        let is_allowed = |&core: &usize| anywhere.is_set(core) == Ok(true);
        let cores: Vec<usize> = (0..CpuSet::count()).filter(is_allowed).collect();
        if cores.len() < 2 {
            return None;
        }
        let mut own = CpuSet::new();
        own.set(place.core(&cores)?).ok()?;
        let mut home = Self {
            anywhere,
            own,
            schedstat: File::open("/proc/thread-self/schedstat").ok()?,
            looked: now,
            runnable: 0,
            stay: Stay::new(now),
        };
        home.runnable = home.runnable_ns()?;
        home.go(true);
        Some(home)
    }

    /// Leaves the core when the process has become busy, and comes back when it is no more.
    pub fn look(&mut self, now: Time) {
        let span = clock::until(self.looked, now);
        if span < LOOK {
            return;
        }
        let Some(runnable) = self.runnable_ns() else {
            return;
        };
        let busy = Duration::from_nanos(runnable.saturating_sub(self.runnable));
        (self.looked, self.runnable) = (now, runnable);
        if let Some(home) = self.stay.moves(now, busy, span) {
            self.go(home);
        }
    }

    fn go(&self, home: bool) {
        let cores = if home { &self.own } else { &self.anywhere };
        if let Err(error) = sched_setaffinity(Pid::from_raw(0), cores) {
            // The cores may have been taken away meanwhile: where it runs is the kernel's choice.
            tracing::debug!(%error, "the cores of the process stay as they were");
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

/// When to leave, and when to come back.
#[derive(Clone, Copy, Debug)]
struct Stay {
    is_home: bool,
    /// Since when it is where it is.
    since: Time,
    /// How long it stays away when it leaves next.
    away: Duration,
}

impl Stay {
    fn new(now: Time) -> Self {
        Self {
            is_home: true,
            since: now,
            away: AWAY,
        }
    }

    /// Whether to go home or away, for a process that could run for `busy` of the last `span`.
    fn moves(&mut self, now: Time, busy: Duration, span: Duration) -> Option<bool> {
        let been = clock::until(self.since, now);
        let moves = match self.is_home {
            true => busy * 2 > span,
            // Not for a pause, and not to what it has left just now.
            false => busy * 4 < span && been >= self.away,
        };
        if !moves {
            return None;
        }
        if self.is_home {
            self.away = match been < SETTLED {
                true => (self.away * 2).min(LONGEST_AWAY),
                false => AWAY,
            };
        }
        (self.is_home, self.since) = (!self.is_home, now);
        Some(self.is_home)
    }
}

#[cfg(test)]
mod tests {
    use phitwire::machine::read;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn cores_have_as_many_nodes_each_in_a_row() {
        let core = |before| Place { before, nodes: 8 }.core(&[1, 4, 5]);
        let chosen: Vec<_> = (0..8).map(|before| core(before).expect("one")).collect();
        assert_eq!(chosen, [1, 1, 1, 4, 4, 4, 5, 5]);
        assert_eq!(
            Place {
                before: 8,
                nodes: 8
            }
            .core(&[1, 4]),
            None
        );
    }

    #[test]
    fn network_interfaces_are_behind_their_routers() {
        let text = include_str!("../../netns-scripts/topologies/aries-3x4.toml");
        let network = read("aries-3x4.toml", text).expect("it is good");
        let before = |name: &str| Place::of(&*network, name).map(|place| place.before);
        for (router, nic) in [
            ("g0-c0s0", "nic0"),
            ("g1-c0s0", "nic4"),
            ("g2-c1s1", "nic11"),
        ] {
            assert_eq!(before(router).map(|before| before + 1), before(nic));
        }
        assert_eq!(before("g0-c0s0"), Some(0));
        assert_eq!(before("g1-c0s0"), Some(8));
        assert_eq!(before("nic11"), Some(23));
        assert_eq!(before("nic12"), None);
    }

    #[test]
    fn who_is_busy_leaves_and_comes_back_when_it_rests() {
        let at = |ms: u64| Time::from_ns(ms * 1_000_000);
        let mut stay = Stay::new(at(0));
        assert_eq!(stay.moves(at(3_000), 50 * MS, 100 * MS), None);
        assert_eq!(stay.moves(at(3_100), 51 * MS, 100 * MS), Some(false));
        assert_eq!(
            stay.moves(at(3_199), Duration::ZERO, 100 * MS),
            None,
            "just left"
        );
        assert_eq!(stay.moves(at(3_300), 25 * MS, 100 * MS), None, "a pause");
        assert_eq!(stay.moves(at(3_400), 24 * MS, 100 * MS), Some(true));
    }

    #[test]
    fn who_has_to_leave_again_and_again_stays_away_for_longer() {
        let at = |ms: u64| Time::from_ns(ms * 1_000_000);
        let mut ms = 0;
        let mut stay = Stay::new(at(0));
        let mut away = Vec::new();
        for _ in 0..12 {
            ms += 20;
            assert_eq!(stay.moves(at(ms), LOOK, LOOK), Some(false));
            let left = ms;
            while stay.moves(at(ms), Duration::ZERO, LOOK).is_none() {
                ms += 20;
            }
            away.push(Duration::from_millis(ms - left));
        }
        assert_eq!(away[0], 2 * AWAY);
        assert_eq!(away[11], LONGEST_AWAY);
        assert!(away.is_sorted());
        ms += SETTLED.as_millis() as u64;
        assert_eq!(stay.moves(at(ms), LOOK, LOOK), Some(false));
        ms += AWAY.as_millis() as u64;
        assert_eq!(stay.moves(at(ms), Duration::ZERO, LOOK), Some(true));
    }

    #[test]
    fn a_thread_that_computes_may_run_anywhere_again() {
        std::thread::spawn(|| {
            let this = Pid::from_raw(0);
            let before = sched_getaffinity(this).expect("every thread has cores");
            let Some(mut home) = Home::of(Place {
                before: 1,
                nodes: 2,
            }) else {
                return; // One core, or a kernel that counts nothing.
            };
            assert_eq!(sched_getaffinity(this), Ok(home.own));
            let begin = std::time::Instant::now();
            while begin.elapsed() < 2 * LOOK {
                std::hint::spin_loop();
            }
            home.look(clock.now());
            assert_eq!(sched_getaffinity(this), Ok(before));
            std::thread::sleep(3 * AWAY);
            home.look(clock.now());
            assert_eq!(sched_getaffinity(this), Ok(home.own));
        })
        .join()
        .expect("the thread ends well");
    }
}
