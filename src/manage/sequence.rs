//! Quiesce, drain, install, release: the commands of a maintenance process to each node, and their
//! time limits.

use std::collections::{BTreeMap, BTreeSet};

use crate::net::NodeRef;
use crate::time::{Duration, Time};

/// The phases of a reroute (Cray XC white paper: "HSS can quiesce network traffic so that route
/// table changes can be deployed safely. Applications pause briefly while this operation is in
/// progress; traffic is released once the re-route process has completed").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReroutePhase {
    /// Sources start no new packets. A NIC is done when it has nothing outstanding, a router when
    /// it accepts no packets from its NICs.
    Quiesce,
    /// Every router is done when it holds no packet.
    Drain,
    /// Every changed router loads its new registers.
    Install,
    /// Every source may resume.
    Release,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RerouteTimes {
    /// Interval after which a command to a node that is not done, or has not replied, is repeated.
    pub(crate) ask_again: Duration,
    /// Limit for sources to become quiet. NICs notice packets lost on a dead link only after their
    /// request timeout. The reroute need not wait for that: every set of tables keeps the same
    /// order of channels, so packets in flight cannot block; at worst they are dropped.
    pub(crate) quiesce: Duration,
    /// Limit for routers to become empty.
    pub(crate) drain: Duration,
    /// Limit for routers to load their registers.
    pub(crate) install: Duration,
    /// Limit for NICs to resume.
    pub(crate) release: Duration,
}

impl Default for RerouteTimes {
    /// Limits for a live lab: replies take less than a millisecond, round trips under netem about
    /// 100 ms.
    fn default() -> Self {
        Self {
            ask_again: Duration::from_ms(5),
            quiesce: Duration::from_ms(500),
            drain: Duration::from_ms(200),
            install: Duration::from_ms(2_000),
            release: Duration::from_ms(2_000),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The phase to enter; never [`ReroutePhase::Done`].
    pub phase: ReroutePhase,
    /// A router in drain and install, otherwise a source.
    pub node: NodeRef,
}

/// A node's reply to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The node is quiet, empty, loaded or released.
    Done,
    /// The node has received the command but is not done.
    NotYet,
    /// The node rejects the command, or does not exist: it gets no more commands, except for its
    /// release.
    Gone,
}

/// The result of a reroute. `late` and `gone` are empty if it succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RerouteReport {
    /// Nodes that were not done in time, by phase. An entry for [`ReroutePhase::Install`] means
    /// that the network does not have the tables of the plan: plan again without that router.
    pub late: BTreeMap<ReroutePhase, Vec<NodeRef>>,
    pub gone: BTreeSet<NodeRef>,
    /// Given up before anything was installed.
    pub abandoned: bool,
    pub took: BTreeMap<ReroutePhase, Duration>,
}

impl RerouteReport {
    /// Whether every changed router has its registers.
    #[cfg(test)]
    pub(crate) fn is_installed(&self) -> bool {
        let late = self.late.contains_key(&ReroutePhase::Install);
        !late
            && !self.abandoned
            && !self
                .gone
                .iter()
                .any(|node| matches!(node, NodeRef::Chip(_)))
    }
}

/// A reroute in progress.
///
/// Call order: after [`new`](Self::new) and after every [`handle_answer`](Self::handle_answer) or
/// [`handle_timers`](Self::handle_timers), take commands from [`poll_command`](Self::poll_command)
/// until there is none, then wait for a reply or until [`next_wakeup`](Self::next_wakeup). The
/// reroute ends in [`ReroutePhase::Done`] after at most the sum of its times, and always tries to
/// release every source first.
#[derive(Clone, Debug)]
pub struct Reroute {
    sources: Vec<NodeRef>,
    routers: Vec<u32>,
    changed: Vec<u32>,
    times: RerouteTimes,
    phase: ReroutePhase,
    begun: Time,
    deadline: Time,
    /// When to command each node that is not done.
    pending: BTreeMap<NodeRef, Time>,
    /// The pending nodes by time.
    due: BTreeSet<(Time, NodeRef)>,
    outcome: RerouteReport,
}

impl Reroute {
    /// Nodes that the phase still waits for.
    #[cfg(test)]
    pub(crate) fn waiting_for(&self) -> impl ExactSizeIterator<Item = NodeRef> + '_ {
        self.pending.keys().copied()
    }

    /// Begins to reroute: stops `sources`, drains `routers` (working ones), and loads new registers
    /// into those in `changed`. If `changed` is empty, the reroute is done at once. Sources are the
    /// NICs, or the routers if these hold back packets of their NICs.
    pub fn new(
        now: Time,
        sources: &[NodeRef],
        routers: &[u32],
        changed: &[u32],
        times: RerouteTimes,
    ) -> Self {
        let mut reroute = Self {
            sources: sources.to_vec(),
            routers: routers.to_vec(),
            changed: changed.to_vec(),
            times,
            phase: ReroutePhase::Done,
            begun: now,
            deadline: Time::NEVER,
            pending: BTreeMap::new(),
            due: BTreeSet::new(),
            outcome: RerouteReport::default(),
        };
        if !changed.is_empty() {
            reroute.enter(now, ReroutePhase::Quiesce);
        }
        reroute
    }

    pub fn phase(&self) -> ReroutePhase {
        self.phase
    }

    /// The result, complete in [`ReroutePhase::Done`].
    pub fn outcome(&self) -> &RerouteReport {
        &self.outcome
    }

    /// When to call [`handle_timers`](Self::handle_timers) and [`poll_command`](Self::poll_command)
    /// again if no reply arrives; `None` when done.
    pub fn next_wakeup(&self) -> Option<Time> {
        let ask = self.due.first().map_or(Time::NEVER, |(at, _)| *at);
        (self.phase != ReroutePhase::Done).then_some(ask.min(self.deadline))
    }

    /// The next command due, if any. Commands to a node repeat until it is done or time is up.
    pub fn poll_command(&mut self, now: Time) -> Option<Command> {
        let &(at, node) = self.due.first()?;
        if at > now {
            return None;
        }
        self.ask_at(node, now + self.times.ask_again);
        Some(Command {
            phase: self.phase,
            node,
        })
    }

    /// A node replied to a command of `phase`. Ignores replies to earlier phases.
    pub fn handle_answer(&mut self, now: Time, phase: ReroutePhase, node: NodeRef, answer: Answer) {
        if phase != self.phase || !self.pending.contains_key(&node) {
            return;
        }
        match answer {
            Answer::NotYet => self.ask_at(node, now + self.times.ask_again),
            Answer::Done => self.settle(node),
            Answer::Gone => {
                self.outcome.gone.insert(node);
                self.settle(node);
            }
        }
        self.advance(now);
    }

    /// Stops waiting for late nodes.
    pub fn handle_timers(&mut self, now: Time) {
        if self.phase != ReroutePhase::Done && now >= self.deadline {
            let late: Vec<NodeRef> = self.pending.keys().copied().collect();
            for &node in &late {
                self.settle(node);
            }
            self.outcome.late.insert(self.phase, late);
            self.advance(now);
        }
    }

    /// Gives up: before installation, releases everything at once; an installation in progress is
    /// finished first, because a mixture of tables is useless.
    pub fn abandon(&mut self, now: Time) {
        if matches!(self.phase, ReroutePhase::Quiesce | ReroutePhase::Drain) {
            self.pending.clear();
            self.due.clear();
            self.outcome.abandoned = true;
            self.enter(now, ReroutePhase::Release);
        }
    }

    fn ask_at(&mut self, node: NodeRef, at: Time) {
        if let Some(before) = self.pending.insert(node, at) {
            self.due.remove(&(before, node));
        }
        self.due.insert((at, node));
    }

    fn settle(&mut self, node: NodeRef) {
        if let Some(at) = self.pending.remove(&node) {
            self.due.remove(&(at, node));
        }
    }

    /// Enters the next phase while no node is pending.
    fn advance(&mut self, now: Time) {
        while self.pending.is_empty() && self.phase != ReroutePhase::Done {
            let took = now.since(self.begun);
            self.outcome.took.insert(self.phase, took);
            let next = match self.phase {
                ReroutePhase::Quiesce => ReroutePhase::Drain,
                ReroutePhase::Drain => ReroutePhase::Install,
                ReroutePhase::Install => ReroutePhase::Release,
                ReroutePhase::Release | ReroutePhase::Done => ReroutePhase::Done,
            };
            self.enter(now, next);
        }
    }

    fn enter(&mut self, now: Time, phase: ReroutePhase) {
        self.phase = phase;
        self.begun = now;
        let (nodes, wait): (Vec<NodeRef>, _) = match phase {
            ReroutePhase::Quiesce => (self.sources.clone(), self.times.quiesce),
            ReroutePhase::Drain => (routers(&self.routers), self.times.drain),
            ReroutePhase::Install => (routers(&self.changed), self.times.install),
            ReroutePhase::Release => (self.sources.clone(), self.times.release),
            ReroutePhase::Done => {
                self.deadline = Time::NEVER;
                return;
            }
        };
        self.deadline = now + wait;
        for node in nodes {
            // Also release nodes that are gone: they may have been stopped before.
            if phase == ReroutePhase::Release || !self.outcome.gone.contains(&node) {
                self.ask_at(node, now);
            }
        }
        self.advance(now);
    }
}

fn routers(numbers: &[u32]) -> Vec<NodeRef> {
    numbers.iter().map(|&r| NodeRef::Chip(r)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NICS: [u32; 2] = [0, 1];
    const ROUTERS: [u32; 3] = [0, 1, 2];

    fn ms(ms: u64) -> Time {
        Time::ZERO + Duration::from_ms(ms)
    }

    fn begin(changed: &[u32]) -> Reroute {
        let sources = NICS.map(NodeRef::Processor);
        Reroute::new(ms(0), &sources, &ROUTERS, changed, RerouteTimes::default())
    }

    fn commands(reroute: &mut Reroute, now: Time) -> Vec<Command> {
        core::iter::from_fn(|| reroute.poll_command(now)).collect()
    }

    /// Runs the reroute to its end; `say` gives the nodes' replies. Returns the commands in order.
    fn run(reroute: &mut Reroute, say: impl Fn(Command, Time) -> Option<Answer>) -> Vec<Command> {
        let (mut asked, mut now) = (Vec::new(), ms(0));
        while reroute.phase() != ReroutePhase::Done {
            for command in commands(reroute, now) {
                asked.push(command);
                if let Some(answer) = say(command, now) {
                    reroute.handle_answer(now, command.phase, command.node, answer);
                }
            }
            if let Some(at) = reroute.next_wakeup() {
                assert!(at >= now, "time ran backwards");
                now = at;
                reroute.handle_timers(now);
            }
        }
        assert!(now <= ms(4_800), "the timeouts bound the total time");
        asked
    }

    #[test]
    fn all_phases_come_in_order_and_each_node_is_asked_once() {
        let mut reroute = begin(&[1, 2]);
        let asked = run(&mut reroute, |_, _| Some(Answer::Done));
        let phases: Vec<ReroutePhase> = asked.iter().map(|command| command.phase).collect();
        let mut expected = vec![ReroutePhase::Quiesce; 2];
        expected.extend([ReroutePhase::Drain; 3]);
        expected.extend([ReroutePhase::Install; 2]);
        expected.extend([ReroutePhase::Release; 2]);
        assert_eq!(phases, expected);
        assert_eq!(asked[5].node, NodeRef::Chip(1));
        let outcome = reroute.outcome();
        assert!(outcome.late.is_empty() && outcome.gone.is_empty() && outcome.is_installed());
        assert_eq!(outcome.took.len(), 4);
        assert_eq!(reroute.next_wakeup(), None);
    }

    #[test]
    fn without_changes_no_node_is_disturbed() {
        let mut reroute = begin(&[]);
        assert_eq!(reroute.phase(), ReroutePhase::Done);
        assert_eq!(commands(&mut reroute, ms(0)), []);
        assert_eq!(reroute.next_wakeup(), None);
    }

    #[test]
    fn nothing_is_installed_before_traffic_rests() {
        let mut reroute = begin(&[1]);
        let quiet_at = ms(42);
        let asked = run(&mut reroute, |command, now| {
            let quiet = command.phase != ReroutePhase::Quiesce || now >= quiet_at;
            Some(if quiet { Answer::Done } else { Answer::NotYet })
        });
        let quiesce = asked
            .iter()
            .filter(|command| command.phase == ReroutePhase::Quiesce)
            .count();
        assert_eq!(quiesce, 2 * (1 + 45 / 5), "repeated every 5 ms");
        assert_eq!(
            reroute.outcome().took[&ReroutePhase::Quiesce],
            Duration::from_ms(45)
        );
        assert!(reroute.outcome().late.is_empty());
    }

    #[test]
    fn a_busy_source_times_out() {
        let mut reroute = begin(&[1]);
        run(&mut reroute, |command, _| {
            let stuck =
                command.phase == ReroutePhase::Quiesce && command.node == NodeRef::Processor(1);
            Some(if stuck { Answer::NotYet } else { Answer::Done })
        });
        let outcome = reroute.outcome();
        assert_eq!(
            outcome.late,
            BTreeMap::from([(ReroutePhase::Quiesce, vec![NodeRef::Processor(1)])])
        );
        assert_eq!(outcome.took[&ReroutePhase::Quiesce], Duration::from_ms(500));
        assert!(outcome.is_installed());
    }

    #[test]
    fn traffic_is_released_even_if_no_node_answers() {
        let mut reroute = begin(&[1]);
        let asked = run(&mut reroute, |_, _| None);
        for nic in NICS {
            let released = |c: &&Command| {
                c.phase == ReroutePhase::Release && c.node == NodeRef::Processor(nic)
            };
            assert!(
                asked.iter().filter(released).count() > 100,
                "too few release requests"
            );
        }
        assert!(!reroute.outcome().is_installed());
        assert_eq!(reroute.outcome().late.len(), 4);
    }

    #[test]
    fn gone_nodes_get_only_the_release() {
        let mut reroute = begin(&[1, 2]);
        let asked = run(&mut reroute, |command, _| {
            let gone = [NodeRef::Chip(2), NodeRef::Processor(0)].contains(&command.node);
            Some(if gone { Answer::Gone } else { Answer::Done })
        });
        let of = |node| {
            asked
                .iter()
                .filter(|c| c.node == node)
                .map(|c| c.phase)
                .collect::<Vec<_>>()
        };
        assert_eq!(of(NodeRef::Chip(2)), [ReroutePhase::Drain]);
        assert_eq!(
            of(NodeRef::Processor(0)),
            [ReroutePhase::Quiesce, ReroutePhase::Release]
        );
        assert!(
            !reroute.outcome().is_installed(),
            "router 2 has its old registers"
        );
    }

    #[test]
    fn abandoning_before_install_releases_all() {
        let mut reroute = begin(&[1]);
        let first = commands(&mut reroute, ms(0));
        reroute.handle_answer(ms(1), first[0].phase, first[0].node, Answer::Done);
        reroute.abandon(ms(2));
        let asked = run(&mut reroute, |_, _| Some(Answer::Done));
        assert!(
            asked
                .iter()
                .all(|command| command.phase == ReroutePhase::Release)
        );
        assert_eq!(asked.len(), NICS.len());
        assert!(reroute.outcome().abandoned && !reroute.outcome().is_installed());
    }

    #[test]
    fn abandoning_during_install_finishes_it() {
        let mut reroute = begin(&[1, 2]);
        while reroute.phase() != ReroutePhase::Install {
            for command in commands(&mut reroute, ms(0)) {
                reroute.handle_answer(ms(0), command.phase, command.node, Answer::Done);
            }
        }
        reroute.abandon(ms(1));
        run(&mut reroute, |_, _| Some(Answer::Done));
        assert!(reroute.outcome().is_installed() && !reroute.outcome().abandoned);
    }

    #[test]
    fn late_answers_count_for_nothing() {
        let mut reroute = begin(&[1]);
        let first = commands(&mut reroute, ms(0));
        for command in &first {
            reroute.handle_answer(ms(1), command.phase, command.node, Answer::Done);
        }
        assert_eq!(reroute.phase(), ReroutePhase::Drain);
        for command in &first {
            reroute.handle_answer(ms(2), command.phase, command.node, Answer::Gone);
        }
        assert!(reroute.outcome().gone.is_empty());
        assert_eq!(reroute.waiting_for().len(), 3);
    }
}
