//! Watches the interfaces of a node: whether they exist, are up and have a sufficient MTU, and
//! which queueing disciplines they have.
//!
//! A link carries no notice of a cut cable or a deleted interface. The kernel reports both over a
//! netlink socket; one serves all ports of a process. Every change of a watched interface triggers
//! a query for the whole state, because notifications may be lost when many arrive at once, but
//! replies to queries are not.
//!
//! Queueing disciplines matter for another reason. A train of frames sent by one
//! segmentation-offload call passes a discipline in one piece: `netem` would drop, delay or reorder
//! the whole train, which no wire does. So while an interface has disciplines other than the
//! kernel's defaults, its port sends frames one by one.
//!
//! The six relevant attributes are parsed here by hand. The crate of netlink messages
//! (`netlink-packet-route`) parses all attributes of all interfaces and fails on the whole message
//! if it does not know one, as on a kernel newer than the crate. An existing interface would then
//! be reported missing.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send,
    socket,
};
use pnet::util::MacAddr;

use super::netlink::{
    HEADER, NLM_F_REQUEST_DUMP, NLMSG_DONE, NLMSG_ERROR, attribute, messages, text, u32_at,
};

/// Disciplines that only queue, which the kernel installs by default.
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

/// Multicast groups: `RTMGRP_LINK`, `RTMGRP_TC`, `RTMGRP_IPV4_IFADDR`.
const GROUPS: u32 = 0x1 | 0x8 | 0x10;
const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWQDISC: u16 = 36;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
/// Attribute in the last message about an interface that moves to another namespace.
const IFLA_NEW_NETNSID: u16 = 45;
const IFA_LOCAL: u16 = 2;
const TCA_KIND: u16 = 1;

/// The queries of a survey, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Links,
    Addresses,
    Disciplines,
}

impl Question {
    /// The request's type, and the length of the structure after its header.
    const fn request(self) -> (u16, usize) {
        match self {
            Self::Links => (18, IFINFOMSG),
            Self::Addresses => (22, IFADDRMSG),
            Self::Disciplines => (38, TCMSG),
        }
    }

    const fn next(self) -> Option<Self> {
        match self {
            Self::Links => Some(Self::Addresses),
            Self::Addresses => Some(Self::Disciplines),
            Self::Disciplines => None,
        }
    }
}

/// Sizes of an `ifinfomsg`, an `ifaddrmsg` and a `tcmsg` in bytes.
const IFINFOMSG: usize = 16;
const IFADDRMSG: usize = 8;
const TCMSG: usize = 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub index: u32,
    /// How often an interface of this name has disappeared. An interface that returns may have its
    /// old index, yet its sockets were unbound.
    pub life: u32,
    pub mac: MacAddr,
    /// Longest payload of a frame, in bytes.
    pub mtu: usize,
    /// Whether the interface is administratively up.
    pub is_up: bool,
    /// Whether the cable leads to an interface that is up.
    pub has_carrier: bool,
    pub addresses: Vec<Ipv4Addr>,
    /// Whether the interface has a queueing discipline that must see single frames.
    pub single_frames: bool,
}

/// Why an interface disappeared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// The interface or its pair was deleted.
    Deleted,
    /// Moved to another network namespace.
    Moved,
    Renamed,
}

/// Watches interfaces by name in the network namespace in which the watch was made.
#[derive(Debug)]
pub struct InterfaceWatch {
    socket: OwnedFd,
    known: BTreeMap<String, Option<Found>>,
    departed: BTreeMap<String, Departure>,
    /// How often each interface has disappeared or may have, by name.
    lives: BTreeMap<String, u32>,
    /// Results of the survey in progress.
    found: BTreeMap<String, Found>,
    /// Sequence number and kind of the query in progress, if any.
    asked: Option<(u32, Question)>,
    /// Whether anything has changed since the survey began.
    stale: bool,
    sequence: u32,
}

impl InterfaceWatch {
    /// Watches interfaces of these names, and queries their state.
    ///
    /// # Errors
    /// When the kernel refuses a netlink socket.
    pub fn new(names: impl IntoIterator<Item = String>) -> io::Result<Self> {
        let socket = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
            SockProtocol::NetlinkRoute,
        )?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, GROUPS))?;
        let mut this = Self {
            socket,
            known: names.into_iter().map(|name| (name, None)).collect(),
            departed: BTreeMap::new(),
            lives: BTreeMap::new(),
            found: BTreeMap::new(),
            asked: None,
            stale: true,
            sequence: 0,
        };
        this.update()?;
        Ok(this)
    }

    /// Readable when [`update`](Self::update) has something to do.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The interface of this name, as it was at the last update.
    pub fn find(&self, name: &str) -> Option<&Found> {
        self.known.get(name)?.as_ref()
    }

    /// Why the interface of this name disappeared, if the kernel reported it.
    pub fn departure(&self, name: &str) -> Option<Departure> {
        self.departed.get(name).copied()
    }

    /// Handles messages of the kernel, and queries the state after changes.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn update(&mut self) -> io::Result<()> {
        let mut buffer = [0; 32 << 10];
        loop {
            if self.stale && self.asked.is_none() {
                self.stale = false;
                self.found.clear();
                self.ask(Question::Links)?;
            }
            match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(bytes) => self.take(&buffer[..bytes])?,
                Err(Errno::EAGAIN) => return Ok(()),
                Err(Errno::EINTR) => {}
                // The socket's buffer overflowed, possibly losing part of a reply: query the whole
                // state.
                Err(Errno::ENOBUFS) => {
                    (self.stale, self.asked) = (true, None);
                    for name in self.known.keys() {
                        *self.lives.entry(name.clone()).or_default() += 1;
                    }
                }
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn ask(&mut self, question: Question) -> io::Result<()> {
        let (kind, body) = question.request();
        self.sequence += 1;
        let mut request = [0; HEADER + TCMSG];
        let length = HEADER + body;
        request[0..4].copy_from_slice(&(length as u32).to_ne_bytes());
        request[4..6].copy_from_slice(&kind.to_ne_bytes());
        request[6..8].copy_from_slice(&NLM_F_REQUEST_DUMP.to_ne_bytes());
        request[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
        match send(
            self.socket.as_raw_fd(),
            &request[..length],
            MsgFlags::MSG_DONTWAIT,
        ) {
            Ok(_) => self.asked = Some((self.sequence, question)),
            // Retry later: an earlier, abandoned reply has not been read completely.
            Err(Errno::EBUSY | Errno::EAGAIN) => self.stale = true,
            Err(errno) => return Err(errno.into()),
        }
        Ok(())
    }

    /// Reads the netlink messages of one datagram.
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        for (header, body) in messages(bytes) {
            let kind = u16::from_ne_bytes([header[4], header[5]]);
            match self.asked {
                Some((number, question)) if number == u32_at(header, 8) => match kind {
                    NLMSG_DONE | NLMSG_ERROR => self.answered(question)?,
                    _ => self.note(kind, body),
                },
                _ => self.handle_message(kind, body),
            }
        }
        Ok(())
    }

    fn answered(&mut self, question: Question) -> io::Result<()> {
        self.asked = None;
        match question.next() {
            // Discard the results, which may not include changes since the start.
            _ if self.stale => {}
            Some(next) => self.ask(next)?,
            None => {
                for (name, known) in &mut self.known {
                    *known = self.found.remove(name);
                    if let Some(known) = known {
                        known.life = self.lives.get(name).copied().unwrap_or_default();
                        self.departed.remove(name);
                    }
                }
            }
        }
        Ok(())
    }

    /// Handles a part of a reply.
    fn note(&mut self, kind: u16, body: &[u8]) {
        let Some(index) = index_of(body) else {
            return;
        };
        if kind == RTM_NEWLINK {
            if let Some((name, found)) = described(index, body)
                && self.known.contains_key(name)
            {
                self.found.insert(name.to_owned(), found);
            }
            return;
        }
        let Some(found) = self.found.values_mut().find(|found| found.index == index) else {
            return;
        };
        match kind {
            RTM_NEWADDR => {
                let local = attribute(body, IFADDRMSG, IFA_LOCAL);
                if let Some(address) = local.and_then(|value| value.first_chunk::<4>()) {
                    found.addresses.push(Ipv4Addr::from(*address));
                }
            }
            RTM_NEWQDISC => {
                let discipline = attribute(body, TCMSG, TCA_KIND).map(text);
                found.single_frames |= discipline.is_some_and(|name| !HARMLESS.contains(&name));
            }
            _ => {}
        }
    }

    /// Handles a notification. It is used only for the reason why an interface disappeared; the
    /// next survey reads the new state.
    fn handle_message(&mut self, kind: u16, body: &[u8]) {
        let Some(index) = index_of(body) else {
            return;
        };
        let is_ours = |found: &Found| found.index == index;
        let known = self
            .known
            .iter()
            .find(|(_, known)| known.as_ref().is_some_and(is_ours))
            .map(|(name, _)| name.clone());
        let new_name = match kind {
            RTM_NEWLINK => described(index, body).map(|(name, _)| name),
            _ => None,
        };
        self.stale |= known.is_some() || new_name.is_some_and(|name| self.known.contains_key(name));
        // Repeat a survey in progress: the interface may be a watched one that the survey has not
        // found yet.
        self.stale |= self.asked.is_some();
        let Some(name) = known else {
            return;
        };
        // When a port leaves a bridge, the kernel also sends RTM_DELLINK, with family AF_BRIDGE.
        // The interface still exists.
        let departure = match kind {
            RTM_DELLINK if body[0] != 0 => None,
            RTM_DELLINK if attribute(body, IFINFOMSG, IFLA_NEW_NETNSID).is_some() => {
                Some(Departure::Moved)
            }
            RTM_DELLINK => Some(Departure::Deleted),
            _ if new_name.is_some_and(|new| new != name) => Some(Departure::Renamed),
            _ => None,
        };
        if let Some(departure) = departure {
            *self.lives.entry(name.clone()).or_default() += 1;
            self.departed.insert(name, departure);
        }
    }
}

/// The interface described by an `ifinfomsg` and its attributes, and its name.
fn described(index: u32, body: &[u8]) -> Option<(&str, Found)> {
    let name = std::str::from_utf8(text(attribute(body, IFINFOMSG, IFLA_IFNAME)?)).ok()?;
    let flags = u32_at(body.get(8..12)?, 0);
    let mtu = attribute(body, IFINFOMSG, IFLA_MTU).filter(|value| value.len() == 4);
    let mac = attribute(body, IFINFOMSG, IFLA_ADDRESS).and_then(|value| value.first_chunk::<6>());
    let found = Found {
        index,
        mac: mac.map_or_else(MacAddr::zero, |&[a, b, c, d, e, f]| {
            MacAddr::new(a, b, c, d, e, f)
        }),
        mtu: mtu.map_or(0, |value| u32_at(value, 0) as usize),
        is_up: flags & libc::IFF_UP as u32 != 0,
        has_carrier: flags & libc::IFF_LOWER_UP as u32 != 0,
        ..Found::default()
    };
    Some((name, found))
}

/// The body of every message read here starts with a structure that has the interface's index in
/// bytes 4 to 7; attributes follow.
fn index_of(body: &[u8]) -> Option<u32> {
    body.get(4..8).map(|index| u32_at(index, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> InterfaceWatch {
        let mut watch = InterfaceWatch::new(["px".to_owned()]).expect("netlink is available");
        watch.known.insert(
            "px".to_owned(),
            Some(Found {
                index: 7,
                ..Found::default()
            }),
        );
        watch.stale = false;
        watch
    }

    /// A message body: an index, padding to `skip` bytes, then attributes.
    fn body(index: u32, skip: usize, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = vec![0; skip];
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        for (kind, value) in attributes {
            body.extend(((value.len() + 4) as u16).to_ne_bytes());
            body.extend(kind.to_ne_bytes());
            body.extend(*value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        body
    }

    #[test]
    fn loopback_is_described() {
        let mut watch = InterfaceWatch::new(["lo".to_owned(), "no-such-if".to_owned()])
            .expect("netlink is available");
        watch.update().expect("netlink is available");
        let lo = watch.find("lo").expect("every namespace has lo");
        assert!(lo.mtu >= 1500 && lo.index > 0);
        assert_eq!(watch.find("no-such-if"), None);
        assert_eq!(watch.departure("no-such-if"), None);
    }

    #[test]
    fn the_fates_of_an_interface_are_distinguished() {
        let last_words = |attributes: &[(u16, &[u8])]| body(7, IFINFOMSG, attributes);
        let name: (u16, &[u8]) = (IFLA_IFNAME, b"px\0");
        for (kind, message, wanted) in [
            (RTM_DELLINK, last_words(&[name]), Some(Departure::Deleted)),
            (
                RTM_DELLINK,
                last_words(&[name, (IFLA_NEW_NETNSID, &[0; 4])]),
                Some(Departure::Moved),
            ),
            (
                RTM_NEWLINK,
                last_words(&[(IFLA_IFNAME, b"py\0")]),
                Some(Departure::Renamed),
            ),
            (RTM_NEWLINK, last_words(&[name]), None),
            (RTM_DELLINK, body(8, IFINFOMSG, &[name]), None),
        ] {
            let mut watch = watch();
            watch.handle_message(kind, &message);
            assert_eq!(watch.departure("px"), wanted, "{message:?}");
        }
        let mut watch = watch();
        let mut of_a_bridge = last_words(&[name]);
        of_a_bridge[0] = 7;
        watch.handle_message(RTM_DELLINK, &of_a_bridge);
        assert_eq!(
            watch.departure("px"),
            None,
            "the interface only left a bridge"
        );
    }

    #[test]
    fn changes_of_others_are_no_reason_to_ask() {
        let mut watch = watch();
        watch.handle_message(
            RTM_NEWLINK,
            &body(8, IFINFOMSG, &[(IFLA_IFNAME, b"eth0\0")]),
        );
        watch.handle_message(RTM_NEWADDR, &body(8, IFADDRMSG, &[]));
        assert!(!watch.stale);
        watch.handle_message(RTM_NEWQDISC, &body(7, TCMSG, &[]));
        assert!(watch.stale);
        watch.stale = false;
        watch.handle_message(RTM_NEWLINK, &body(9, IFINFOMSG, &[(IFLA_IFNAME, b"px\0")]));
        assert!(watch.stale, "an interface of this name appeared");
    }

    #[test]
    fn malformed_netlink_messages_are_passed_over() {
        let impaired = |body: &[u8]| {
            let mut watch = watch();
            let found = Found {
                index: 7,
                ..Found::default()
            };
            watch.found.insert("px".to_owned(), found);
            watch.note(RTM_NEWQDISC, body);
            watch.found["px"].single_frames
        };
        let netem = body(7, TCMSG, &[(TCA_KIND, b"netem\0")]);
        assert!(impaired(&netem));
        for cut in 0..TCMSG + 10 {
            assert!(!impaired(&netem[..cut]), "cut at {cut}");
        }
        assert!(
            !impaired(&body(8, TCMSG, &[(TCA_KIND, b"netem\0")])),
            "another interface"
        );
        let mut watch = watch();
        let link = body(7, IFINFOMSG, &[(IFLA_IFNAME, b"px\0"), (IFLA_MTU, &[1])]);
        for cut in 0..link.len() {
            watch.note(RTM_NEWLINK, &link[..cut]);
            watch.handle_message(RTM_NEWLINK, &link[..cut]);
        }
        for length in [0u32, 3, 15, 16, 17, 40, u32::MAX] {
            let mut bytes = [0xff; 40];
            bytes[..4].copy_from_slice(&length.to_ne_bytes());
            watch.take(&bytes).expect("no reply is requested");
        }
    }
}
