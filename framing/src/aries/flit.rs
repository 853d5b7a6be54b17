//! The 48-bit flit of the Aries network (Cray XC white paper, "Aries Performance") and the head
//! flit of its packets.
//!
//! A flit is the unit of flow control; a processor tile injects one per cycle. Packets have 1 to 14
//! flits. The first, the *head flit*, holds everything that a router reads; its layout is ours, its
//! fields are those publicly known (`docs/guide/src/wire-format.md`):
//!
//! ```text
//! 47 45 44  43  40 39          22 21   19 18        7 6      5     0
//! | vc |nm| length | destination | routing | packet id |poison| code |
//! ```
//!
//! A flit of zeros between packets is idle: no packet has length 0.

/// Width of a flit in bits.
pub const FLIT_BITS: u32 = 48;
/// Mask of a flit in a word.
pub const FLIT_MASK: u64 = (1 << FLIT_BITS) - 1;
/// Flits of the longest packet: a 64-byte put (Cray XC white paper, "Aries Performance").
pub const MAX_PACKET_FLITS: usize = 14;
/// Virtual channels: four for requests, four for responses (Cray XC white paper, "Aries Router").
pub const VCS: usize = 8;
/// The first virtual channel of responses.
pub const FIRST_RESPONSE_VC: u8 = 4;

/// A flit: the low 48 bits of a word; the others are zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct Flit(u64);

impl Flit {
    /// An idle flit, sent between packets.
    pub const IDLE: Self = Self(0);

    /// A flit of the low 48 bits of `bits`.
    #[inline]
    pub const fn new(bits: u64) -> Self {
        Self(bits & FLIT_MASK)
    }

    /// The 48 bits of the flit, in the low bits.
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The six bytes on the wire, big-endian.
    #[inline]
    pub const fn to_bytes(self) -> [u8; 6] {
        let b = self.0.to_be_bytes();
        [b[2], b[3], b[4], b[5], b[6], b[7]]
    }

    /// The inverse of [`Self::to_bytes`].
    #[inline]
    pub const fn from_bytes(b: [u8; 6]) -> Self {
        Self(u64::from_be_bytes([
            0, 0, b[0], b[1], b[2], b[3], b[4], b[5],
        ]))
    }
}

impl core::fmt::Debug for Flit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Flit({:#014x})", self.0)
    }
}

/// Address of a NIC: a group, a router within the group, a NIC of the router. The white paper gives
/// the 18 bits ("Address Translation"); their division is ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct NodeId(u32);

impl NodeId {
    /// Width of an id in bits.
    pub const BITS: u32 = 18;
    /// Number of groups in the address space.
    pub const GROUPS: u16 = 1 << 9;
    /// Number of routers per group in the address space; a full group has 96.
    pub const ROUTERS: u8 = 1 << 7;
    /// NICs of a router.
    pub const NICS: u8 = 4;

    /// The NIC of a router; each field is truncated (to 9, 7 and 2 bits).
    #[inline]
    pub const fn new(group: u16, router: u8, nic: u8) -> Self {
        Self(((group as u32 & 0x1ff) << 9) | ((router as u32 & 0x7f) << 2) | (nic as u32 & 3))
    }

    /// The id in the low 18 bits.
    #[inline]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & 0x3_ffff)
    }

    /// The id in the low 18 bits; the inverse of [`Self::from_bits`].
    #[inline]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Number of the group, 9 bits.
    #[inline]
    pub const fn group(self) -> u16 {
        (self.0 >> 9) as u16
    }

    /// The router within its group: chassis times blades per chassis plus blade.
    #[inline]
    pub const fn router(self) -> u8 {
        (self.0 >> 2 & 0x7f) as u8
    }

    /// Number of the NIC at its router, 0 to 3.
    #[inline]
    pub const fn nic(self) -> u8 {
        (self.0 & 3) as u8
    }
}

/// Routing control: how a packet's path is chosen (Cray XC white paper, "Cray XC Routing").
///
/// The field has three bits, and the deterministic modes share two of its codes. The packet id
/// distinguishes the modes of a code; in the hashed modes it carries the hash of the cache line
/// (see [`Lines`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Routing {
    /// Adaptive, without bias: the load alone decides.
    #[default]
    Adaptive0 = 0,
    /// Adaptive, with a bias towards minimal paths that grows as the packet travels.
    Adaptive1 = 1,
    /// Adaptive, with a small bias towards minimal paths.
    Adaptive2 = 2,
    /// Adaptive, with a large bias towards minimal paths.
    Adaptive3 = 3,
    /// Ordered (IN_ORDER of the application interfaces): one minimal path for each pair of NICs,
    /// chosen by a deterministic hash.
    Ordered = 4,
    /// Ordered, on one non-minimal path for each pair of NICs.
    OrderedNonMinimal = 5,
    /// Minimal paths only; load selects the port.
    Minimal = 6,
    /// Non-minimal paths only (Valiant); load selects the port.
    Valiant = 7,
    /// A minimal path chosen by a hash that includes the address: ordered per cache line.
    MinHash = 8,
    /// A non-minimal path chosen by a hash that includes the address: ordered per cache line.
    NminHash = 9,
}

crate::listed!(Routing {
    Adaptive0,
    Adaptive1,
    Adaptive2,
    Adaptive3,
    Ordered,
    OrderedNonMinimal,
    Minimal,
    Valiant,
    MinHash,
    NminHash
});

impl Routing {
    /// The mode for a 3-bit code and the packet's id; higher bits of `code` are ignored.
    #[inline]
    pub const fn from_code(code: u8, packet_id: u16) -> Self {
        match (code & 7, Lines::of(packet_id)) {
            (4, Some(_)) => Self::MinHash,
            (5, Some(_)) => Self::NminHash,
            (code, _) => Self::ALL[code as usize],
        }
    }

    /// The 3-bit code in the head; some modes share one.
    #[inline]
    pub const fn code(self) -> u8 {
        match self {
            Self::MinHash => Self::Ordered as u8,
            Self::NminHash => Self::OrderedNonMinimal as u8,
            _ => self as u8,
        }
    }

    /// Index of the bias registers that an adaptive packet uses, 0 to 3; `None` for other modes.
    #[inline]
    pub const fn adaptive_mode(self) -> Option<usize> {
        match self {
            Self::Adaptive0 => Some(0),
            Self::Adaptive1 => Some(1),
            Self::Adaptive2 => Some(2),
            Self::Adaptive3 => Some(3),
            _ => None,
        }
    }

    /// Whether a hash chooses the path, independent of load.
    #[inline]
    pub const fn is_deterministic(self) -> bool {
        matches!(self.code(), 4 | 5)
    }

    /// Whether the hash includes the address, so that only packets of the same cache line are
    /// ordered.
    #[inline]
    pub const fn is_hashed(self) -> bool {
        matches!(self, Self::MinHash | Self::NminHash)
    }

    /// The routing mode of the response. Responses need no order, since their requests have been
    /// executed.
    #[inline]
    #[must_use]
    pub const fn of_response(self) -> Self {
        if self.is_deterministic() {
            Self::Adaptive0
        } else {
            self
        }
    }

    /// Whether a packet always leaves its source on a non-minimal path, independent of load.
    #[inline]
    pub const fn is_non_minimal(self) -> bool {
        matches!(
            self,
            Self::Valiant | Self::OrderedNonMinimal | Self::NminHash
        )
    }
}

/// The upper half of the packet ids, used by the hashed modes: an id carries the hash of the cache
/// line.
///
/// A router sees only the head flit, which has no address. A NIC has at most 1,024 packets
/// outstanding, so half of the 4,096 ids is enough for the other modes.
#[derive(Clone, Copy, Debug)]
pub struct Lines;

impl Lines {
    /// Number of hash values.
    pub const HASHES: u8 = 8;
    /// Ids for each hash value.
    pub const IDS: u16 = 1 << 8;
    /// The lowest id of a hashed mode.
    pub const FIRST_ID: u16 = 1 << 11;
    /// Bytes of a cache line.
    pub const BYTES: u64 = 64;

    /// The hash of the cache line in an id; `None` for an id of the lower half.
    #[inline]
    pub const fn of(packet_id: u16) -> Option<u8> {
        if packet_id & Self::FIRST_ID == 0 {
            None
        } else {
            Some((packet_id >> 8) as u8 & (Self::HASHES - 1))
        }
    }

    /// The hash of the cache line of an address. Every bit of the line number affects it.
    #[inline]
    pub const fn hash(address: u64) -> u8 {
        let line = address / Self::BYTES;
        (line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61) as u8
    }

    /// The lowest id for a hash value.
    #[inline]
    pub const fn first_id(hash: u8) -> u16 {
        Self::FIRST_ID | (hash as u16 & 7) << 8
    }
}

const VC_SHIFT: u32 = 45;
const NON_MINIMAL_SHIFT: u32 = 44;
const LENGTH_SHIFT: u32 = 40;
const DESTINATION_SHIFT: u32 = 22;
const ROUTING_SHIFT: u32 = 19;
const PACKET_ID_SHIFT: u32 = 7;
const POISON_SHIFT: u32 = 6;

const _: () = assert!(VC_SHIFT + 3 == FLIT_BITS);
const _: () = assert!(DESTINATION_SHIFT + NodeId::BITS == LENGTH_SHIFT);

/// The head flit of a packet: the fields that a router reads, and those that it sets (`vc`,
/// `non_minimal`, `poisoned`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Head(Flit);

impl Head {
    /// Mask of a packet id.
    pub const PACKET_ID_MASK: u16 = (1 << 12) - 1;

    /// Interprets a flit as a head; `None` if its length is 0 or above 14.
    #[inline]
    pub const fn parse(flit: Flit) -> Option<Self> {
        let length = flit.0 >> LENGTH_SHIFT & 0xf;
        if length == 0 || length > MAX_PACKET_FLITS as u64 {
            None
        } else {
            Some(Self(flit))
        }
    }

    /// The head of a packet of `length` flits (1 to 14; truncated to 4 bits) on its first virtual
    /// channel. `packet_id` must fit the mode, since it distinguishes modes that share a code (see
    /// [`Lines`]).
    #[inline]
    pub const fn new(
        response: bool,
        length: u8,
        destination: NodeId,
        routing: Routing,
        packet_id: u16,
        code: u8,
    ) -> Self {
        let vc = if response { FIRST_RESPONSE_VC } else { 0 };
        Self(Flit::new(
            (vc as u64) << VC_SHIFT
                | (length as u64 & 0xf) << LENGTH_SHIFT
                | (destination.0 as u64) << DESTINATION_SHIFT
                | (routing.code() as u64) << ROUTING_SHIFT
                | ((packet_id & Self::PACKET_ID_MASK) as u64) << PACKET_ID_SHIFT
                | (code as u64 & 0x3f),
        ))
    }

    /// The head as a flit.
    #[inline]
    pub const fn flit(self) -> Flit {
        self.0
    }

    /// The virtual channel on the link that carries the packet, 0 to 7.
    #[inline]
    pub const fn vc(self) -> u8 {
        (self.0.0 >> VC_SHIFT) as u8
    }

    /// Whether this is a response: it travels on virtual channels 4 to 7.
    #[inline]
    pub const fn is_response(self) -> bool {
        self.vc() >= FIRST_RESPONSE_VC
    }

    /// Whether a router has sent the packet on a non-minimal path.
    #[inline]
    pub const fn non_minimal(self) -> bool {
        self.0.0 >> NON_MINIMAL_SHIFT & 1 != 0
    }

    /// Flits of the packet, head included: 1 to 14.
    #[inline]
    pub const fn length(self) -> u8 {
        (self.0.0 >> LENGTH_SHIFT & 0xf) as u8
    }

    /// Destination of the packet.
    #[inline]
    pub const fn destination(self) -> NodeId {
        NodeId::from_bits((self.0.0 >> DESTINATION_SHIFT) as u32)
    }

    /// Routing mode of the packet, from the code and the packet id.
    #[inline]
    pub const fn routing(self) -> Routing {
        Routing::from_code((self.0.0 >> ROUTING_SHIFT & 7) as u8, self.packet_id())
    }

    /// Input of the path hash from the address: 1 + the hash of the cache line in the hashed modes,
    /// 0 in all others.
    #[inline]
    pub const fn line_hash(self) -> u8 {
        match (self.routing().is_hashed(), Lines::of(self.packet_id())) {
            (true, Some(hash)) => hash + 1,
            _ => 0,
        }
    }

    /// Number of the request at its source, 12 bits; the response repeats it.
    #[inline]
    pub const fn packet_id(self) -> u16 {
        (self.0.0 >> PACKET_ID_SHIFT) as u16 & Self::PACKET_ID_MASK
    }

    /// Whether a router found the packet damaged internally; its destination rejects it.
    #[inline]
    pub const fn poisoned(self) -> bool {
        self.0.0 >> POISON_SHIFT & 1 != 0
    }

    /// Low bits of the command in a request, status in a response; 6 bits, used only by the NICs.
    #[inline]
    pub const fn code(self) -> u8 {
        (self.0.0 & 0x3f) as u8
    }

    /// The same head on another virtual channel (truncated to 3 bits).
    #[inline]
    #[must_use]
    pub const fn with_vc(self, vc: u8) -> Self {
        let rest = self.0.0 & !(7 << VC_SHIFT);
        Self(Flit(rest | (vc as u64 & 7) << VC_SHIFT))
    }

    /// The same head on a minimal or non-minimal path.
    #[inline]
    #[must_use]
    pub const fn with_non_minimal(self, non_minimal: bool) -> Self {
        let rest = self.0.0 & !(1 << NON_MINIMAL_SHIFT);
        Self(Flit(rest | (non_minimal as u64) << NON_MINIMAL_SHIFT))
    }

    /// The same head, marked as damaged.
    #[inline]
    #[must_use]
    pub const fn with_poison(self) -> Self {
        Self(Flit(self.0.0 | 1 << POISON_SHIFT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_returns_what_it_was_made_of() {
        let to = NodeId::new(240, 95, 3);
        let head = Head::new(true, 12, to, Routing::Valiant, 0xabc, 0x2a)
            .with_vc(6)
            .with_non_minimal(true)
            .with_poison();
        assert_eq!(Head::parse(head.flit()), Some(head));
        assert_eq!((head.vc(), head.length(), head.destination()), (6, 12, to));
        assert_eq!((to.group(), to.router(), to.nic()), (240, 95, 3));
        assert_eq!((head.packet_id(), head.code()), (0xabc, 0x2a));
        assert_eq!(head.routing(), Routing::Valiant);
        assert!(head.is_response() && head.non_minimal() && head.poisoned());
        assert!(!head.with_non_minimal(false).non_minimal());
        assert_eq!(Flit::from_bytes(head.flit().to_bytes()), head.flit());
    }

    #[test]
    fn ids_distinguish_hashed_from_ordered_modes() {
        for routing in Routing::ALL {
            for hash in 0..Lines::HASHES {
                let id = match routing.is_hashed() {
                    true => Lines::first_id(hash) + 0xff,
                    false => 0x7ff - u16::from(hash),
                };
                let head = Head::new(false, 3, NodeId::new(1, 2, 3), routing, id, 0);
                assert_eq!((head.routing(), head.packet_id()), (routing, id));
                assert_eq!(
                    head.line_hash(),
                    if routing.is_hashed() { hash + 1 } else { 0 }
                );
            }
        }
        // An adaptive packet may have any id.
        let head = Head::new(true, 3, NodeId::default(), Routing::Adaptive3, 0xfff, 0);
        assert_eq!((head.routing(), head.line_hash()), (Routing::Adaptive3, 0));
    }

    #[test]
    fn the_hash_of_a_line_spreads_neighbours_and_is_that_of_all_its_bytes() {
        let mut counts = [0; Lines::HASHES as usize];
        for line in 0..64 {
            let hashes = [0, 7, 63].map(|byte| Lines::hash(line * Lines::BYTES + byte));
            assert_eq!(hashes, [hashes[0]; 3]);
            counts[usize::from(hashes[0])] += 1;
        }
        assert!(
            counts.iter().all(|count| (6..=10).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn idle_and_overlong_flits_are_no_heads() {
        assert_eq!(Head::parse(Flit::IDLE), None);
        assert_eq!(Head::parse(Flit::new(15 << LENGTH_SHIFT)), None);
        assert!(Head::parse(Flit::new(14 << LENGTH_SHIFT)).is_some());
    }

    #[test]
    fn fields_do_not_overlap() {
        let all = Flit::new(FLIT_MASK);
        let head = Head(all);
        let bits = 3 + 1 + 4 + NodeId::BITS + 3 + 12 + 1 + 6;
        assert_eq!(bits, FLIT_BITS);
        assert_eq!(head.with_vc(0).flit().bits(), FLIT_MASK >> 3);
        assert_eq!(
            head.with_non_minimal(false).flit().bits(),
            FLIT_MASK & !(1 << 44)
        );
    }
}
