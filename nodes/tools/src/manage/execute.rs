//! Executes a reroute: sends the commands of `phitwire::manage::Reroute` to routers when they are
//! due.

use std::collections::BTreeMap;
use std::thread::sleep;

use phitwire::kit::Attendance;
use phitwire::manage::{Answer, Command, Reroute, ReroutePhase, RerouteReport, RerouteTimes};
use phitwire::net::{NodeRef, RoutedTables};
use phitwire::time::{Duration, Time};
use phitwire_nodes::clock::{self, Clock};
use phitwire_nodes::control::{ClientError, Request, RoutingReport};

use super::fleet::{Routers, ask};

/// Longest quiescence of a router, in milliseconds. It exceeds the time of a whole reroute, but is
/// short enough that waiting packets do not time out (20 s by default).
pub const HOLD_MS: u64 = 10_000;

/// Longest sleep between two checks for due commands.
const STEP: Duration = Duration::from_ms(20);
/// Timeout of a router's reply.
const LONGEST_ANSWER: Duration = Duration::from_ms(5_000);

/// The outcome of a reroute, with the errors of routers that failed.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// The outcome of the sequence.
    pub outcome: RerouteReport,
    /// The last error of each router or its socket.
    pub troubles: BTreeMap<u32, String>,
}

/// Installs `tables` in those of the `living` routers that are in `changed`, polling
/// `should_stop`. Returns after at most the sum of the sequence's times, and always after an
/// attempt to release every router.
pub fn execute(
    routers: &mut impl Routers,
    living: &[u32],
    changed: &[u32],
    tables: &dyn RoutedTables,
    should_stop: &dyn Fn() -> bool,
) -> Done {
    // Timeouts count only time during which this process ran or waited for a reply.
    let (clock, mut attendance) = (Clock::new(), Attendance::new(Time::ZERO));
    let mut now = |asleep| attendance.look(clock.now(), asleep);
    let sources: Vec<NodeRef> = living.iter().map(|&router| NodeRef::Chip(router)).collect();
    let times = RerouteTimes::default();
    let mut reroute = Reroute::new(now(Duration::ZERO), &sources, living, changed, times);
    let mut troubles = BTreeMap::new();
    while reroute.phase() != ReroutePhase::Done {
        while let Some(command) = reroute.poll_command(now(Duration::ZERO)) {
            if should_stop() {
                reroute.abandon(now(Duration::ZERO));
            }
            let answer = answer(routers, command, tables).unwrap_or_else(|error| {
                if let NodeRef::Chip(router) = command.node {
                    troubles.insert(router, error.to_string());
                }
                Answer::Gone
            });
            reroute.handle_answer(now(LONGEST_ANSWER), command.phase, command.node, answer);
        }
        let at = now(STEP);
        reroute.handle_timers(at);
        if let Some(next) = reroute.next_wakeup() {
            sleep(clock::until(at, next).min(std::time::Duration::from_nanos(STEP.as_ns())));
        }
    }
    Done {
        outcome: reroute.outcome().clone(),
        troubles,
    }
}

fn answer(
    routers: &mut impl Routers,
    command: Command,
    tables: &dyn RoutedTables,
) -> Result<Answer, ClientError> {
    // Every command addresses a router: sources are routers here.
    let NodeRef::Chip(router) = command.node else {
        return Ok(Answer::Gone);
    };
    let request = match command.phase {
        ReroutePhase::Quiesce => Request::Quiesce { hold_ms: HOLD_MS },
        ReroutePhase::Drain => {
            let report: RoutingReport = ask(routers, router, &Request::Routing)?;
            return Ok(if report.drained {
                Answer::Done
            } else {
                Answer::NotYet
            });
        }
        ReroutePhase::Install => match tables.tables(router) {
            Some(tables) => Request::Install { tables },
            None => return Ok(Answer::Gone),
        },
        ReroutePhase::Release => Request::Release,
        ReroutePhase::Done => return Ok(Answer::Done),
    };
    routers.ask(router, &request).map(|_| Answer::Done)
}
