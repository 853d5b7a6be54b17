//! The ports by which a packet would leave a router.

use phitwire_framing::yarc::memory::HASH_SHIFT;
use phitwire_framing::yarc::packet::DEST_MASK;

use super::{Core, Yarc};
use crate::route::Decision;
use crate::route::decision::{Explanation, RouteRequest};
use phitwire::chip::CoreOutlooks;
use phitwire::kit::bits;
use phitwire::link::LinkView as _;
use phitwire::trace::{Onward, Outlook, Question};

impl CoreOutlooks for Core {
    /// Requests are routed by address, responses by load.
    fn outlook(chip: &Yarc, question: &Question) -> Outlook {
        let port = usize::from(question.port);
        let Some(routes) = chip.core().routes(port) else {
            return Outlook {
                how: format!("port {port} is not in use"),
                ..Outlook::default()
            };
        };
        let hash = (question.address >> HASH_SHIFT) as u16 & DEST_MASK as u16;
        let request = RouteRequest {
            destination: question.to as u16 & DEST_MASK as u16,
            adaptive: question.response,
            hashed: !question.response,
            hash_bits: (!question.response).then_some(hash),
        };
        let vc = u8::from(question.response);
        let onward = |port: u8, kind: &'static str| Onward {
            port,
            vc,
            kind: kind.into(),
            state: 0,
            is_up: chip.lcb(port).map(|link| link.is_active()),
        };
        let numbers = |ports: u64| bits(ports).map(|port| port as u8);
        let mut found = Outlook::default();
        match routes.explain(request) {
            Explanation::Down { logical, .. } => {
                found
                    .consulted
                    .push(format!("tile{port}.root_location, .root_mask"));
                found
                    .consulted
                    .push(format!("tile{port}.port_map, entry {logical}"));
                found.how = format!("down: logical port {logical}");
            }
            Explanation::Up {
                entry,
                hash,
                spread,
                ..
            } => {
                found.consulted.push(format!("tile{port}.table.{entry}"));
                found.how = match question.response {
                    true => "adaptive: the column, then the row, with the most room".into(),
                    false => format!(
                        "hash {hash:#x} modulo {spread} selects one of the ports of the entry"
                    ),
                };
            }
            Explanation::Nowhere => found.how = "no table entry matches the destination".into(),
        }
        match routes.decide(request) {
            Decision::Port(out) => {
                let others = match routes.explain(request) {
                    Explanation::Up { ports, .. } => ports & !(1 << (out & 63)),
                    _ => 0,
                };
                let kind = match others | u64::from(found.how.starts_with("hash")) {
                    0 => "down",
                    _ => "up",
                };
                found.ways = vec![onward(out, kind)];
                found
                    .ways
                    .extend(numbers(others).map(|port| onward(port, "other hash")));
                found.is_certain = true;
            }
            Decision::Adaptive(ports) => {
                found.ways = numbers(ports).map(|port| onward(port, "up")).collect();
                found.is_certain = found.ways.len() == 1;
            }
            Decision::NeedsHash => {}
            Decision::Refused(why) => found.how = format!("{}: {why:?}", found.how),
        }
        found
    }
}
