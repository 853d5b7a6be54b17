//! The home core of a process: the core on which it stays while it has little to do.
//!
//! In a lab with many processes per core, most of them sleep most of the time, and a sender wakes
//! its receiver. The kernel prefers to place the receiver on an idle core, not on the sender's.
//! That core must first be interrupted and woken, and its caches are cold. For an allreduce of
//! twelve NICs on two cores, this took more than a quarter of the time. So each process has a home
//! core, shared with its neighbours in the network. It may use any core while it has to wait for
//! its home core, because several neighbours are busy together or another process occupies the
//! core.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use phitwire::net::{Network, NodeRef};
use phitwire::time::Time;

use crate::clock;

/// Interval at which a process that is awake checks its load.
const LOOK: Duration = Duration::from_millis(20);

/// A longer mean wait means that a process other than a neighbour occupies the core.
const LONG_WAIT: Duration = Duration::from_micros(500);

/// Shortest time away from home. It doubles, up to the longest, each time the process soon has to
/// leave again.
const AWAY: Duration = Duration::from_millis(200);
const LONGEST_AWAY: Duration = Duration::from_secs(2);

/// Time at home after which the next departure starts again with the shortest time away.
const SETTLED: Duration = Duration::from_secs(2);

/// Position of a node in a network order that keeps neighbours close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkPosition {
    /// Number of nodes before this one.
    pub before: usize,
    /// Number of nodes in the network.
    pub nodes: usize,
}

impl NetworkPosition {
    /// Position of node `name`. Routers are in the order of their numbers, which are consecutive in
    /// a group, cabinet or plane; NICs follow the router of their first link. `None` if the network
    /// has no such node.
    pub fn of(network: &dyn Network, name: &str) -> Option<Self> {
        let nodes = network.nodes();
        let is_it = |node: &&NodeRef| network.node_name(**node) == name;
        let own = *nodes.iter().find(is_it)?;
        let mut routers = HashMap::new();
        for link in 0..network.link_count() {
            let (a, b) = network.ends(link);
            if let (NodeRef::Processor(nic), NodeRef::Chip(router))
            | (NodeRef::Chip(router), NodeRef::Processor(nic)) = (a.node, b.node)
            {
                routers.entry(nic).or_insert(router);
            }
        }
        let key = |node| match node {
            NodeRef::Chip(router) => (router, None),
            NodeRef::Processor(nic) => {
                let router = routers.get(&nic).copied().unwrap_or(u32::MAX);
                (router, Some(nic))
            }
        };
        let own = key(own);
        Some(Self {
            before: nodes.iter().filter(|&&node| key(node) < own).count(),
            nodes: nodes.len(),
        })
    }

    /// The node's core: each core has the same number of consecutive nodes.
    fn core(self, cores: &[usize]) -> Option<usize> {
        let index = self.before * cores.len() / self.nodes.max(1);
        cores.get(index).copied()
    }
}

/// The core affinity of the calling thread: any core, or its home core.
#[derive(Debug)]
pub struct CoreAffinity {
    anywhere: CpuSet,
    own: CpuSet,
    /// The kernel's record of how long the thread ran and waited for a core.
    schedstat: File,
    looked: Time,
    /// Contents of `schedstat` at the time `looked`.
    recorded: Shares,
    policy: AffinityPolicy,
}

impl CoreAffinity {
    /// Moves the calling thread to the home core for `position`. `None` if there is only one core,
    /// or the kernel does not report the load.
    pub fn of(position: NetworkPosition, now: Time) -> Option<Self> {
        let this = Pid::from_raw(0);
        let anywhere = sched_getaffinity(this).ok()?;
        let is_allowed = |&core: &usize| anywhere.is_set(core) == Ok(true);
        let cores: Vec<usize> = (0..CpuSet::count()).filter(is_allowed).collect();
        if cores.len() < 2 {
            return None;
        }
        let mut own = CpuSet::new();
        own.set(position.core(&cores)?).ok()?;
        let mut home = Self {
            anywhere,
            own,
            schedstat: File::open("/proc/thread-self/schedstat").ok()?,
            looked: now,
            recorded: Shares::default(),
            policy: AffinityPolicy::new(now),
        };
        home.recorded = home.shares()?;
        home.go(true);
        Some(home)
    }

    /// Leaves the home core while the process has to wait for it, and returns later.
    pub fn look(&mut self, now: Time) {
        let span = clock::until(self.looked, now);
        if span < LOOK {
            return;
        }
        let Some(shares) = self.shares() else {
            return;
        };
        let since = shares.since(self.recorded);
        (self.looked, self.recorded) = (now, shares);
        if let Some(home) = self.policy.moves(now, since, span) {
            self.go(home);
        }
    }

    fn go(&self, home: bool) {
        let cores = if home { &self.own } else { &self.anywhere };
        if let Err(error) = sched_setaffinity(Pid::from_raw(0), cores) {
            // Ignore the error: if the cores are no longer available, the kernel chooses.
            tracing::debug!(%error, "cannot set the CPU affinity");
        }
    }

    /// How long the thread has run and waited for a core so far.
    fn shares(&self) -> Option<Shares> {
        let mut text = [0; 96];
        let bytes = self.schedstat.read_at(&mut text, 0).ok()?;
        let text = str::from_utf8(&text[..bytes]).ok()?;
        let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
        let mut next = || numbers.next()?.ok();
        let shares = Shares {
            ran: Duration::from_nanos(next()?),
            waited: Duration::from_nanos(next()?),
            times: next()?,
        };
        // The thread is running, so a count of zero means that the kernel keeps no statistics.
        (shares.times > 0).then_some(shares)
    }
}

/// How long a thread has run and waited for a core, and how many times it got one.
#[derive(Clone, Copy, Debug, Default)]
struct Shares {
    ran: Duration,
    waited: Duration,
    times: u64,
}

impl Shares {
    fn since(self, earlier: Self) -> Self {
        Self {
            ran: self.ran.saturating_sub(earlier.ran),
            waited: self.waited.saturating_sub(earlier.waited),
            times: self.times.saturating_sub(earlier.times),
        }
    }

    /// Whether the thread waited for more than an eighth of `span` for one of two reasons. Either
    /// there is too much work for one core (the thread was runnable for more than 5/9 of `span`),
    /// or another process occupies the core: each wait was longer than a neighbour's turn.
    fn is_crowded(self, span: Duration) -> bool {
        let is_busy = self.runnable() * 9 > span * 5;
        self.waited * 8 > span && (is_busy || self.is_kept())
    }

    fn is_kept(self) -> bool {
        let times = u32::try_from(self.times).unwrap_or(u32::MAX);
        self.waited > LONG_WAIT * times
    }

    fn runnable(self) -> Duration {
        self.ran + self.waited
    }
}

/// Decides when to leave home and when to return.
#[derive(Clone, Copy, Debug)]
struct AffinityPolicy {
    is_home: bool,
    /// Time of the last move.
    since: Time,
    /// Shortest time away after the last departure.
    away: Duration,
    /// Whether the process left because another one occupied the core.
    is_kept: bool,
}

impl AffinityPolicy {
    fn new(now: Time) -> Self {
        Self {
            is_home: true,
            since: now,
            away: AWAY,
            is_kept: false,
        }
    }

    /// Decides whether to move home (`true`) or away (`false`) after `span` with these shares.
    fn moves(&mut self, now: Time, shares: Shares, span: Duration) -> Option<bool> {
        let been = clock::until(self.since, now);
        let moves = match self.is_home {
            true => shares.is_crowded(span),
            // Return when idle: the core is no longer crowded.
            false if !self.is_kept && shares.runnable() * 20 < span => been >= AWAY,
            // Do not return while busy: only a return would show whether the core is still crowded.
            false => shares.runnable() * 2 < span && been >= self.away,
        };
        if !moves {
            return None;
        }
        if self.is_home {
            self.is_kept = shares.is_kept();
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
    use std::io::Write as _;

    use phitwire_machines::CATALOGUE;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn cores_have_as_many_nodes_each_in_a_row() {
        let core = |before| NetworkPosition { before, nodes: 8 }.core(&[1, 4, 5]);
        let chosen: Vec<_> = (0..8).map(|before| core(before).expect("one")).collect();
        assert_eq!(chosen, [1, 1, 1, 4, 4, 4, 5, 5]);
        assert_eq!(
            NetworkPosition {
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
        let network = CATALOGUE
            .read("aries-3x4.toml", text)
            .expect("a valid description");
        let before =
            |name: &str| NetworkPosition::of(&*network, name).map(|position| position.before);
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

    /// Milliseconds run and waited out of 100, and the number of runs.
    fn shares(ran: u32, waited: u32, times: u64) -> Shares {
        let (ran, waited) = (ran * MS, waited * MS);
        Shares { ran, waited, times }
    }

    const SPAN: Duration = Duration::from_millis(100);

    fn at(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    #[test]
    fn a_busy_process_leaves_its_core_until_it_has_less_to_do() {
        let mut policy = AffinityPolicy::new(at(0));
        assert_eq!(
            policy.moves(at(3_000), shares(100, 0, 1), SPAN),
            None,
            "no thread waits"
        );
        assert_eq!(policy.moves(at(3_000), shares(20, 35, 1_000), SPAN), None);
        assert_eq!(
            policy.moves(at(3_100), shares(20, 36, 1_000), SPAN),
            Some(false)
        );
        assert_eq!(
            policy.moves(at(3_299), Shares::default(), SPAN),
            None,
            "just left"
        );
        assert_eq!(
            policy.moves(at(3_300), shares(50, 0, 10), SPAN),
            None,
            "busy"
        );
        assert_eq!(policy.moves(at(3_400), shares(49, 0, 10), SPAN), Some(true));
    }

    #[test]
    fn an_idle_process_returns_at_once_unless_the_core_was_occupied() {
        for (waited, times, comes) in [(100, 1_000, true), (100, 100, false)] {
            let mut policy = AffinityPolicy::new(at(0));
            let crowded = shares(0, waited, times);
            assert_eq!(policy.moves(at(100), crowded, SPAN), Some(false));
            assert_eq!(policy.moves(at(299), Shares::default(), SPAN), None);
            assert_eq!(
                policy.moves(at(300), shares(5, 0, 1), SPAN),
                None,
                "twice as long"
            );
            let at_rest = policy.moves(at(300), shares(4, 0, 1), SPAN);
            assert_eq!(at_rest, comes.then_some(true));
        }
    }

    #[test]
    fn a_process_with_rare_long_waits_leaves_too() {
        let is_crowded = |waited, times| shares(1, waited, times).is_crowded(SPAN);
        assert!(is_crowded(13, 25) && !is_crowded(13, 26), "500 us each");
        assert!(!is_crowded(12, 4), "more than one eighth of the time");
    }

    #[test]
    fn repeated_contention_lengthens_the_time_away() {
        let (mut ms, mut policy, mut away) = (0, AffinityPolicy::new(at(0)), Vec::new());
        let (kept, idle) = (shares(0, 100, 50), Shares::default());
        for _ in 0..8 {
            ms += 100;
            assert_eq!(policy.moves(at(ms), kept, SPAN), Some(false));
            let left = ms;
            while policy.moves(at(ms), idle, SPAN).is_none() {
                ms += 20;
            }
            away.push(Duration::from_millis(ms - left));
        }
        assert_eq!(away[0], 2 * AWAY);
        assert_eq!(away[7], LONGEST_AWAY);
        assert!(away.is_sorted());
        ms += SETTLED.as_millis() as u64;
        assert_eq!(policy.moves(at(ms), kept, SPAN), Some(false));
        ms += AWAY.as_millis() as u64;
        assert_eq!(policy.moves(at(ms), idle, SPAN), Some(true));
    }

    #[test]
    fn a_thread_that_waits_for_its_core_leaves_it() {
        let this = Pid::from_raw(0);
        let before = sched_getaffinity(this).expect("every thread has an affinity");
        let clock = clock::Clock::new();
        let position = NetworkPosition {
            before: 1,
            nodes: 2,
        };
        let Some(mut home) = CoreAffinity::of(position, clock.now()) else {
            // Print past the harness's output capture, so that skips can be counted.
            let why = "one core, or a kernel without these counters";
            let name = "core_affinity::tests::a_thread_that_waits_for_its_core_leaves_it";
            let _ = writeln!(std::io::stderr(), "SKIPPED {name}: {why}");
            return;
        };
        assert_eq!(sched_getaffinity(this), Ok(home.own));
        let until = std::time::Instant::now() + 10 * LOOK;
        let spin = move || {
            while std::time::Instant::now() < until {
                std::hint::spin_loop();
            }
        };
        // The threads inherit this thread's core.
        let others: Vec<_> = (0..3).map(|_| std::thread::spawn(spin)).collect();
        spin();
        home.look(clock.now());
        assert_eq!(sched_getaffinity(this), Ok(before));
        for other in others {
            other.join().expect("the thread only spins");
        }
        std::thread::sleep(3 * AWAY);
        home.look(clock.now());
        assert_eq!(sched_getaffinity(this), Ok(home.own));
    }
}
