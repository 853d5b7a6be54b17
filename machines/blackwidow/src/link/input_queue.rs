//! The input queue of a port, to which the link control block writes phits before it knows their
//! CRC.

use phitwire_framing::yarc::packet::{EopStatus, Vc, eop_status, head_vc};
use phitwire_framing::yarc::phit::Phit;

use super::config::PhitLinkConfig;
use super::phit_ring::PhitRing;
use phitwire::link::{Change, ReceiveBuffer};

/// The link control block's verdict on a packet at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Received correctly on this link. The sender's credits for it return once it has flowed out.
    Accepted,
    /// Rejected by this link: the sender will resend it under the same credits.
    Rejected,
}

/// One virtual channel: its phits, and the changes not yet reported to the peer and to the reader.
#[derive(Clone, Debug)]
struct VcRing {
    phits: PhitRing,
    /// Phits that flowed out and whose VC acknowledgements may be sent.
    acks: u32,
    /// Phits that flowed out of a packet whose end has not arrived.
    withheld: u32,
    /// Phits at the front that belong to a rejected packet; no credit covers them.
    silent: u32,
    /// The tail as last reported to the reader.
    reported: u32,
    /// The front as the reader saw it, if part of it has been taken back since.
    seen: Option<Front>,
}

/// The phits that decide the route of the packet at the front: the next one and the one after it.
type Front = [Option<Phit>; 2];

impl VcRing {
    fn new(capacity: u32) -> Self {
        Self {
            phits: PhitRing::new(capacity),
            acks: 0,
            withheld: 0,
            silent: 0,
            reported: 0,
            seen: None,
        }
    }

    #[inline]
    fn len(&self) -> u32 {
        self.phits.len()
    }

    /// The first two phits before position `end`.
    #[inline]
    fn front(&self, end: u32) -> Front {
        let len = end.wrapping_sub(self.phits.head()) as i32;
        [0, 1].map(|at| (len > at as i32).then(|| self.phits.at(at)))
    }

    /// Removes the packet that starts at `start` and has not begun to flow.
    fn take_back(&mut self, start: u32) {
        let left = start.wrapping_sub(self.phits.head());
        let reader_knows_of_it = (self.reported.wrapping_sub(start) as i32) > 0;
        if left < 2 && reader_knows_of_it && self.seen.is_none() {
            self.seen = Some(self.front(self.reported));
        }
        self.phits.cut(start);
    }

    #[inline]
    fn take_change(&mut self) -> Option<Change> {
        let tail = self.phits.tail();
        let new = tail.wrapping_sub(self.reported) as i32;
        let seen = self.seen.take();
        self.reported = tail;
        if new > 0 {
            return Some(Change::Arrived(new as u32));
        }
        let is_other = seen.is_some_and(|seen| seen != self.front(tail));
        is_other.then_some(Change::Front)
    }

    /// Whether any phit of the packet that starts at `start` has flowed out.
    #[inline]
    fn begun(&self, start: u32) -> bool {
        let out = self.phits.head().wrapping_sub(start);
        out != 0 && out <= u32::MAX / 2
    }
}

#[derive(Clone, Copy, Debug)]
enum Open {
    None,
    /// A packet is being written; its first phit is at `start`.
    Writing {
        vc: Vc,
        start: u32,
    },
    /// The packet did not fit; the rest of it is discarded up to its end.
    Discarding,
}

/// One port's input queue: a ring of phits per virtual channel, written speculatively.
///
/// BlackWidow sec. 4.3: phits arrive before the packet's CRC is known. A packet that turns out bad
/// is removed by setting the tail back to the end of the previous packet. If it has begun to flow
/// out, the rest follows, and the pending virtual-channel acknowledgements are decremented by its
/// size, because its retransmission will use the same credits. A packet that does not fit is
/// excised and discarded up to its EOP.
///
/// The capacity per virtual channel is the credits offered to the peer plus one packet of maximum
/// length: the rest of a rejected packet that has begun to flow occupies space that no credit
/// covers, and there is at most one such rest, as only the packet at the front can have begun.
///
/// The [`Lcb`](super::Lcb) writes; the router core or the NIC reads.
/// [`give_back`](phitwire::link::NodeLink::give_back) sends the credits that
/// [`take_acks`](Self::take_acks) returns.
#[derive(Clone, Debug)]
pub struct InputQueue {
    rings: [VcRing; 2],
    open: Open,
    capacity: u32,
}

impl InputQueue {
    /// An empty queue with the depth that `config` offers.
    pub fn new(config: &PhitLinkConfig) -> Self {
        Self::with_depth(
            config.phits.input_phits_per_vc,
            u32::from(config.max_packet_phits),
        )
    }

    /// An empty queue of `credit_phits` per virtual channel for packets up to `max_packet_phits`.
    ///
    /// # Panics
    /// If the sum is 2^30 or more, or a whole packet does not fit into the credits.
    pub fn with_depth(credit_phits: u32, max_packet_phits: u32) -> Self {
        assert!(
            max_packet_phits <= credit_phits,
            "the credits do not cover the longest packet"
        );
        let capacity = credit_phits + max_packet_phits;
        assert!(capacity < 1 << 30, "positions wrap at 32 bits");
        Self {
            rings: [VcRing::new(capacity), VcRing::new(capacity)],
            open: Open::None,
            capacity,
        }
    }

    // Write side, for the link control block.

    /// Writes the next phit of the packet being received; a head opens one.
    ///
    /// # Panics
    /// If a head comes while a packet is open, or another phit while none is open: the link control
    /// block checks the order of kinds first.
    #[inline]
    pub(super) fn phit(&mut self, phit: Phit) {
        let (vc, start) = match self.open {
            Open::Writing { vc, start } => {
                assert!(!phit.is_head(), "a packet is already open");
                (vc, start)
            }
            Open::None => {
                assert!(phit.is_head(), "a packet must begin with a head");
                let vc = head_vc(phit.content());
                let start = self.rings[vc.index()].phits.tail();
                self.open = Open::Writing { vc, start };
                (vc, start)
            }
            Open::Discarding => return,
        };
        if !self.append(vc, start, phit) {
            self.open = Open::Discarding;
        }
    }

    /// Closes the open packet with `eop`. Returns false if a packet judged [`Verdict::Accepted`]
    /// did not fit; the caller then treats it as not received.
    ///
    /// A packet that an earlier link marked `transmit_error` is removed if it has not begun to
    /// flow; its credits on this link return, since its sender will not resend it.
    ///
    /// # Panics
    /// If no packet is open.
    #[inline]
    pub(super) fn end(&mut self, eop: Phit, verdict: Verdict) -> bool {
        let open = core::mem::replace(&mut self.open, Open::None);
        let (vc, start) = match open {
            Open::Writing { vc, start } => (vc, start),
            Open::Discarding => return false,
            Open::None => panic!("no packet is open"),
        };
        let begun = self.rings[vc.index()].begun(start);
        if verdict == Verdict::Rejected {
            self.reject(vc, start, begun, eop);
            return true;
        }
        if !self.append(vc, start, eop) {
            return false;
        }
        let ring = &mut self.rings[vc.index()];
        if !begun && eop_status(eop.content()) == Some(EopStatus::TransmitError) {
            ring.acks += ring.phits.tail().wrapping_sub(start);
            ring.take_back(start);
        } else {
            ring.acks += ring.withheld;
            ring.withheld = 0;
        }
        debug_assert!(ring.len() <= self.capacity, "the credits cover it");
        true
    }

    #[inline]
    pub(super) fn has_begun(&self) -> bool {
        match self.open {
            Open::Writing { vc, start } => self.rings[vc.index()].begun(start),
            _ => false,
        }
    }

    fn reject(&mut self, vc: Vc, start: u32, begun: bool, eop: Phit) {
        let ring = &mut self.rings[vc.index()];
        if begun {
            // The packet is at the front, so everything from head to tail belongs to it.
            assert!(
                ring.silent == 0 && ring.len() < self.capacity,
                "only one packet can flow at a time"
            );
            ring.phits.push(eop);
            ring.silent = ring.len();
            ring.withheld = 0;
        } else {
            ring.take_back(start);
        }
    }

    /// Appends a phit, or excises the packet that starts at `start` if the ring is full. Returns
    /// whether it appended the phit.
    #[inline]
    fn append(&mut self, vc: Vc, start: u32, phit: Phit) -> bool {
        let capacity = self.capacity;
        let ring = &mut self.rings[vc.index()];
        if ring.len() < capacity {
            ring.phits.push(phit);
            return true;
        }
        // A packet that has begun to flow is alone in the ring, which holds more than one.
        assert!(!ring.begun(start), "a packet at the front always fits");
        ring.take_back(start);
        false
    }

    /// Prepares for a new session with the peer: phits still queued count against its credits.
    /// Returns their number per virtual channel, without those that no credit covers.
    ///
    /// # Panics
    /// If a packet is open.
    pub(super) fn restart(&mut self) -> [u32; 2] {
        assert!(
            matches!(self.open, Open::None),
            "the link control block ends an open packet first"
        );
        [0, 1].map(|vc| {
            let ring = &mut self.rings[vc];
            ring.acks = 0;
            debug_assert!(ring.silent <= ring.len() && ring.len() <= self.capacity);
            ring.len() - ring.silent
        })
    }

    // Read side, for the router core and the NIC.

    /// Whether a phit of `vc` can be taken.
    #[inline]
    pub fn ready(&self, vc: Vc) -> bool {
        self.rings[vc.index()].len() != 0
    }

    /// The virtual channels with a phit to take: bit 0 requests, bit 1 responses.
    #[inline]
    pub fn pending_vcs(&self) -> u8 {
        u8::from(self.rings[0].len() != 0) | u8::from(self.rings[1].len() != 0) << 1
    }

    /// The next phit of `vc`, without taking it.
    #[inline]
    pub fn front(&self, vc: Vc) -> Option<Phit> {
        self.rings[vc.index()].phits.nth(0)
    }

    /// The phit of `vc` after the next one, without taking it.
    #[inline]
    pub fn second(&self, vc: Vc) -> Option<Phit> {
        self.rings[vc.index()].phits.nth(1)
    }

    /// The phit `behind` positions after the next one of `vc`, without taking it.
    pub fn nth(&self, vc: Vc, behind: usize) -> Option<Phit> {
        self.rings[vc.index()]
            .phits
            .nth(u32::try_from(behind).ok()?)
    }

    /// Takes the next phit of `vc`.
    ///
    /// # Panics
    /// If the channel is empty.
    #[inline]
    pub fn pop(&mut self, vc: Vc) -> Phit {
        let ring = &mut self.rings[vc.index()];
        let open = match self.open {
            Open::Writing { vc: of, start } => {
                of == vc && ring.phits.head().wrapping_sub(start) <= u32::MAX / 2
            }
            _ => false,
        };
        let phit = ring.phits.pop().expect("the queue is empty");
        if ring.silent != 0 {
            ring.silent -= 1;
        } else if open {
            ring.withheld += 1;
        } else {
            ring.acks += 1;
        }
        phit
    }

    /// Phits of `vc` in the queue.
    #[inline]
    pub fn len(&self, vc: Vc) -> u32 {
        self.rings[vc.index()].len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pending_vcs() == 0
    }

    /// Phits of `vc` whose VC acknowledgements may be sent now and were not taken before.
    #[inline]
    pub fn take_acks(&mut self, vc: Vc) -> u32 {
        core::mem::take(&mut self.rings[vc.index()].acks)
    }
}

impl ReceiveBuffer for InputQueue {
    #[inline]
    fn take_changes(&mut self, mut report: impl FnMut(usize, Change)) {
        for (vc, ring) in self.rings.iter_mut().enumerate() {
            if let Some(change) = ring.take_change() {
                report(vc, change);
            }
        }
    }

    #[inline]
    fn take_freed(&mut self, mut report: impl FnMut(usize, u32)) {
        for vc in Vc::ALL {
            let acks = self.take_acks(vc);
            if acks > 0 {
                report(vc.index(), acks);
            }
        }
    }

    fn queued(&self) -> u64 {
        self.rings.iter().map(|ring| u64::from(ring.len())).sum()
    }

    fn queued_of(&self, vc: usize) -> u64 {
        self.rings[vc].len().into()
    }
}
