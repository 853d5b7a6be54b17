//! Watches the interfaces on which nftables filters frames.
//!
//! A chain of nftables that hooks an interface's ingress or egress drops frames below the port, as
//! the loss of `impair.sh --nft` does, so the port is reported as impaired, like one with a
//! queueing discipline. It does not hold back segmentation offload: the kernel splits trains before
//! the chain sees them if the interface's offload is off, which `impair.sh` ensures.
//!
//! The kernel announces every change of its tables over netlink; each triggers a query of all
//! chains. No queries are sent while nothing changes.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, getsockname,
    recv, send, socket,
};

use super::netlink::{
    HEADER, NLM_F_REQUEST_DUMP, NLMSG_DONE, NLMSG_ERROR, attribute, attributes, messages, text,
    u32_at,
};

/// The multicast group `NFNLGRP_NFTABLES`, number 7.
const GROUPS: u32 = 1 << 6;
/// Messages of the subsystem `NFNL_SUBSYS_NFTABLES`.
const NFT_MSG_NEWCHAIN: u16 = 10 << 8 | 3;
const NFT_MSG_GETCHAIN: u16 = 10 << 8 | 4;
/// Bytes of an `nfgenmsg`. All zeros request every family.
const NFGENMSG: usize = 4;

const NFTA_CHAIN_HOOK: u16 = 4;
/// The only interface of a chain, on kernels before 5.5.
const NFTA_HOOK_DEV: u16 = 3;
const NFTA_HOOK_DEVS: u16 = 4;

/// Watches the filters in the network namespace in which the watch was made.
#[derive(Debug)]
pub struct FilterWatch {
    socket: OwnedFd,
    /// The address of the socket, which is in the replies to it.
    own_id: u32,
    sequence: u32,
    /// Names of the filtered interfaces.
    filtered: BTreeSet<Vec<u8>>,
}

impl FilterWatch {
    /// Watches all filters, and queries them.
    ///
    /// # Errors
    /// When the kernel refuses a netlink socket: it has no netfilter, or the process lacks
    /// `CAP_NET_ADMIN`.
    pub fn new() -> io::Result<Self> {
        let socket = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
            SockProtocol::NetlinkNetFilter,
        )?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, GROUPS))?;
        let own_id = getsockname::<NetlinkAddr>(socket.as_raw_fd())?.pid();
        let mut this = Self {
            socket,
            own_id,
            sequence: 0,
            filtered: BTreeSet::new(),
        };
        this.survey()?;
        Ok(this)
    }

    /// Readable when [`update`](Self::update) has something to do.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether a chain hooks the interface of this name.
    pub fn is_filtered(&self, interface: &str) -> bool {
        self.filtered.contains(interface.as_bytes())
    }

    /// Queries the filters if the kernel has announced changes.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn update(&mut self) -> io::Result<()> {
        let mut changed = false;
        self.receive(|_, _, _| {
            changed = true;
            false
        })?;
        if changed { self.survey() } else { Ok(()) }
    }

    /// Queries all chains; repeats the query if they change during it.
    fn survey(&mut self) -> io::Result<()> {
        loop {
            self.sequence += 1;
            let (sequence, own_id) = (self.sequence, self.own_id);
            send(
                self.socket.as_raw_fd(),
                &request(sequence),
                MsgFlags::MSG_DONTWAIT,
            )?;
            let (mut found, mut changed) = (BTreeSet::new(), false);
            // The kernel has the reply ready: a part on sending, each other part on receiving.
            self.receive(|header, kind, body| {
                match u32_at(header, 8) == sequence && u32_at(header, 12) == own_id {
                    // An error means that this kernel has no nftables, and so no filters.
                    true if kind == NLMSG_DONE || kind == NLMSG_ERROR => return true,
                    true if kind == NFT_MSG_NEWCHAIN => found.extend(hooked(body)),
                    true => {}
                    false => changed = true,
                }
                false
            })?;
            self.filtered = found;
            if !changed {
                return Ok(());
            }
        }
    }

    /// Calls `visit` with header, type and body of each message, until it returns true or there are
    /// no more.
    fn receive(&self, mut visit: impl FnMut(&[u8; HEADER], u16, &[u8]) -> bool) -> io::Result<()> {
        let mut buffer = [0; 32 << 10];
        loop {
            match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(bytes) => {
                    for (header, body) in messages(&buffer[..bytes]) {
                        let kind = u16::from_ne_bytes([header[4], header[5]]);
                        if visit(header, kind, body) {
                            return Ok(());
                        }
                    }
                }
                Err(Errno::EAGAIN) => return Ok(()),
                Err(Errno::EINTR) => {}
                // Announcements were lost: the same as an announcement.
                Err(Errno::ENOBUFS) => {
                    visit(&[0; HEADER], 0, &[]);
                }
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// The query of all chains of all families.
fn request(sequence: u32) -> [u8; HEADER + NFGENMSG] {
    let mut request = [0; HEADER + NFGENMSG];
    request[0..4].copy_from_slice(&((HEADER + NFGENMSG) as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&NFT_MSG_GETCHAIN.to_ne_bytes());
    request[6..8].copy_from_slice(&NLM_F_REQUEST_DUMP.to_ne_bytes());
    request[8..12].copy_from_slice(&sequence.to_ne_bytes());
    request
}

/// Names of the interfaces that a chain hooks; none for the chains of IP.
fn hooked(chain: &[u8]) -> Vec<Vec<u8>> {
    let hook = attribute(chain, NFGENMSG, NFTA_CHAIN_HOOK).unwrap_or_default();
    let only = attribute(hook, 0, NFTA_HOOK_DEV);
    let several = attribute(hook, 0, NFTA_HOOK_DEVS).unwrap_or_default();
    let names = attributes(several).map(|(_, name)| name).chain(only);
    names.map(|name| text(name).to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An attribute, padded.
    fn of(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((value.len() + 4) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn a_chain_names_the_interfaces_that_it_hooks() {
        let chain = |hook: &[u8]| [vec![5, 0, 0, 0], of(1, b"t\0"), hook.to_vec()].concat();
        let devices = [of(1, b"p1\0"), of(1, b"p33\0")].concat();
        let nested = |kind: u16, value: &[u8]| of(kind | 0x8000, value);
        for (hook, names) in [
            (
                nested(NFTA_CHAIN_HOOK, &of(NFTA_HOOK_DEV, b"p1\0")),
                &["p1"][..],
            ),
            (
                nested(NFTA_CHAIN_HOOK, &nested(NFTA_HOOK_DEVS, &devices)),
                &["p1", "p33"],
            ),
            (nested(NFTA_CHAIN_HOOK, &of(1, &[0; 4])), &[]),
            (Vec::new(), &[]),
        ] {
            let chain = chain(&hook);
            assert_eq!(
                hooked(&chain),
                names.iter().map(|name| name.as_bytes()).collect::<Vec<_>>()
            );
            for cut in 0..chain.len() {
                hooked(&chain[..cut]);
            }
        }
    }
}
