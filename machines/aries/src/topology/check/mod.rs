//! Finds mistakes in a dragonfly before a process starts.

mod cycles;
mod risk;
mod structure;
mod walk;

use super::model::Dragonfly;
use super::tables::{Faults, Routed};
use super::wiring::DragonflyWiring;
use phitwire::kit::cycles::shortest_cycle;
use phitwire::net::{Effort, Location, Mistake, MistakeKind as K, Mistakes};

pub use risk::endangered;
pub use walk::{Flaw, Walk, walk};

use cycles::Inputs;

/// A bounded check follows packets only up to this number of routers x (groups + routers per
/// group), since each takes some microseconds. In larger networks no packet is followed.
pub const MAX_LOOKS: u64 = 300_000;

/// All mistakes of a network, up to [`MAX_MISTAKES`](phitwire::net::MAX_MISTAKES).
///
/// Shape, names, ports and links are checked first. If they are correct, the route tables are
/// computed and every path of every packet is followed: from every router to every router, by every
/// port and on every class that any routing mode, load or random choice may select. Each path must
/// end at its destination. Then the channels (a link and a class) that packets hold while they wait
/// for others are searched for a cycle. The walk is exact, even for the largest machine: outside
/// its destination's group, a packet's path depends only on that group, so that 241 walks over all
/// routers and one walk per router inside each group suffice.
pub fn check(network: &Dragonfly) -> Vec<Mistake> {
    within(network, Effort::Exact).0.into_vec()
}

/// Like [`check`], but with the given effort. Also returns whether all packets were followed to
/// their ends.
pub(super) fn within(network: &Dragonfly, effort: Effort) -> (Mistakes, bool) {
    let mut mistakes = structure::check(network);
    if !mistakes.is_empty() {
        return (mistakes, false);
    }
    let shape = &network.shape;
    let looks = shape.routers() as u64 * (u64::from(shape.groups) + shape.group_routers() as u64);
    if looks > MAX_LOOKS && effort == Effort::Bounded {
        return (mistakes, false);
    }
    let wiring = DragonflyWiring::new(network);
    let routed = network.route_with(&wiring, &Faults::default());
    mistakes.extend(unreached(network, &routed));
    let walk = walk::walk_within(
        network,
        &wiring,
        &Faults::default(),
        &routed,
        effort.steps(),
    );
    mistakes.extend(flaws(network, &walk));
    if walk.followed {
        mistakes.extend(cycles::check(network, &wiring, &walk));
    }
    (mistakes, walk.followed)
}

/// Mistakes in the route tables of a network with the failed parts `faults`: pairs that the tables
/// do not connect, paths that end early, and cycles of channels.
pub fn check_routes(
    network: &Dragonfly,
    wiring: &DragonflyWiring,
    faults: &Faults,
    routed: &Routed,
) -> Vec<Mistake> {
    let mut mistakes: Vec<Mistake> = unreached(network, routed).into_iter().collect();
    let walk = walk(network, wiring, faults, routed);
    mistakes.extend(flaws(network, &walk));
    mistakes.extend(cycles::check(network, wiring, &walk));
    mistakes
}

fn flaws<'a>(network: &'a Dragonfly, walk: &'a Walk) -> impl Iterator<Item = Mistake> + 'a {
    walk.flaws.iter().map(|flaw| {
        K::Unreachable
            .at(Location::Network, flaw.describe(network))
            .help("a port in a route table leads to a dead end")
    })
}

/// One mistake for all pairs that cannot communicate.
fn unreached(network: &Dragonfly, routed: &Routed) -> Option<Mistake> {
    let report = &routed.report;
    let name = |router| network.shape.router_name(router);
    if let Some(&(from, to)) = report.lost.first() {
        let (from, to) = (name(from), name(to));
        return Some(
            K::Unreachable.at(Location::Network,
                format!(
                    "{from} is connected to {to}, but not by a path that takes green links before \
                     black ones ({} such pairs)",
                    report.lost_pairs
                ),
            )
            .help(
                "global entries do not distinguish the routers of a group: a link from another \
                 group must arrive where one green and one black link reach all of them",
            ),
        );
    }
    (report.cut_pairs > 0).then(|| {
        K::Unreachable
            .at(
                Location::Network,
                format!(
                    "the network is not connected: {} pairs of routers have no path",
                    report.cut_pairs
                ),
            )
            .help("add links, or list the missing routers in `absent`")
    })
}

/// Whether the channels that packets hold and wait for form no cycle.
pub fn is_deadlock_free(wiring: &DragonflyWiring, walk: &Walk) -> bool {
    shortest_cycle(&Inputs { wiring, walk }).is_none()
}
