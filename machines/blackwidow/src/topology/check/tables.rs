//! Checks a router's registers without following packets.

use crate::route::modulo::{is_supported_count, supported_at_most};
use crate::route::registers::NO_PORT;
use crate::route::registers::{PORTS, PortKind, TABLE_ENTRIES};
use crate::topology::computed::peers;
use crate::topology::model::{FoldedClos, VirtualRouter};
use crate::topology::wiring::ClosWiring;
use phitwire::net::PortSet;
use phitwire::net::{Location, Mistake, MistakeKind as K, Mistakes};

pub(super) fn check(topology: &FoldedClos, wiring: &ClosWiring, mistakes: &mut Mistakes) {
    for number in 0..wiring.router_count() as u32 {
        let router = wiring.router(topology, number);
        let chip_and_router = wiring.place_of(number);
        let context = Context {
            topology,
            wiring,
            number,
            router,
            chip_and_router,
        };
        context.peers(mistakes);
        context.masks(mistakes);
        context.entries(mistakes);
        context.port_map(mistakes);
    }
}

struct Context<'t> {
    topology: &'t FoldedClos,
    wiring: &'t ClosWiring,
    number: u32,
    router: &'t VirtualRouter,
    chip_and_router: (u32, u32),
}

impl Context<'_> {
    fn at_router(&self, kind: K, message: String) -> Mistake {
        kind.at(
            Location::Router(self.chip_and_router.0, self.chip_and_router.1),
            message,
        )
    }

    fn kind(&self, port: u8) -> Option<PortKind> {
        self.wiring.kind(self.chip_and_router.0, port)
    }

    fn peers(&self, mistakes: &mut Mistakes) {
        let up = self
            .wiring
            .ports_of_kind(self.topology, self.number, PortKind::Up);
        let room = TABLE_ENTRIES - usize::from(!up.is_empty());
        let peers = peers(self.topology, self.wiring, self.number).len();
        if peers > room {
            let message = format!(
                "{} has sidelinks to {peers} peer subtrees, but room for only {room} in its table",
                self.router.name
            );
            mistakes.push(
                self.at_router(K::TooManyPeers, message)
                    .help("each peer subtree needs a separate entry (BlackWidow sec. 5.1)"),
            );
        }
    }

    fn masks(&self, mistakes: &mut Mistakes) {
        let exit = self.router.registers.exit_mask;
        let leak = exit - self.router.ports;
        if !leak.is_empty() {
            let name = &self.router.name;
            mistakes.push(
                self.at_router(
                    K::PortLeak,
                    format!("the exit mask of {name} includes port {leak} of another router"),
                )
                .help(format!(
                    "the ports of this router are {} (BlackWidow sec. 7.4)",
                    self.router.ports
                )),
            );
        }
    }

    fn entries(&self, mistakes: &mut Mistakes) {
        let name = &self.router.name;
        for (index, entry) in self.router.registers.table.iter().enumerate() {
            let ports = PortSet::from_bits(entry.ports);
            if ports.is_empty() {
                continue;
            }
            let location =
                Location::Entry(self.chip_and_router.0, self.chip_and_router.1, index as u8);
            let mut found = |kind: K, message: String, help: String| {
                mistakes.push(kind.at(location.clone(), message).help(help));
            };
            if !is_supported_count(ports.len()) {
                found(
                    K::UnsupportedPortCount,
                    format!("entry {index} of {name} lists {} ports", ports.len()),
                    format!(
                        "the hash supports only the moduli 1-8, 10, 12, 14, 16, 20, 24, 28 and 32 \
                         (BlackWidow sec. 7.8.2): list {} of the ports in a separate entry",
                        supported_at_most(ports.len())
                    ),
                );
            }
            let foreign = ports - self.router.ports;
            let of_kind = |kind| -> PortSet {
                let own = (ports - foreign).iter();
                own.filter(|&port| self.kind(port) == kind).collect()
            };
            let (dead, down) = (of_kind(None), of_kind(Some(PortKind::Down)));
            if !foreign.is_empty() {
                found(
                    K::PortLeak,
                    format!("entry {index} of {name} lists port {foreign} of another router"),
                    format!("the ports of {name} are {}", self.router.ports),
                );
            }
            if !dead.is_empty() {
                found(
                    K::DeadPort,
                    format!("entry {index} of {name} lists port {dead}, which has no link"),
                    String::from("connect the port or remove it from the entry"),
                );
            }
            if !down.is_empty() {
                found(
                    K::UpDownViolation,
                    format!("entry {index} of {name} lists port {down}, a downlink"),
                    String::from(
                        "table entries route packets up or over; packets go down only where root \
                         detect matches (BlackWidow sec. 5)",
                    ),
                );
            }
        }
    }

    fn port_map(&self, mistakes: &mut Mistakes) {
        let name = &self.router.name;
        let last = usize::from(self.router.registers.down_mask).min(PORTS - 1);
        let map = &self.router.registers.port_map[..=last];
        for (logical, &port) in map.iter().enumerate().filter(|(_, p)| **p != NO_PORT) {
            let says = format!("logical port {logical} of {name} is port {port}");
            let (kind, what, help) = match self.kind(port) {
                _ if usize::from(port) >= PORTS => (
                    K::PortOutOfRange,
                    "which does not exist",
                    "ports are 0 to 63",
                ),
                _ if !self.router.ports.contains(port) => (
                    K::PortLeak,
                    "which belongs to another router",
                    "map it to a port of this router",
                ),
                None => (
                    K::DeadPort,
                    "which has no link",
                    "connect the port, or map it to \"none\"",
                ),
                Some(PortKind::Up | PortKind::Side) => (
                    K::UpDownViolation,
                    "which is not a downlink",
                    "map it to a downlink (BlackWidow sec. 5.2, 7.7)",
                ),
                Some(PortKind::Down) => continue,
            };
            mistakes.push(self.at_router(kind, format!("{says}, {what}")).help(help));
        }
    }
}
