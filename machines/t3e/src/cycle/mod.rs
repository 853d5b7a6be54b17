//! Tori of T3E routers under `phitwire sim`, with processors that put or get up to 64 bytes.
//!
//! # Links
//!
//! A link carries one flit per clock of 13.33 ns, with a credit. From the crossbar to the pins of
//! the next router it takes three clocks, to and from a processor seven (T3E table 2).
//!
//! # Windows
//!
//! A window is as long as the latency of a link between routers: three clocks.

mod bound;
mod build;
mod credits;
mod direct_router;
#[cfg(test)]
mod mail_tests;
mod options;
mod packet;
mod terminal;
#[cfg(test)]
mod tests;

pub use options::T3eOptions;
pub use packet::Operation;

use phitwire_framing::t3e::flit::{Control, Flit, FlitKind, VCS, vc};
use phitwire_framing::t3e::packet::PacketBuf;

use self::credits::Returned;
use self::packet::Assembly;
use self::terminal::{Format, Reply, Terminal, channel};
use crate::CYCLE_PS;
use crate::link::{Depths, FlitEnd, FlitInput};
use crate::router::{PORTS, T3eRouter};
use crate::topology::Torus;
use phitwire::device::{Device, PipelineReport};
use phitwire::link::MAX_VCS;
use phitwire::link::impair::Netem;
use phitwire::node::PortId;
use phitwire::sim::direct::config::{Config, ConfigError, Traffic};
use phitwire::sim::direct::mail::{MailError, Reader};
use phitwire::sim::direct::model::{ChipView, CycleModel, DirectModel, Lanes, Partitioned, Stream};
use phitwire::sim::direct::shared::Shared;
use phitwire::sim::direct::{DirectPart, EncodedPart};
use phitwire::time::Duration;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct T3e;

impl CycleModel for T3e {
    type Topology = Torus;
    type Options = T3eOptions;
    type About = options::About;
    type Format = Format;
    type Packet = PacketBuf;
    type Reply = Reply;
    type Terminal = Terminal;
    type Router = T3eRouter;
    type End = FlitEnd;
    type Assemblies = Assembly;
    type Direct = Self;

    const PORTS: usize = PORTS;
    const CYCLE: Duration = Duration::from_ps(CYCLE_PS);
    const LINK_KINDS: &'static [&'static str] = &["x", "y", "z"];
    const STAGES: &'static [&'static str] = &["input queues"];
    const MAX_MESSAGE_BYTES: u8 = 64;
    const MESSAGE_BYTES: u8 = 64;
    const BIRTH_BITS: u32 = 48;
    /// All paths are minimal; routers choose only a channel.
    const OTHER_WAYS: &'static str = "adaptive";

    fn about(options: &T3eOptions) -> options::About {
        options.about()
    }

    fn bound(
        topology: &Torus,
        config: &Config,
        options: &T3eOptions,
    ) -> Result<Option<f64>, ConfigError> {
        bound::bound(topology, config, options)
    }

    fn message_phits(traffic: &Traffic) -> usize {
        let commands = Operation::default().commands(traffic.message_bytes);
        let [request, reply] = commands.map(|command| command.flits());
        request + usize::from(traffic.request_reply) * reply
    }

    fn terminal(topology: &Torus, nic: u32, _: u8) -> Option<u64> {
        build::index(topology, nic)
    }

    fn build_encoded(
        topology: &Torus,
        config: &Config,
        options: &T3eOptions,
        netem: Option<Netem>,
        partitions: usize,
    ) -> Result<Partitioned<EncodedPart<Self>>, ConfigError> {
        build::encoded(topology, (config, options), netem, partitions)
    }

    fn wire_cycles(topology: &Torus, _: &T3eOptions, link: usize) -> Result<u32, ConfigError> {
        Ok(build::cycles(topology, link))
    }

    fn end(router: &T3eRouter, port: PortId) -> Option<&FlitEnd> {
        router.lcb(port)
    }

    fn pipeline(router: &T3eRouter) -> PipelineReport {
        Device::pipeline(router)
    }

    fn view(router: &T3eRouter) -> ChipView {
        let counters = router.core().crossbar().counters();
        ChipView {
            phits_by_stage: [router.queued_everywhere(), 0, 0],
            phit_hops: counters.flits,
            ..direct_router::view(counters)
        }
    }

    /// Counted at the crossbar, because the links count the packets of their carrier.
    fn packets_passed(router: &T3eRouter) -> Option<u64> {
        Some(router.core().crossbar().counters().packets)
    }

    fn sent(end: &FlitEnd) -> u64 {
        end.sent_flits()
    }

    fn receive(
        input: &mut FlitInput,
        assembly: &mut Assembly,
        cycle: u64,
        terminal: &mut Terminal,
        shared: &mut Shared<Self>,
    ) {
        for vc in 0..VCS {
            while input.buffer().len(vc) > 0 {
                shared.tally.arrived_phits += 1;
                let word = input.pop(vc);
                terminal.take(cycle, (vc, word), assembly, shared);
            }
        }
    }

    fn has_room(end: &FlitEnd, is_reply: bool, shared: &Shared<Self>) -> bool {
        let [request, reply] = shared.format.commands();
        let (vc, command) = match is_reply {
            false => (vc::REQUEST, request),
            true => (vc::RESPONSE, reply),
        };
        end.credits(vc) as usize >= command.flits()
    }

    fn push(end: &mut FlitEnd, packet: &PacketBuf) -> u64 {
        let vc = channel(packet);
        for (at, word) in packet.flits().iter().enumerate() {
            end.push(vc, Flit::data(*word, vc, at == 0));
        }
        packet.flits().len() as u64
    }
}

impl Lanes for T3e {
    type Phit = Flit;
    type Credits = Returned;

    const CHIP_LANES: usize = PORTS;

    #[inline]
    fn lanes(port: usize) -> (usize, usize) {
        (port, 1)
    }

    fn delay_credits(credits: &Returned, by: usize, window: usize) -> [Returned; 2] {
        credits.delayed(by, window)
    }

    fn add_credits(credits: &mut Returned, more: &Returned) {
        credits.add(*more);
    }

    fn count_credits(credits: &Returned) -> [u32; MAX_VCS] {
        credits.counts()
    }

    /// Writes the word, and the control bits with the mark of the first flit in bit 6.
    fn write_phit(flit: Flit, mail: &mut Vec<u8>) {
        mail.extend(flit.word.to_le_bytes());
        mail.push(flit.control.bits() | u8::from(flit.control.is_head()) << 6);
    }

    fn read_phit(mail: &mut Reader<'_>) -> Result<Flit, MailError> {
        let (word, bits) = (mail.u64()?, mail.u8()?);
        let control = Control::parse(bits & !0x40, bits & 0x40 != 0);
        let control = control.ok_or(MailError::Phit)?;
        Ok(Flit { word, control })
    }

    fn write_credits(credits: &Returned, mail: &mut Vec<u8>) {
        credits.write(mail);
    }

    fn read_credits(mail: &mut Reader<'_>, window: usize) -> Result<Returned, MailError> {
        Returned::read(mail, window)
    }
}

impl DirectModel<Self> for T3e {
    type Router = direct_router::DirectRouter;

    const VCS: usize = VCS;
    const CREDITS: u32 = Depths::PAPER.deterministic as u32;

    /// Each flit carries its channel, so packets of different channels interleave.
    #[inline]
    fn follow(_: &mut Stream, flit: Flit) -> usize {
        match flit.control.kind() {
            FlitKind::Data(vc) => vc.into(),
            _ => 0,
        }
    }

    fn build(
        topology: &Torus,
        config: &Config,
        options: &T3eOptions,
        partitions: usize,
    ) -> Result<Partitioned<DirectPart<Self>>, ConfigError> {
        build::direct(topology, (config, options), partitions)
    }
}
