//! IP over the fabric: packets of a TUN device in the NIC's namespace are sent to other NICs as
//! datagrams.
//!
//! The fabric treats packets as opaque and does not resend them, like any wire.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::str::FromStr;

use phitwire::counters;
use phitwire::device::{Device, DeviceError, capability};
use phitwire::net::LinkAddresses;
use phitwire::nic::{DatagramError, Datagrams, MOST_DATAGRAM_BYTES, NoRoom, RemotePuts};
use phitwire::time::Time;

use crate::io::tun::Tun;

pub const DEVICE: &str = "ip0";
/// Maximum number of packets taken from the kernel per turn, so that IP does not delay the fabric.
const PACKETS_PER_TURN: usize = 64;
/// Offset of the destination in an IPv4 header (RFC 791).
const DESTINATION: std::ops::Range<usize> = 16..20;

/// The addresses of a lab: processor N has the network address + N + 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    network: u32,
    prefix: u32,
}

impl Subnet {
    /// Number of processors with an address: all but the first and last addresses are usable.
    fn addresses(self) -> u32 {
        (u32::MAX >> self.prefix) - 1
    }

    /// The processor with this address, if any.
    fn processor(self, address: Ipv4Addr) -> Option<u16> {
        let offset = u32::from(address).checked_sub(self.network)?;
        let processor = offset.checked_sub(1)?;
        let processor = Some(processor).filter(|&processor| processor < self.addresses())?;
        u16::try_from(processor).ok()
    }
}

impl FromStr for Subnet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "invalid IPv4 network `{text}`: expected an address and prefix, such as \
                 10.77.0.0/16"
            )
        };
        let (address, prefix) = text.split_once('/').ok_or_else(wrong)?;
        let network: Ipv4Addr = address.parse().map_err(|_| wrong())?;
        let prefix: u32 = prefix.parse().map_err(|_| wrong())?;
        if !(8..=30).contains(&prefix) {
            return Err(format!("`{text}`: the prefix length must be 8 to 30"));
        }
        let network = u32::from(network);
        if network & (u32::MAX >> prefix) != 0 {
            return Err(format!("`{text}` has host bits set"));
        }
        if matches!(network >> 24, 0 | 127 | 224..) {
            return Err(format!("`{text}` is not a unicast network"));
        }
        let of_links = [0, usize::from(u16::MAX)].map(LinkAddresses::of);
        let [first, last] =
            of_links.map(|link| link.expect("addresses exist for all link numbers").a.into());
        if network <= last && first <= network | u32::MAX >> prefix {
            return Err(format!(
                "`{text}` overlaps the addresses of the lab's links"
            ));
        }
        Ok(Self { network, prefix })
    }
}

counters! {
    /// Packets between the kernel and the fabric.
    pub struct IpCounters {
        /// Packets from the kernel sent to others.
        sent,
        /// Packets from others passed to the kernel.
        received,
        /// Packets from the kernel dropped: the limit of packets in flight to that processor was
        /// reached.
        dropped_full,
        /// Packets from the kernel dropped: the processor does not reply.
        dropped_silent,
        /// Packets from the kernel dropped: no processor has the address.
        dropped_no_processor,
        /// Packets from the kernel dropped: not IPv4.
        dropped_not_ipv4,
        /// Packets from others that the kernel refused.
        dropped_refused,
    }
}

#[derive(Clone, Copy, Debug)]
pub struct IpConfig {
    pub subnet: Subnet,
    /// Number of NICs in the lab, computed as the highest number plus one.
    pub processors: u16,
    /// Number that differs for every incarnation of the node.
    pub nonce: u32,
}

/// Connects the kernel and the fabric.
#[derive(Debug)]
pub struct IpDoor {
    /// The device; `None` after it has been removed.
    tun: Option<Tun>,
    subnet: Subnet,
    datagrams: Datagrams,
    room: Vec<u8>,
    counters: IpCounters,
}

impl IpDoor {
    /// Opens the TUN device in this network namespace and reserves buffers in the NIC's memory.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(config: IpConfig, device: &mut dyn Device) -> Result<Self, OpenError> {
        let (subnet, processors) = (config.subnet, config.processors);
        let addresses = subnet.addresses();
        if addresses < processors.into() {
            return Err(OpenError::Subnet {
                addresses,
                processors,
            });
        }
        let puts = device.need::<capability::Puts>()?;
        let datagrams = Datagrams::new(processors, config.nonce.into(), puts)?;
        Ok(Self {
            tun: Some(Tun::open(DEVICE).map_err(OpenError::Tun)?),
            subnet,
            datagrams,
            room: vec![0; MOST_DATAGRAM_BYTES],
            counters: IpCounters::default(),
        })
    }

    /// Readable when the kernel has packets.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.tun.as_ref().map(AsFd::as_fd)
    }

    pub fn for_each_counter(&self, mut visit: impl FnMut(&'static str, u64)) {
        self.counters.for_each(&mut visit);
        self.datagrams.counters().for_each(visit);
    }

    /// When [`pass`](Self::pass) is due without any event.
    pub fn next_deadline(&self) -> Option<Time> {
        self.datagrams.next_deadline()
    }

    /// Passes packets both ways. Returns whether the fabric got work. When the device is gone,
    /// packets from others are dropped.
    pub fn pass(&mut self, now: Time, puts: &mut dyn RemotePuts) -> bool {
        self.datagrams.poll(now, puts);
        while let Some(bytes) = self.datagrams.receive(puts, &mut self.room) {
            let packet = &self.room[..bytes];
            let given = self
                .tun
                .as_mut()
                .is_some_and(|tun| tun.send(packet).is_ok());
            *match given {
                true => &mut self.counters.received,
                false => &mut self.counters.dropped_refused,
            } += 1;
        }
        for _ in 0..PACKETS_PER_TURN {
            let Some(tun) = &mut self.tun else {
                break;
            };
            match tun.receive(&mut self.room) {
                Ok(Some(bytes)) => *self.take(now, bytes) += 1,
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "{DEVICE} is gone; this process no longer carries IP");
                    self.tun = None;
                }
            }
        }
        self.datagrams.put(now, puts)
    }

    /// Sends a packet from the kernel. Returns the counter to increment.
    fn take(&mut self, now: Time, bytes: usize) -> &mut u64 {
        let packet = &self.room[..bytes];
        let counters = &mut self.counters;
        let processor = match self.subnet.way_of(packet) {
            Ok(processor) => processor,
            Err(Astray::NotIpv4) => return &mut counters.dropped_not_ipv4,
            Err(Astray::NoProcessor) => return &mut counters.dropped_no_processor,
        };
        match self.datagrams.send(now, processor, packet) {
            Ok(()) => &mut counters.sent,
            Err(DatagramError::Full) => &mut counters.dropped_full,
            Err(DatagramError::Silent(_)) => &mut counters.dropped_silent,
            Err(DatagramError::NoProcessor(_)) => &mut counters.dropped_no_processor,
            Err(DatagramError::Length(bytes)) => {
                unreachable!(
                    "the packet has an address, so it is not empty, and {bytes} bytes fit into \
                     the buffer"
                )
            }
        }
    }
}

/// Why IP cannot be carried.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The NIC cannot carry datagrams.
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error("{0}; raise `memory_bytes` in the topology")]
    NoRoom(#[from] NoRoom),
    /// The subnet is too small.
    #[error("the subnet has addresses for {addresses} NICs, but the network has {processors}")]
    Subnet {
        addresses: u32,
        /// Number of NICs in the network.
        processors: u16,
    },
    #[error(
        "cannot open the TUN device {DEVICE}: {0}; `up.sh --ip` creates it, and needs /dev/net/tun"
    )]
    Tun(io::Error),
}

/// Why a packet has no destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Astray {
    NotIpv4,
    NoProcessor,
}

impl Subnet {
    fn way_of(self, packet: &[u8]) -> Result<u16, Astray> {
        let address = packet
            .get(DESTINATION)
            .and_then(|bytes| bytes.first_chunk());
        match (packet.first().map(|byte| byte >> 4), address) {
            (Some(4), Some(&address)) => {
                let address: [u8; 4] = address;
                self.processor(address.into()).ok_or(Astray::NoProcessor)
            }
            _ => Err(Astray::NotIpv4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_processors() {
        let subnet: Subnet = "10.77.0.0/24".parse().unwrap();
        for (address, processor) in [
            ("10.77.0.1", Some(0)),
            ("10.77.0.254", Some(253)),
            ("10.77.0.0", None),
            ("10.77.0.255", None),
            ("10.77.1.1", None),
            ("10.76.0.1", None),
        ] {
            assert_eq!(
                subnet.processor(address.parse().unwrap()),
                processor,
                "{address}"
            );
        }
        for right in [
            "10.0.0.0/8",
            "198.20.0.0/16",
            "198.16.0.0/15",
            "223.255.255.252/30",
        ] {
            assert!(right.parse::<Subnet>().is_ok(), "{right}");
        }
        for wrong in [
            "",
            "10.77.0.0",
            "10.77.0.0/31",
            "10.77.0.1/24",
            "x/16",
            "::/16",
            "256.1.1.0/24",
            "0.0.0.0/8",
            "127.0.0.0/16",
            "224.0.0.0/8",
            "255.255.0.0/16",
            "198.18.0.0/15",
            "198.19.255.0/24",
            "198.0.0.0/8",
        ] {
            assert!(wrong.parse::<Subnet>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn packets_that_are_none_go_nowhere() {
        let subnet: Subnet = "10.77.0.0/16".parse().unwrap();
        let mut packet = vec![0; 20];
        assert_eq!(subnet.way_of(&packet), Err(Astray::NotIpv4));
        packet[0] = 0x45;
        assert_eq!(subnet.way_of(&packet), Err(Astray::NoProcessor));
        packet[16..].copy_from_slice(&[10, 77, 1, 1]);
        assert_eq!(subnet.way_of(&packet), Ok(256));
        assert_eq!(subnet.way_of(&packet[..19]), Err(Astray::NotIpv4));
        assert_eq!(subnet.way_of(&[]), Err(Astray::NotIpv4));
    }
}
