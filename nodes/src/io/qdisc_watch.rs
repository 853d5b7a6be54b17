//! Notices queueing discipline on our interfaces that should see single frames.
//!
//! A train of frames sent by one segmentation-offload call passes a queueing discipline in one
//! piece. `netem` would then lose, delay or reorder the whole train, which no wire does. So
//! while anything but the kernel's own default disciplines is on an interface, its port sends
//! frames one by one. The kernel tells of changes over a netlink socket.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send,
    socket,
};
use phitwire::node::PortId;

/// Disciplines that only queue: what the kernel puts on interfaces by itself.
const HARMLESS: [&[u8]; 8] = [
    b"noqueue",
    b"pfifo_fast",
    b"pfifo",
    b"bfifo",
    b"mq",
    b"fq",
    b"fq_codel",
    b"fq_pie",
];

/// Multicast group of qdisc and filter changes (`RTMGRP_TC`).
const GROUP_TC: u32 = 0x8;
const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST_DUMP: u16 = 0x1 | 0x300;
/// Bytes of a `nlmsghdr` and of a `tcmsg`.
const HEADER: usize = 16;
const TCMSG: usize = 20;
/// The attribute that holds a discipline's name.
const TCA_KIND: u16 = 1;

/// Watches the interfaces of some ports.
#[derive(Debug)]
pub struct QdiscWatch {
    socket: OwnedFd,
    /// Ports by interface index.
    ports: BTreeMap<i32, u64>,
    impaired: u64,
    /// What the dump that is coming in has found so far.
    found: u64,
    /// Number of the dump that is coming in, if one is.
    dump: Option<u32>,
    /// Something changed since that dump was asked for.
    stale: bool,
    sequence: u32,
}

impl QdiscWatch {
    /// Watches the interfaces with these indices, and asks how they stand.
    ///
    /// # Errors
    /// When the kernel gives no netlink socket.
    pub fn new(interfaces: impl IntoIterator<Item = (PortId, u32)>) -> io::Result<Self> {
        let socket = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
            SockProtocol::NetlinkRoute,
        )?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, GROUP_TC))?;
        let mut ports = BTreeMap::new();
        for (port, index) in interfaces {
            *ports.entry(index as i32).or_default() |= 1u64 << port;
        }
        let (impaired, found, dump, stale, sequence) = (0, 0, None, false, 0);
        let mut this = Self {
            socket,
            ports,
            impaired,
            found,
            dump,
            stale,
            sequence,
        };
        this.ask()?;
        Ok(this)
    }

    /// Readable when [`update`](Self::update) has something to do.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Takes in what the kernel tells. The ports, as a bit mask, whose interfaces have a
    /// discipline that should see single frames.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn update(&mut self) -> io::Result<u64> {
        let mut buffer = [0; 32 << 10];
        loop {
            match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(bytes) => self.take(&buffer[..bytes]),
                Err(Errno::EAGAIN) => break,
                Err(Errno::EINTR) => {}
                // The kernel had more to tell than the socket holds: ask for the whole state.
                Err(Errno::ENOBUFS) => self.stale = true,
                Err(errno) => return Err(errno.into()),
            }
        }
        if self.stale && self.dump.is_none() {
            self.ask()?;
        }
        Ok(self.impaired)
    }

    /// Asks for all disciplines of all interfaces.
    fn ask(&mut self) -> io::Result<()> {
        self.sequence += 1;
        let mut request = [0; HEADER + TCMSG];
        request[0..4].copy_from_slice(&((HEADER + TCMSG) as u32).to_ne_bytes());
        request[4..6].copy_from_slice(&RTM_GETQDISC.to_ne_bytes());
        request[6..8].copy_from_slice(&NLM_F_REQUEST_DUMP.to_ne_bytes());
        request[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
        send(self.socket.as_raw_fd(), &request, MsgFlags::MSG_DONTWAIT)?;
        self.dump = Some(self.sequence);
        self.found = 0;
        self.stale = false;
        Ok(())
    }

    /// Reads the netlink messages of one datagram.
    fn take(&mut self, mut bytes: &[u8]) {
        while let Some(header) = bytes.first_chunk::<HEADER>() {
            let length = u32_at(header, 0) as usize;
            let Some(body) = bytes.get(HEADER..length) else {
                return;
            };
            let kind = u16::from_ne_bytes([header[4], header[5]]);
            if self.dump == Some(u32_at(header, 8)) {
                match kind {
                    RTM_NEWQDISC => self.found |= self.impaired_by(body),
                    NLMSG_DONE | NLMSG_ERROR => {
                        self.dump = None;
                        self.impaired = self.found;
                    }
                    _ => {}
                }
            } else {
                // Somebody changed something: how it stands then, a new dump tells.
                self.stale = true;
            }
            bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
    }

    /// The ports that the discipline described by a `tcmsg` and its attributes impairs.
    fn impaired_by(&self, body: &[u8]) -> u64 {
        let (Some(index), Some(mut attributes)) = (body.get(4..8), body.get(TCMSG..)) else {
            return 0;
        };
        let index = u32_at(index, 0) as i32;
        let Some(&ports) = self.ports.get(&index) else {
            return 0;
        };
        while attributes.len() >= 4 {
            let length = usize::from(u16::from_ne_bytes([attributes[0], attributes[1]]));
            let kind = u16::from_ne_bytes([attributes[2], attributes[3]]);
            let Some(value) = attributes.get(4..length) else {
                return 0;
            };
            if kind == TCA_KIND {
                let name = value.split(|&byte| byte == 0).next().unwrap_or_default();
                return if HARMLESS.contains(&name) { 0 } else { ports };
            }
            attributes = attributes
                .get(length.next_multiple_of(4)..)
                .unwrap_or_default();
        }
        0
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut value = [0; 4];
    value.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_netlink_messages_are_passed_over() {
        let mut watch = QdiscWatch::new([(3, 7)]).expect("netlink is everywhere");
        let mut body = [0; TCMSG + 12];
        body[4..8].copy_from_slice(&7i32.to_ne_bytes());
        body[TCMSG..TCMSG + 2].copy_from_slice(&10u16.to_ne_bytes());
        body[TCMSG + 2..TCMSG + 4].copy_from_slice(&TCA_KIND.to_ne_bytes());
        body[TCMSG + 4..TCMSG + 10].copy_from_slice(b"netem\0");
        assert_eq!(watch.impaired_by(&body), 1 << 3);
        for cut in 0..TCMSG + 10 {
            assert_eq!(watch.impaired_by(&body[..cut]), 0, "cut at {cut}");
        }
        body[4] = 8;
        assert_eq!(watch.impaired_by(&body), 0, "another interface");
        for length in [0u32, 3, 15, 16, 17, 40, u32::MAX] {
            let mut bytes = [0xff; 40];
            bytes[..4].copy_from_slice(&length.to_ne_bytes());
            watch.take(&bytes);
        }
    }
}
