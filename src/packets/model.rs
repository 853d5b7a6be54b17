//! Networks of whole packets under `phitwire sim`, over encoded links.

use super::link::{PacketEnd, PacketInput, PacketLinkConfig};
use super::transfer::{Kind, Transfer};
use super::transfer_end::{PacketTransfers, TransferEnd as _, TransferPacket};
use crate::chip::{Chip, ChipCore};
use crate::device::{Device, PipelineReport};
use crate::link::impair::Netem;
use crate::link::{LinkView, NodeLink};
use crate::net::{Network, PlanError, Runtime};
use crate::node::PortId;
use crate::sim::direct::config::{Config, ConfigError, Traffic};
use crate::sim::direct::encoded::build::Nodes;
use crate::sim::direct::encoded::network::partitioned;
use crate::sim::direct::model::{ChipView, CycleModel, NoOptions, Partitioned, Terminal};
use crate::sim::direct::shared::{Common, Shared};
use crate::sim::direct::{EncodedPart, NoDirectLinks};
use crate::time::Duration;
use core::fmt::Debug;

/// A machine whose routers are chips with links of whole packets, whose ports send at most one
/// packet per cycle, and whose NICs have one link each. The channel on which a packet starts
/// depends only on the kind of its transfer.
pub trait PacketModel: Copy + Debug + Default + Eq + Send + Sync + 'static {
    type Topology: Network;
    type Packet: TransferPacket;
    type Core: ChipCore<End = PacketEnd<Self::Packet>>;

    /// Cycles that a packet takes on a link.
    const LINK_CYCLES: u32;
    /// Number of low bits of the birth cycle that a transfer's address carries.
    const BIRTH_BITS: u32 = u64::BITS;

    /// # Errors
    /// See [`PlanError`].
    fn router(
        topology: &Self::Topology,
        chip: u32,
        runtime: &Runtime,
    ) -> Result<Chip<Self::Core>, PlanError>;

    /// The link of a NIC.
    ///
    /// # Errors
    /// See [`PlanError`].
    fn nic_link(
        topology: &Self::Topology,
        nic: u32,
        runtime: &Runtime,
    ) -> Result<PacketLinkConfig, PlanError>;
}

/// A traffic source and sink.
#[derive(Debug)]
pub struct PacketTerminal<M: PacketModel>(Common<M>);

/// Distinguishes transfers; the sums over all sent and all arrived transfers must be equal.
fn key(transfer: &Transfer) -> u64 {
    let ends =
        u64::from(transfer.to) | u64::from(transfer.from) << 16 | (transfer.kind as u64) << 32;
    [transfer.address, transfer.name]
        .iter()
        .fold(ends, |key, word| key.rotate_left(23) ^ word)
}

impl<M: PacketModel> Terminal<M> for PacketTerminal<M> {
    fn common(&self) -> &Common<M> {
        &self.0
    }

    fn common_mut(&mut self) -> &mut Common<M> {
        &mut self.0
    }

    /// Replies go first.
    fn next_packet(
        &mut self,
        [request, reply]: [bool; 2],
        shared: &mut Shared<M>,
    ) -> Option<M::Packet> {
        if reply && let Some(packet) = self.next_reply(shared) {
            return Some(packet);
        }
        request.then(|| self.next_request(shared))
    }

    fn reply(transfer: Transfer, shared: &mut Shared<M>) -> M::Packet {
        shared.reply_sent(key(&transfer));
        M::Packet::pack(&transfer)
    }

    fn next_request(&mut self, shared: &mut Shared<M>) -> M::Packet {
        let Common { number, source, .. } = &mut self.0;
        let head = source.head();
        let (to, _) = source.take(*number, &shared.births, &shared.destinations);
        let transfer = Transfer {
            from: *number as u16,
            name: head.sequence.into(),
            ..Transfer::new(to as u16, Kind::Put, head.birth)
        };
        shared.request_sent(key(&transfer), head.birth);
        M::Packet::pack(&transfer)
    }
}

impl<M: PacketModel> PacketTerminal<M> {
    fn receive(&mut self, packet: &M::Packet, cycle: u64, shared: &mut Shared<M>) {
        let tally = &mut shared.tally;
        tally.arrived_phits += 1;
        tally.arrived_packets += 1;
        let Some(transfer) = packet.unpack() else {
            tally.damaged += 1;
            return;
        };
        let key = key(&transfer);
        tally.arrived_keys = tally.arrived_keys.wrapping_add(key);
        tally.misrouted += u64::from(u64::from(transfer.to) != self.0.number);
        self.0.trace.add(cycle);
        self.0.trace.add(key);
        if shared.request_reply && transfer.kind.is_request() {
            tally.replies_made += 1;
            self.0.replies.push_back((0, transfer.answer(Kind::Done)));
        } else {
            shared.message_arrived(transfer.address.min(cycle), cycle);
        }
    }
}

/// Builds the nodes of a network of model `M`.
struct TopologyNodes<'a, M: PacketModel>(&'a M::Topology);

impl<M: PacketModel> Nodes<M> for TopologyNodes<'_, M> {
    fn router(&self, chip: u32, runtime: &Runtime) -> Result<Option<Chip<M::Core>>, PlanError> {
        M::router(self.0, chip, runtime).map(Some)
    }

    fn links(&self, nic: u32, runtime: &Runtime) -> Result<Vec<PacketLinkConfig>, PlanError> {
        Ok(vec![M::nic_link(self.0, nic, runtime)?])
    }
}

impl<M: PacketModel> CycleModel for M {
    type Topology = M::Topology;
    type Options = ();
    type About = NoOptions;
    type Format = ();
    type Packet = M::Packet;
    type Reply = Transfer;
    type Terminal = PacketTerminal<M>;
    type Router = Chip<M::Core>;
    type End = PacketEnd<M::Packet>;
    type Assemblies = ();
    type Direct = NoDirectLinks;

    const PORTS: usize = M::Core::PORTS;
    const CYCLE: Duration = Duration::from_ps(M::Core::CYCLE_PS);
    const LINK_KINDS: &'static [&'static str] = &["links"];
    const STAGES: &'static [&'static str] = &["input queues"];
    const MAX_MESSAGE_BYTES: u8 = M::Packet::ABILITIES.max_size as u8;
    const MESSAGE_BYTES: u8 = Self::MAX_MESSAGE_BYTES;
    const BIRTH_BITS: u32 = M::BIRTH_BITS;

    fn about((): &()) -> NoOptions {
        NoOptions {}
    }

    fn message_phits(traffic: &Traffic) -> usize {
        1 + usize::from(traffic.request_reply)
    }

    fn terminal(_: &M::Topology, nic: u32, _: u8) -> Option<u64> {
        Some(nic.into())
    }

    fn build_encoded(
        topology: &M::Topology,
        config: &Config,
        options: &(),
        netem: Option<Netem>,
        partitions: usize,
    ) -> Result<Partitioned<EncodedPart<Self>>, ConfigError> {
        let how = (config, netem, partitions);
        let made = ((), PacketTerminal);
        partitioned(
            topology,
            &TopologyNodes::<M>(topology),
            made,
            how,
            (options, M::LINK_CYCLES),
        )
    }

    fn wire_cycles(_: &M::Topology, (): &(), _: usize) -> Result<u32, ConfigError> {
        Ok(M::LINK_CYCLES)
    }

    fn end(router: &Chip<M::Core>, port: PortId) -> Option<&Self::End> {
        router.lcb(port)
    }

    fn pipeline(router: &Chip<M::Core>) -> PipelineReport {
        Device::pipeline(router)
    }

    fn view(router: &Chip<M::Core>) -> ChipView {
        let ends = (0..Self::PORTS as PortId).filter_map(|port| router.lcb(port));
        ChipView {
            phits_by_stage: [router.queued_everywhere(), 0, 0],
            phit_hops: ends.map(|end| end.counters().tx_packets).sum(),
            ..ChipView::default()
        }
    }

    fn sent(end: &Self::End) -> u64 {
        end.counters().tx_phits
    }

    fn receive(
        input: &mut <Self::End as NodeLink>::Input,
        (): &mut (),
        cycle: u64,
        terminal: &mut PacketTerminal<M>,
        shared: &mut Shared<Self>,
    ) {
        let input: &mut PacketInput<M::Packet> = input;
        for vc in 0..<M::Packet as super::Packet>::VCS {
            while let Some(packet) = input.pop(vc) {
                terminal.receive(&packet, cycle, shared);
            }
        }
    }

    fn has_room(end: &Self::End, is_reply: bool, _: &Shared<Self>) -> bool {
        let kind = if is_reply { Kind::Done } else { Kind::Put };
        PacketTransfers::<M::Packet>::has_room(end, kind, 0)
    }

    fn push(end: &mut Self::End, packet: &M::Packet) -> u64 {
        end.push(*packet);
        1
    }
}
