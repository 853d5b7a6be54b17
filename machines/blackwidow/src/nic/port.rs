//! A port of a NIC: converts packets to and from the phits of one link.

use std::collections::VecDeque;

use phitwire_framing::yarc::packet::{PacketBuf, Vc};
use phitwire_framing::yarc::phit::Phit;

use super::counters::NicCounters;
use super::outstanding::Tid;
use crate::link::{Lcb, PhitLinkConfig};
use phitwire::link::NodeLink;
use phitwire::time::Time;

/// Maximum number of requests queued for the link, beyond its retry buffer.
pub(super) const REQUEST_QUEUE: usize = 1024;
/// Maximum number of responses queued for the link before the port stops accepting requests.
pub(super) const RESPONSE_QUEUE: usize = 64;

/// Assembles the packets of one virtual channel from phits.
#[derive(Clone, Debug, Default)]
struct Assembly {
    packet: PacketBuf,
    /// Whether to discard phits up to the end of packet.
    skipping: bool,
}

#[derive(Debug)]
pub(crate) struct Port {
    pub link: Lcb,
    requests: VecDeque<(Option<Tid>, PacketBuf)>,
    responses: VecDeque<PacketBuf>,
    assemblies: [Assembly; 2],
    pub counters: NicCounters,
}

impl Port {
    pub(crate) fn new(config: PhitLinkConfig, now: Time) -> Self {
        Self {
            link: Lcb::new(config, now),
            requests: VecDeque::with_capacity(REQUEST_QUEUE),
            responses: VecDeque::with_capacity(RESPONSE_QUEUE),
            assemblies: Default::default(),
            counters: NicCounters::default(),
        }
    }

    /// Number of requests and responses queued for the link.
    pub(crate) fn waiting(&self) -> [u64; 2] {
        [self.requests.len() as u64, self.responses.len() as u64]
    }

    /// Whether a request can be sent without queueing.
    #[inline]
    pub(crate) fn request_can_go(&self) -> bool {
        self.requests.is_empty() && self.link.wire().can_begin(Vc::Request)
    }

    /// Whether a request can be sent or queued.
    #[inline]
    pub(crate) fn request_has_room(&self) -> bool {
        self.requests.len() < REQUEST_QUEUE || self.request_can_go()
    }

    /// Whether a response can be sent or queued.
    #[inline]
    pub(crate) fn response_has_room(&self) -> bool {
        self.responses.len() < RESPONSE_QUEUE
    }

    #[inline]
    fn push(&mut self, packet: &PacketBuf) {
        self.link.push_packet(packet.as_slice());
    }

    /// Sends or queues a request; `tid` identifies it in the queue.
    ///
    /// # Panics
    /// If there is no room; check [`request_has_room`](Self::request_has_room) first.
    #[inline]
    pub(crate) fn send_request(&mut self, tid: Option<Tid>, packet: &PacketBuf) {
        if self.request_can_go() {
            self.push(packet);
        } else {
            assert!(
                self.requests.len() < REQUEST_QUEUE,
                "the caller checked for room"
            );
            self.requests.push_back((tid, *packet));
        }
    }

    /// Sends or queues a response.
    ///
    /// # Panics
    /// If there is no room; check [`response_has_room`](Self::response_has_room) first.
    #[inline]
    pub(crate) fn send_response(&mut self, packet: &PacketBuf) {
        if self.responses.is_empty() && self.link.wire().can_begin(Vc::Response) {
            self.push(packet);
        } else {
            assert!(
                self.responses.len() < RESPONSE_QUEUE,
                "the caller checked for room"
            );
            self.responses.push_back(*packet);
        }
    }

    /// Moves queued packets to the link. Drops and counts requests that are no longer outstanding
    /// according to `waits`.
    pub(crate) fn flush(&mut self, waits: impl Fn(Tid) -> bool) {
        while !self.responses.is_empty() && self.link.wire().can_begin(Vc::Response) {
            let packet = self.responses.pop_front().expect("the queue is not empty");
            self.push(&packet);
        }
        while let Some(&(tid, packet)) = self.requests.front() {
            if tid.is_some_and(|tid| !waits(tid)) {
                self.counters.requests_unsent += 1;
            } else if self.link.wire().can_begin(Vc::Request) {
                self.push(&packet);
            } else {
                break;
            }
            self.requests.pop_front();
        }
    }

    /// Takes phits of `vc` up to an end of packet. Returns true if [`packet`](Self::packet) is now
    /// complete, whatever its end says, and false if no phit is left. Packets that cannot be
    /// assembled are counted and dropped.
    #[inline]
    pub(crate) fn receive(&mut self, vc: Vc) -> bool {
        let Assembly { packet, skipping } = &mut self.assemblies[vc.index()];
        if packet.as_slice().last().is_some_and(|phit| phit.is_eop()) {
            packet.clear();
        }
        let input = self.link.input_mut();
        while input.ready(vc) {
            let phit = input.pop(vc);
            if phit.is_head() {
                self.counters.discard_cut += u64::from(!packet.is_empty() || *skipping);
                packet.clear();
                *skipping = false;
            } else if *skipping {
                *skipping = !phit.is_eop();
                continue;
            } else if packet.is_empty() {
                self.counters.discard_headless += 1;
                *skipping = !phit.is_eop();
                continue;
            }
            if !packet.push(phit) {
                self.counters.discard_overlong += 1;
                packet.clear();
                *skipping = !phit.is_eop();
            } else if phit.is_eop() {
                return true;
            }
        }
        false
    }

    /// The phits of the last packet taken from `vc`.
    #[inline]
    pub(crate) fn packet(&self, vc: Vc) -> &[Phit] {
        self.assemblies[vc.index()].packet.as_slice()
    }
}
