//! Predicts the path of a packet from a router.

use phitwire_framing::aries::flit::{Head, NodeId, Routing};

use super::pipeline::{FIRST_PROCESSOR_TILE, PAIR_TILES};
use super::{Aries, Core};
use crate::route::registers::{FIRST_NIC_PORT, PORTS, PortKind, PortMask};
use crate::route::{Arrival, NextHop};
use phitwire::chip::CoreOutlooks;
use phitwire::rng::Rng;
use phitwire::trace::{Onward, Outlook, Question};

/// The state bit of a packet on its path up.
const UP: u64 = 1 << 8;

const KINDS: [&str; 4] = ["processor", "green", "black", "blue"];

impl CoreOutlooks for Core {
    fn outlook(chip: &Aries, question: &Question) -> Outlook {
        let routes = chip.core().routes();
        let registers = routes.registers();
        let port = usize::from(question.port);
        let kind = registers.ports.get(port).copied().flatten();
        let Some(kind) = kind.filter(|_| port < PORTS) else {
            return Outlook {
                how: format!("port {port} is not in use"),
                ..Outlook::default()
            };
        };
        let to = NodeId::from_bits(question.to);
        let routing = match question.ordered {
            true => Routing::Ordered,
            false => Routing::default(),
        };
        let head = Head::new(question.response, 1, to, routing, 0, 0);
        let head = match question.state {
            None => head,
            Some(state) => head.with_vc(state as u8).with_non_minimal(state & UP != 0),
        };
        let ways = routes.ways(kind, head);
        let live = match chip.core().live_ports() {
            0 => None,
            live => Some(live),
        };
        let onward = |way: NextHop| {
            let vc = head.vc() & 4 | way.class & 3;
            Onward {
                port: way.port,
                vc,
                kind: match way.non_minimal {
                    _ if usize::from(way.port) >= FIRST_NIC_PORT => "ejection".into(),
                    true => "non-minimal".into(),
                    false => "minimal".into(),
                },
                state: u64::from(vc) | if way.non_minimal { UP } else { 0 },
                is_up: live.map(|live| live >> way.port & 1 != 0),
            }
        };
        let all: Vec<Onward> = ways.iter().map(onward).collect();
        let is_here = (to.group(), to.router()) == (registers.group, registers.router);
        if is_here {
            return Outlook {
                consulted: vec![format!(
                    "destination: group {}, router {}",
                    to.group(),
                    to.router()
                )],
                how: "arrived at the destination router".into(),
                is_certain: true,
                ways: all,
            };
        }
        let consulted = consulted(kind, to, registers.group);
        if !question.ordered {
            let how = match question.state {
                None => "adaptive mode 0: draws two ports of each kind, takes the less loaded path",
                Some(state) if state & UP != 0 => {
                    "going up: draws next steps and paths down, if any; takes the less loaded"
                }
                Some(_) => "draws two ports of each remaining kind, takes the less loaded path",
            };
            return Outlook {
                consulted,
                how: how.into(),
                is_certain: all.len() == 1,
                ways: all,
            };
        }
        let tile = tile_of(routes.flow_hash(question.port, head), port);
        let arrival = Arrival {
            port: tile as u8,
            kind,
            head,
        };
        let decision = routes.choose(
            arrival,
            live.unwrap_or(PortMask::MAX),
            &mut Rng::new(0, 0),
            |_| 0,
        );
        let mut found = Outlook {
            consulted,
            how: format!(
                "ordered: by the flow hash {:#018x}",
                routes.flow_hash(tile as u8, head)
            ),
            is_certain: decision.is_ok(),
            ways: all,
        };
        if let Ok(decision) = decision {
            let won = onward(decision.way);
            found.ways.retain(|way| *way != won);
            found.ways.insert(0, won);
        }
        found
    }
}

/// The arrival tile of an ordered packet with the given hash from a port.
const fn tile_of(hash: u64, port: usize) -> usize {
    match port.checked_sub(FIRST_NIC_PORT) {
        None => port,
        Some(nic) => {
            let first = FIRST_PROCESSOR_TILE + nic / 2 * PAIR_TILES;
            first + (hash % PAIR_TILES as u64) as usize
        }
    }
}

/// Names of the table entries that a tile for ports of `kind` consults.
fn consulted(kind: PortKind, to: NodeId, own: u16) -> Vec<String> {
    let kind = KINDS[kind as usize];
    let (scope, index) = match to.group() == own {
        true => ("local", u16::from(to.router())),
        false => ("global", to.group()),
    };
    ["minimal", "non_minimal"]
        .map(|which| format!("table.{kind}.{scope}_{which}.{index}"))
        .into()
}
