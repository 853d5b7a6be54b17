//! Pairs of routers that a fault endangers while the tables from before the fault are in use.

use super::walk::{STATES, State};
use crate::route::decision::Routes;
use crate::topology::model::Dragonfly;
use crate::topology::tables::{Faults, Routed};
use crate::topology::wiring::DragonflyWiring;

/// Maximum number of routers for which pairs are checked one by one.
const MOST_ROUTERS: usize = 1024;
/// Longest path to follow, in links: ten according to the XC white paper, with a wide margin for
/// invalid tables.
const MOST_HOPS: u32 = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Unknown,
    Safe,
    Endangered,
}

struct Risk<'a> {
    network: &'a Dragonfly,
    wiring: &'a DragonflyWiring,
    faults: &'a Faults,
    routes: Vec<Routes>,
    fates: Vec<Fate>,
}

/// Pairs of working routers (source, destination) with a packet that may reach a router without a
/// live port for it, using the tables of `routed` with the failed parts `faults`. Routers skip dead
/// ports themselves. `None` for networks of more than 1,024 routers.
pub fn endangered(
    network: &Dragonfly,
    wiring: &DragonflyWiring,
    faults: &Faults,
    routed: &Routed,
) -> Option<Vec<(u32, u32)>> {
    let routers = network.shape.routers();
    if routers > MOST_ROUTERS {
        return None;
    }
    let mut risk = Risk {
        network,
        wiring,
        faults,
        routes: routed.registers.iter().cloned().map(Routes::new).collect(),
        fates: Vec::new(),
    };
    let living: Vec<u32> = network
        .routers()
        .filter(|r| !faults.routers.contains(r))
        .collect();
    let mut pairs = Vec::new();
    for &to in &living {
        risk.fates = vec![Fate::Unknown; routers * STATES];
        for &from in living.iter().filter(|&&from| from != to) {
            if risk.fate(State::source(from), to, 0) == Fate::Endangered {
                pairs.push((from, to));
            }
        }
    }
    pairs.sort_unstable();
    Some(pairs)
}

impl Risk<'_> {
    fn fate(&mut self, state: State, to: u32, hops: u32) -> Fate {
        if state.router == to {
            return Fate::Safe;
        }
        if hops > MOST_HOPS {
            return Fate::Endangered;
        }
        let index = state.index();
        if self.fates[index] == Fate::Unknown {
            let head = state.head(&self.network.shape, to);
            let ways = self.routes[state.router as usize].ways(state.kind, head);
            let mut next = ways
                .iter()
                .filter_map(|way| state.after(way, self.wiring, self.faults))
                .peekable();
            let mut fate = match next.peek() {
                Some(_) => Fate::Safe,
                None => Fate::Endangered,
            };
            let next: Vec<State> = next.map(|(state, _)| state).collect();
            for state in next {
                if self.fate(state, to, hops + 1) == Fate::Endangered {
                    fate = Fate::Endangered;
                    break;
                }
            }
            self.fates[index] = fate;
        }
        self.fates[index]
    }
}
