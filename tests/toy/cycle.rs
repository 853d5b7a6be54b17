//! Rings under `phitwire sim`: over encoded links only, as one partition.

use std::collections::VecDeque;

use super::link::RingEnd;
use super::network::Ring;
use super::router::{FIRST_NIC, RingRouter};
use super::{CYCLE_PS, Packet};
use crate::catalogue::{ChoiceError, Given, OptionSpec, Simulated};
use crate::link::impair::Netem;
use crate::net::{Clock, End, Network, NodeRef, Profile, Runtime};
use crate::node::PortId;
use crate::packets::PacketInput;
use crate::sim::direct::config::{Config, ConfigError, Traffic};
use crate::sim::direct::encoded::build::{Builder, Place};
use crate::sim::direct::model::{ChipView, CycleModel, Partitioned, PortUse, Terminal};
use crate::sim::direct::partition::HELD_BACK;
use crate::sim::direct::pattern::{Destinations, Population};
use crate::sim::direct::shared::{Common, Shared};
use crate::sim::direct::source::{Births, NEVER, Source};
use crate::sim::direct::{Chosen, NoDirectLinks};
use crate::time::{Duration, Time};

/// Cycles that a packet is on a link.
const LINK_CYCLES: u32 = 4;
/// Fourth word of a reply.
const REPLY: u64 = 1;

/// Rings as the simulator sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingModel;

/// A source and sink.
#[derive(Debug)]
pub struct RingTerminal {
    common: Common,
    replies: VecDeque<Packet>,
}

fn key(packet: &Packet) -> u64 {
    packet.iter().fold(0, |key, word| key.rotate_left(9) ^ word)
}

impl Terminal<RingModel> for RingTerminal {
    fn common(&self) -> &Common {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn due(&self, _: &Shared<RingModel>) -> [u64; 2] {
        let reply = if self.replies.is_empty() { NEVER } else { 0 };
        [self.common.source.head().birth, reply]
    }

    fn next_packet(
        &mut self,
        [request, _]: [bool; 2],
        shared: &mut Shared<RingModel>,
    ) -> Option<Packet> {
        if let Some(packet) = self.replies.pop_front() {
            shared.reply_sent(key(&packet));
            return Some(packet);
        }
        if !request {
            return None;
        }
        let common = &mut self.common;
        let own = common.number;
        let head = common.source.head();
        let (to, _) = common
            .source
            .take(own, &shared.births, &shared.destinations);
        let name = head.sequence.into();
        let packet = [u64::from(to) | own << 16, head.birth, name, 0, 0, 0, 0, 0];
        shared.request_sent(key(&packet), head.birth);
        Some(packet)
    }

    fn is_at_rest(&self) -> bool {
        self.replies.is_empty()
    }
}

impl CycleModel for RingModel {
    type Topology = Ring;
    type Options = ();
    type Format = ();
    type Packet = Packet;
    type Terminal = RingTerminal;
    type Router = RingRouter;
    type End = RingEnd;
    type Assemblies = ();
    type Direct = NoDirectLinks;

    const PORTS: usize = 4;
    const CYCLE: Duration = Duration::from_ps(CYCLE_PS);
    const LINK_KINDS: &'static [&'static str] = &["ring"];
    const MAX_MESSAGE_BYTES: u8 = 32;
    const MESSAGE_BYTES: u8 = 32;
    const BIRTH_BITS: u32 = 64;

    fn message_phits(traffic: &Traffic) -> usize {
        1 + usize::from(traffic.request_reply)
    }

    fn terminal(_: &Ring, nic: u32, _: u8) -> Option<u64> {
        Some(nic.into())
    }

    fn build_encoded(
        ring: &Ring,
        config: &Config,
        (): &(),
        netem: Option<Netem>,
        _: usize,
    ) -> Result<Partitioned<Self>, ConfigError> {
        let traffic = &config.traffic;
        let numbers: Vec<u32> = (0..2 * ring.routers()).collect();
        let population = Population {
            numbers: &numbers,
            slices: 1,
        };
        let to = Destinations::new(traffic, population, config.seed, |_, _| None)?;
        let births = Births::new(traffic, Self::message_phits(traffic), 1);
        let senders = numbers
            .iter()
            .filter(|&&nic| !to.is_silent(nic.into()))
            .count() as u64;
        let terminals = numbers.iter().map(|&nic| {
            let number = nic.into();
            let mut source = Source::new(config.seed, number, to.is_silent(number), &births);
            source.reschedule(0, HELD_BACK);
            RingTerminal {
                common: Common::new(number, source),
                replies: VecDeque::new(),
            }
        });
        let terminals = vec![terminals.collect()];
        let shared = Shared::new(births.clone(), to.clone(), traffic.request_reply, ());
        let mut builder = Builder::new(config.seed, shared, terminals);
        let runtime = Runtime {
            clock: Some(Clock::Paced { dilation: 1 }),
            profile: Some(Profile::Paper),
            ..Runtime::new(ring.name(), 1)
        };
        let mut chips = Vec::new();
        for chip in 0..ring.routers() {
            let router = RingRouter::new(ring.router(chip, &runtime)?, Time::ZERO);
            chips.push(builder.add_router(0, chip, router));
        }
        let mut nics = Vec::new();
        for &nic in &numbers {
            let link = ring.ports(NodeRef::Processor(nic), &runtime)?.remove(0).1;
            nics.push(builder.add_terminal(0, nic, link));
        }
        let at = |End { node, port }| -> (Place, u8) {
            match node {
                NodeRef::Chip(chip) => (chips[chip as usize], port),
                NodeRef::Processor(nic) => (nics[nic as usize], port),
            }
        };
        for link in 0..ring.link_count() {
            let (a, b) = ring.ends(link);
            let latency = Self::CYCLE.times(LINK_CYCLES.into());
            builder.connect(link as u32, [at(a), at(b)], latency, netem);
        }
        let ports = (0..4 * ring.routers()).map(|port| match port % 4 < FIRST_NIC.into() {
            true => PortUse::Link(0),
            false => PortUse::Ejection,
        });
        Ok(Partitioned {
            partitions: builder.finish(LINK_CYCLES as usize),
            kinds: ports.map(Some).collect(),
            senders,
            stride: LINK_CYCLES,
            longest: LINK_CYCLES,
            slowest: 1,
        })
    }

    fn end(router: &RingRouter, port: PortId) -> Option<&RingEnd> {
        router.lcb(port)
    }

    fn view(router: &RingRouter) -> ChipView {
        let queued = (0..4).map(|port| router.queued(port));
        ChipView {
            phits_by_stage: [queued.sum(), 0, 0],
            phit_hops: router.core().packets(),
            ..ChipView::default()
        }
    }

    fn sent(end: &RingEnd) -> u64 {
        end.counters().tx_phits
    }

    fn receive(
        input: &mut PacketInput<Packet>,
        (): &mut (),
        cycle: u64,
        terminal: &mut RingTerminal,
        shared: &mut Shared<Self>,
    ) {
        while let Some(packet) = input.pop(0) {
            let &[head, born, name, kind, ..] = &packet;
            shared.tally.arrived_phits += 1;
            shared.tally.arrived_packets += 1;
            shared.tally.arrived_keys = shared.tally.arrived_keys.wrapping_add(key(&packet));
            let own = terminal.common.number;
            shared.tally.misrouted += u64::from(head as u16 != own as u16);
            terminal.common.trace.add(cycle);
            terminal.common.trace.add(key(&packet));
            if shared.request_reply && kind != REPLY {
                shared.tally.replies_made += 1;
                let back = head >> 16 & 0xffff | own << 16;
                terminal
                    .replies
                    .push_back([back, born, name, REPLY, 0, 0, 0, 0]);
            } else {
                shared.message_arrived(born.min(cycle), cycle);
            }
        }
    }

    fn has_room(end: &RingEnd, _: bool, _: &Shared<Self>) -> bool {
        end.room(0) > 0
    }

    fn push(end: &mut RingEnd, packet: &Packet) -> u64 {
        end.push(*packet);
        1
    }
}

impl Simulated for RingModel {
    const MACHINE: &'static str = "Toy";
    const OPTIONS: &'static [OptionSpec] = &[];

    fn choose(_: &Given) -> Result<Vec<Chosen<Self>>, ChoiceError> {
        let (name, options) = (None, ());
        Ok(vec![Chosen { name, options }])
    }
}
