//! Packets of synthetic traffic, and the sink that verifies them.
//!
//! Routers treat them as packets of the Aries network: they have a head flit and the length of a
//! put or of its response (XC white paper, "Aries Performance"). The rest of a put is irrelevant
//! here: a request carries its name and data derived from the name, so that a sink can verify that
//! it received each packet once and undamaged. A response consists of its head, as on the machine,
//! and identifies the request by its packet id.

use phitwire_framing::aries::flit::{
    FLIT_MASK, Flit, Head, Lines, MAX_PACKET_FLITS, NodeId, Routing,
};

const HEADER_FLITS: usize = 3;
/// Flits of the response to a put.
pub(super) const REPLY_FLITS: usize = 1;
/// Bits of a request's number that the packet carries.
const SEQUENCE_BITS: u32 = 30;

/// Flits of a put of `bytes` bytes: a header of three flits, then the data with a 16-bit packet
/// CRC.
pub(super) const fn request_flits(bytes: usize) -> usize {
    HEADER_FLITS + (8 * bytes + 16).div_ceil(48)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub dest: u32,
    pub source: u32,
    /// The packet's number at its source, truncated to 30 bits.
    pub sequence: u32,
    pub id: u16,
    /// Cycle in which the packet was generated, below 2^48.
    pub birth: u64,
}

impl Name {
    /// A number that in practice identifies this request uniquely.
    #[inline]
    pub(super) fn key(self) -> u64 {
        let low = self.birth | u64::from(self.id) << 48;
        let ends = u64::from(self.source) | u64::from(self.dest) << 18;
        let high = ends ^ u64::from(self.sequence).wrapping_mul(0xa076_1d64_78bd_642f);
        mix(low ^ high.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub(super) const SEQUENCE_MASK: u32 = (1 << SEQUENCE_BITS) - 1;

    pub(super) fn sequence(number: u32) -> u32 {
        number & Self::SEQUENCE_MASK
    }

    pub(super) fn reply(self) -> Reply {
        Reply {
            dest: self.source,
            id: self.id,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Address of the destination NIC, which sent the request.
    pub dest: u32,
    pub id: u16,
}

impl Reply {
    /// A key that few other replies share.
    #[inline]
    pub(super) fn key(self) -> u64 {
        mix(1 << 63 | u64::from(self.dest) << 12 | u64::from(self.id))
    }
}

#[inline]
fn mix(value: u64) -> u64 {
    let mixed = value.wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) | 1
}

/// Flit `index` after the header of the packet with this key.
#[inline]
fn pattern(key: u64, index: usize) -> u64 {
    key.rotate_left(7 * index as u32) & FLIT_MASK
}

#[derive(Clone, Copy, Debug)]
pub struct Packet {
    flits: [u64; MAX_PACKET_FLITS],
    len: u8,
}

impl Packet {
    #[inline]
    pub(super) fn request(name: Name, len: usize, routing: Routing) -> Self {
        let key = name.key();
        let to = NodeId::from_bits(name.dest);
        let head = Head::new(false, len as u8, to, routing, name.id, 0);
        let mut flits = [0; MAX_PACKET_FLITS];
        flits[0] = head.flit().bits();
        flits[1] = u64::from(name.source) << SEQUENCE_BITS | u64::from(name.sequence);
        flits[2] = name.birth & FLIT_MASK;
        for (index, flit) in flits.iter_mut().enumerate().take(len).skip(HEADER_FLITS) {
            *flit = pattern(key, index);
        }
        Self {
            flits,
            len: len as u8,
        }
    }

    /// A reply to a request in the given mode.
    #[inline]
    pub(super) fn reply(name: Reply, routing: Routing) -> Self {
        let routing = routing.of_response();
        let to = NodeId::from_bits(name.dest);
        let head = Head::new(true, REPLY_FLITS as u8, to, routing, name.id, 0);
        let mut flits = [0; MAX_PACKET_FLITS];
        flits[0] = head.flit().bits();
        Self {
            flits,
            len: REPLY_FLITS as u8,
        }
    }

    #[inline]
    pub(super) fn flits(&self) -> &[u64] {
        &self.flits[..usize::from(self.len)]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// A request, and whether it arrived undamaged.
    Request(Name, bool),
    Reply(Reply),
    /// Neither a request nor a reply.
    Damaged,
}

/// Reassembles packets that arrive flit by flit on one link.
#[derive(Clone, Debug, Default)]
pub struct Assembly {
    flits: [u64; MAX_PACKET_FLITS],
    len: u8,
    /// Length of the open packet in flits, from its head.
    of: u8,
    vc: u8,
}

impl Assembly {
    pub(super) const fn is_open(&self) -> bool {
        self.len > 0
    }

    /// Number of missing flits of the open packet, and its virtual channel.
    pub(super) const fn open(&self) -> (u8, u8) {
        (
            if self.is_open() {
                self.of - self.len
            } else {
                0
            },
            self.vc,
        )
    }

    /// Takes a flit. Returns its virtual channel, and the packet that it completes, if any.
    #[inline]
    pub(super) fn take(&mut self, flit: u64, routing: Routing) -> (usize, Option<Delivery>) {
        if self.len == 0 {
            let head = Head::parse(Flit::new(flit));
            self.of = head.map_or(1, Head::length);
            self.vc = head.map_or(0, Head::vc);
        }
        self.flits[usize::from(self.len)] = flit;
        self.len += 1;
        let vc = usize::from(self.vc);
        if self.len < self.of {
            return (vc, None);
        }
        let flits = &self.flits[..usize::from(core::mem::take(&mut self.len))];
        (vc, Some(read(flits, routing)))
    }
}

fn read(flits: &[u64], routing: Routing) -> Delivery {
    let Some(head) = flits.first().and_then(|&flit| Head::parse(Flit::new(flit))) else {
        return Delivery::Damaged;
    };
    // Exclude the fields that routers rewrite from the comparison.
    let sent = head
        .with_vc(if head.is_response() { 4 } else { 0 })
        .with_non_minimal(false)
        .flit()
        .bits();
    let dest = head.destination().bits();
    let id = head.packet_id();
    if head.is_response() {
        let name = Reply { dest, id };
        let packet = Packet::reply(name, routing);
        return if packet.flits() == [sent] && flits.len() == REPLY_FLITS {
            Delivery::Reply(name)
        } else {
            Delivery::Damaged
        };
    }
    if flits.len() <= HEADER_FLITS {
        return Delivery::Damaged;
    }
    let name = Name {
        dest,
        source: (flits[1] >> SEQUENCE_BITS) as u32,
        sequence: Name::sequence(flits[1] as u32),
        id,
        birth: flits[2],
    };
    let packet = Packet::request(name, flits.len(), routing);
    let whole = packet.flits()[0] == sent && packet.flits()[1..] == flits[1..];
    Delivery::Request(name, whole)
}

/// A NIC's requests that await replies, by packet id. Grows to the largest number ever outstanding
/// at once.
#[derive(Clone, Debug, Default)]
pub(super) struct Outstanding {
    births: Vec<u64>,
    /// Free ids: those for modes without a line hash, then those for each hash value.
    ids: [Ids; 1 + Lines::HASHES as usize],
    count: usize,
}

#[derive(Clone, Debug, Default)]
struct Ids {
    free: Vec<u16>,
    /// Number of ids allocated so far.
    used: u16,
}

/// Number of cache lines that a source writes at each target, in turn.
const LINES: u32 = 64;

/// Hash of the cache line that request `sequence` of a source writes; `None` in modes without a
/// hash.
#[inline]
pub(super) fn line_hash(sequence: u32, routing: Routing) -> Option<u8> {
    let address = u64::from(sequence % LINES) * Lines::BYTES;
    routing.is_hashed().then(|| Lines::hash(address))
}

/// The packet id of a request that gets no response.
#[inline]
pub(super) fn id_of(sequence: u32, routing: Routing) -> u16 {
    let number = sequence as u16;
    match line_hash(sequence, routing) {
        Some(hash) => Lines::first_id(hash) | (number % Lines::IDS),
        None if routing.is_deterministic() => number % Lines::FIRST_ID,
        None => number & Head::PACKET_ID_MASK,
    }
}

/// Marks a free id in [`Outstanding`].
const FREE: u64 = u64::MAX;

impl Outstanding {
    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// Whether an id is free for a request with the given hash.
    #[inline]
    pub(super) fn has_id(&self, hash: Option<u8>) -> bool {
        hash.is_none_or(|hash| {
            let ids = &self.ids[1 + usize::from(hash)];
            !ids.free.is_empty() || ids.used < Lines::IDS
        })
    }

    /// Allocates an id for a request generated at `birth`, to a line with the given hash.
    pub(super) fn begin(&mut self, birth: u64, hash: Option<u8>) -> u16 {
        self.count += 1;
        let ids = &mut self.ids[hash.map_or(0, |hash| 1 + usize::from(hash))];
        let id = ids.free.pop().unwrap_or_else(|| {
            ids.used += 1;
            hash.map_or(0, Lines::first_id) + ids.used - 1
        });
        let index = usize::from(id);
        if self.births.len() <= index {
            self.births.resize(index + 1, FREE);
        }
        self.births[index] = birth;
        id
    }

    /// Ends the request that a reply answers, and returns its birth; `None` if it does not exist.
    pub(super) fn end(&mut self, id: u16) -> Option<u64> {
        let birth = self
            .births
            .get_mut(usize::from(id))
            .filter(|b| **b != FREE)?;
        let birth = core::mem::replace(birth, FREE);
        let hash = Lines::of(id).map_or(0, |hash| 1 + usize::from(hash));
        self.ids[hash].free.push(id);
        self.count -= 1;
        Some(birth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> Name {
        Name {
            dest: 0x2_1234,
            source: 0x3_0f0f,
            sequence: Name::sequence(u32::MAX),
            id: 0xabc,
            birth: 0xdead_beef_cafe,
        }
    }

    fn arrive(flits: &[u64]) -> Delivery {
        let mut assembly = Assembly::default();
        for (index, &flit) in flits.iter().enumerate() {
            let (_, delivery) = assembly.take(flit, Routing::Adaptive1);
            assert_eq!(delivery.is_some(), index + 1 == flits.len());
            if let Some(delivery) = delivery {
                return delivery;
            }
        }
        panic!("no end");
    }

    #[test]
    fn puts_have_the_papers_lengths() {
        assert_eq!([1, 4, 8, 16, 64].map(request_flits), [4, 4, 5, 6, 14]);
    }

    #[test]
    fn packets_arrive_on_every_path() {
        let packet = Packet::request(name(), 14, Routing::Adaptive1);
        let mut flits = packet.flits().to_vec();
        let head = Head::parse(Flit::new(flits[0])).unwrap();
        flits[0] = head.with_vc(3).with_non_minimal(true).flit().bits();
        assert_eq!(arrive(&flits), Delivery::Request(name(), true));
        let reply = name().reply();
        let packet = Packet::reply(reply, Routing::Adaptive1);
        assert_eq!(packet.flits().len(), 1);
        let head = Head::parse(Flit::new(packet.flits()[0])).expect("a head");
        assert_eq!(head.vc(), 4);
        assert_eq!(arrive(packet.flits()), Delivery::Reply(reply));
    }

    #[test]
    fn any_wrong_bit_is_noticed() {
        let packet = Packet::request(name(), 5, Routing::Adaptive1);
        for index in 0..5 {
            // Skip the head's virtual channel, routing state and length, which define the packet.
            for bit in 0..if index == 0 { 40 } else { 48 } {
                let mut flits = packet.flits().to_vec();
                flits[index] ^= 1 << bit;
                let delivery = arrive(&flits);
                assert!(
                    !matches!(delivery, Delivery::Request(_, true)),
                    "{index} {bit}"
                );
            }
        }
    }

    #[test]
    fn ids_are_used_again_once_answered() {
        let mut outstanding = Outstanding::default();
        assert_eq!(
            [7, 8, 9].map(|birth| outstanding.begin(birth, None)),
            [0, 1, 2]
        );
        assert_eq!((outstanding.end(1), outstanding.end(1)), (Some(8), None));
        assert_eq!(outstanding.begin(10, None), 1);
        assert_eq!((outstanding.end(5), outstanding.len()), (None, 3));
    }

    #[test]
    fn hashed_requests_have_ids_of_their_line() {
        let mut outstanding = Outstanding::default();
        let first = Lines::first_id(3);
        assert_eq!(
            [1, 2].map(|b| outstanding.begin(b, Some(3))),
            [first, first + 1]
        );
        assert_eq!(outstanding.end(first), Some(1));
        assert_eq!(outstanding.begin(4, Some(3)), first);
        (2..Lines::IDS).for_each(|_| _ = outstanding.begin(5, Some(3)));
        assert!(!outstanding.has_id(Some(3)) && outstanding.has_id(Some(4)));
        for sequence in 0..200 {
            let hash = line_hash(sequence, Routing::MinHash);
            let id = id_of(sequence, Routing::MinHash);
            assert_eq!(
                (Lines::of(id), hash),
                (hash, line_hash(sequence + 64, Routing::NminHash))
            );
            assert_eq!(Lines::of(id_of(sequence + 2040, Routing::Ordered)), None);
        }
    }
}
