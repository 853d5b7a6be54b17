//! Predicts the outputs that a packet would take at a router.

use phitwire_framing::t3e::direction::Direction;
use phitwire_framing::t3e::flit::vc;
use phitwire_framing::t3e::tag::Tag;

use super::core::{RouterCore, T3eRouter};
use super::ports::PROCESSOR;
use crate::route::{Arrival, Decision, decide};
use phitwire::chip::CoreOutlooks;
use phitwire::link::LinkView as _;
use phitwire::trace::{Onward, Outlook, Question};

/// Position of the channel in a packet's state, above its tag.
const CHANNEL_AT: u32 = 32;
const NAMES: [&str; 6] = ["+X", "+Y", "+Z", "-X", "-Y", "-Z"];

impl CoreOutlooks for RouterCore {
    /// Predicts outputs. Ordered requests and their responses do not adapt.
    fn outlook(chip: &T3eRouter, question: &Question) -> Outlook {
        let crossbar = chip.core().crossbar();
        let registers = &crossbar.registers;
        let port = usize::from(question.port);
        let mut found = Outlook::default();
        let (tag, arrival) = match question.state {
            None => {
                let to = question.to as u16;
                found.consulted.push(format!("table.{to}"));
                let Some(mut entry) = crossbar.table.look_up(to) else {
                    found.how = "the look-up table has no entry".into();
                    return found;
                };
                entry.tag.adaptive &= !question.ordered;
                (entry.tag, Err(entry.initial))
            }
            Some(state) => {
                let tag = Tag::from_bits(state as u32 & ((1 << Tag::BITS) - 1));
                let channel = (state >> CHANNEL_AT) as usize;
                let Some(from) = Direction::ALL.get(port) else {
                    found.how = format!("port {port} is not a network port");
                    return found;
                };
                let arrival = Arrival {
                    direction: from.opposite(),
                    vc: (channel != vc::ADAPTIVE).then_some(channel as u8 & 1),
                };
                (tag, Ok(arrival))
            }
        };
        let onward = |port: usize, channel: usize, kind: &'static str| Onward {
            port: port as u8,
            vc: channel as u8,
            kind: kind.into(),
            state: u64::from(tag.bits()) | (channel as u64) << CHANNEL_AT,
            is_up: chip.lcb(port as u8).map(|link| link.is_active()),
        };
        match decide(registers, &tag, arrival) {
            Decision::Deliver => {
                found.how = "arrived at the destination".into();
                found
                    .ways
                    .push(onward(PROCESSOR, vc::of(question.response, 0), "ejection"));
            }
            Decision::Nowhere => found.how = "no node on its line is the destination".into(),
            Decision::Go {
                deterministic: (direction, channel),
                adaptive,
            } => {
                let name = NAMES[direction as usize];
                found.consulted.push("physical, datelines".to_owned());
                found
                    .consulted
                    .push(format!("vc_table.{}", direction as usize));
                found.how = match adaptive.filter(|other| *other != direction) {
                    None => format!("direction order: {name}"),
                    Some(other) => format!(
                        "direction order: {name}; or the adaptive channel of {}, if it has room",
                        NAMES[other as usize]
                    ),
                };
                let channel = vc::of(question.response, channel);
                found
                    .ways
                    .push(onward(direction as usize, channel, "deterministic"));
                let adaptive = adaptive.filter(|other| *other != direction);
                found
                    .ways
                    .extend(adaptive.map(|other| onward(other as usize, vc::ADAPTIVE, "adaptive")));
            }
        }
        found.is_certain = found.ways.len() == 1;
        found
    }
}
