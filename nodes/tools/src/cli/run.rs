//! `phitwire run`: one node as a process.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use miette::miette;
use phitwire::chip::Grain;
use phitwire::link::CutThrough;
use phitwire::net;
use phitwire::net::{Network, NodeRef, Runtime};
use phitwire::nic::Incarnation;
use phitwire_nodes::clock::{self, Clock};
use phitwire_nodes::core_affinity::NetworkPosition;
use phitwire_nodes::io::{IoEngine, LinkKind};
use phitwire_nodes::ip::{IpConfig, Subnet};
use phitwire_nodes::process::{self, ProcessConfig};

use super::read_network;

#[derive(Debug, Args)]
pub struct RunArgs {
    /// Topology description
    #[arg(long, value_name = "FILE")]
    topology: PathBuf,
    /// Node to run
    #[arg(long)]
    node: String,
    /// Lab: the directory of the control socket, which also keeps labs apart on shared wires
    #[arg(long, env = super::LAB, hide_env_values = true)]
    lab: String,
    /// Transport of link frames
    #[arg(long, value_enum, default_value_t)]
    link: LinkKind,
    /// Stay within this MTU instead of the interfaces' MTU
    #[arg(long, value_name = "BYTES")]
    mtu: Option<usize>,
    /// Use UDP ports on loopback from this one on, instead of interfaces p0, p1, ...
    #[arg(long, value_name = "BASEPORT", conflicts_with = "qdisc_bypass")]
    loopback: Option<u16>,
    /// How to send and receive frames
    #[arg(long, value_enum, default_value_t)]
    io: IoEngine,
    /// Raw Ethernet only: skip the interface's queueing discipline. Faster, but disables tc netem
    #[arg(long)]
    qdisc_bypass: bool,
    /// Never send several frames in one segmentation-offload call
    #[arg(long)]
    no_offload: bool,
    /// First process of this node in this lab on these wires: the NIC need not wait for the
    /// requests of an earlier process to expire
    #[arg(long)]
    first: bool,
    /// Poll for frames this long before sleeping, as long as that pays off; 0: never
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0)]
    spin: u64,
    /// Stay on one core, shared with neighbours in the network, while nearly idle: for labs with
    /// many mostly sleeping processes per core
    #[arg(long)]
    stay: bool,
    /// Carry IPv4 between NICs, each through its TUN device `ip0`: processor N has address N + 1 of
    /// this network, such as 10.77.0.0/16
    #[arg(long, value_name = "CIDR")]
    ip: Option<Subnet>,
    /// Clock, instead of the topology's: `free`, or `paced:N` (an emulated nanosecond takes N)
    #[arg(long, value_parser = parse_clock)]
    clock: Option<net::Clock>,
    /// Unit of movement through a router's stages: flits, as on the chip, or whole packets, which
    /// costs less [default: packet under a free-running clock and flit under a paced one, if the
    /// router has both]
    ///
    /// Whole packets pass the same queues, arbiters and decisions. A packet starts through a router
    /// when all of it has arrived, or when there is room for all of it; the guide's page on the
    /// machine says which. Under a paced clock it takes every bus, stage and output for as many
    /// cycles as flit by flit; under a free-running one wires and stages take no time in either
    /// mode.
    #[arg(long, value_parser = grains())]
    grain: Option<Grain>,
    /// When the phits of a frame are passed up: with the frame, so that a packet inside one frame
    /// is checked before it moves; or as they arrive, so that it is forwarded speculatively and
    /// poisoned at the end if its check is wrong. Only for routers that take phits [default: frames
    /// under a free-running clock, phits under a paced one]
    #[arg(long, value_parser = cut_throughs())]
    cut_through: Option<CutThrough>,
}

fn cut_throughs() -> impl TypedValueParser<Value = CutThrough> {
    let names = [("frames", "With their frame"), ("phits", "As they arrive")];
    let names = names.map(|(name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(names).map(|name| match name.as_str() {
        "phits" => CutThrough::Phits,
        _ => CutThrough::Frames,
    })
}

fn grains() -> impl TypedValueParser<Value = Grain> {
    let names = [("flit", "Flit by flit"), ("packet", "Whole packets")];
    let names = names.map(|(name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(names).map(|name| match name.as_str() {
        "packet" => Grain::Packet,
        _ => Grain::Flit,
    })
}

fn parse_clock(text: &str) -> Result<net::Clock, String> {
    let dilation = text
        .strip_prefix("paced:")
        .and_then(|n| n.parse().ok())
        .filter(|&n| n > 0);
    match (text, dilation) {
        ("free", _) => Ok(net::Clock::FreeRunning),
        (_, Some(dilation)) => Ok(net::Clock::Paced { dilation }),
        _ => Err("expected `free` or `paced:N`, with N at least 1".to_owned()),
    }
}

pub fn run(args: RunArgs) -> miette::Result<ExitCode> {
    let file = args.topology.display().to_string();
    let network = read_network(&args.topology)?;
    let mut runtime = Runtime::new(&args.lab, clock::incarnation());
    runtime.clock = args.clock;
    runtime.grain = args.grain;
    runtime.cut_through = args.cut_through;
    runtime.real_wires = true;
    runtime.incarnation = Incarnation {
        clock_ns: clock::since_boot_ns(),
        first: args.first,
    };
    let seed = runtime.seed;
    let clock = Clock::new();
    let device = network
        .device(&args.node, &runtime, clock.now())
        .map_err(|error| miette!("{file}: {error}"))?;
    let ip = args.ip.map(|subnet| IpConfig {
        subnet,
        processors: processors(&*network),
        nonce: runtime.epoch,
    });
    let position = args
        .stay
        .then(|| NetworkPosition::of(&*network, &args.node))
        .flatten();
    let config = ProcessConfig {
        position,
        node: args.node,
        lab: args.lab,
        link: args.link,
        io: args.io,
        mtu: args.mtu,
        loopback: args.loopback,
        qdisc_bypass: args.qdisc_bypass,
        offload: !args.no_offload,
        spin: Duration::from_micros(args.spin),
        ip,
        seed,
    };
    process::run(&config, device, clock).map_err(|error| miette!("{error}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Number of processors: one more than the highest NIC number.
fn processors(network: &dyn Network) -> u16 {
    let number = |node| match node {
        NodeRef::Processor(number) => Some(number),
        NodeRef::Chip(_) => None,
    };
    let highest = network.nodes().into_iter().filter_map(number).max();
    let count = highest.map_or(0, |highest| highest.saturating_add(1));
    u16::try_from(count).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_free_or_paced() {
        assert_eq!(parse_clock("free"), Ok(net::Clock::FreeRunning));
        assert_eq!(
            parse_clock("paced:1000"),
            Ok(net::Clock::Paced { dilation: 1000 })
        );
        for text in ["", "paced", "paced:0", "paced:x", "fast"] {
            assert!(parse_clock(text).is_err(), "{text}");
        }
    }
}
