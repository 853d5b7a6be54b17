//! The packets of synthetic traffic, and the sink that verifies them.
//!
//! They match BlackWidow packets in everything that a router reads: length, head, hash bits and
//! end. A request has the form of a write (BlackWidow sec. 4.3), and a reply that of the smallest
//! packet (sec. 4.1), since the length of replies is not published. The payload contains the
//! packet's name and otherwise a pattern derived from the name, so that a sink can check that each
//! packet arrived once and undamaged.

use phitwire_framing::yarc::crc16::PacketCrc;
use phitwire_framing::yarc::packet::{
    EopStatus, Head, MAX_PACKET_PHITS, Vc, hash_bits, head_dest, head_payload, head_vc,
    second_payload, second_phit,
};
use phitwire_framing::yarc::phit::{CONTENT_MASK, Phit, PhitKind};

use crate::router::identity_of;

/// Number of phits of a reply: that of the smallest packet (BlackWidow sec. 4.1), which is
/// phitwire's choice.
pub(crate) const REPLY_PHITS: usize = 4;
/// Bits of the birth cycle in a packet. A packet in flight for longer than they count gets a wrong
/// birth.
pub(crate) const BIRTH_BITS: u32 = 22;
/// Bits of the request number in a reply.
const REPLY_SEQUENCE_BITS: u32 = 10;

/// Contents of the check field of an end of packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seal {
    /// Part of the packet's key, for links that forward phits unchanged.
    Key,
    /// The CRC that link control blocks verify.
    Crc,
}

impl Seal {
    /// The end of a packet that consists of `phits` otherwise.
    #[inline]
    fn end(self, phits: &[u32], key: u64) -> u32 {
        let content = match self {
            Self::Key => (key >> 48) as u32,
            Self::Crc => {
                let mut crc = PacketCrc::new();
                for &phit in phits {
                    crc.update(Phit::from_bits(phit).content());
                }
                crc.eop(EopStatus::Healthy)
            }
        };
        Phit::new(PhitKind::Eop, content).to_bits()
    }
}

/// A packet's identity, which the packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    pub vc: Vc,
    pub dest: u16,
    /// Source processor number of a request. Replies do not carry it, so theirs is zero.
    pub source: u16,
    /// The source's request number; only its low bits in a reply.
    pub sequence: u32,
    /// Low bits of the cycle in which the request was generated.
    pub birth: u32,
}

impl Name {
    pub(crate) fn request(source: u16, dest: u16, sequence: u32, birth: u64) -> Self {
        Self {
            vc: Vc::Request,
            dest,
            source,
            sequence: sequence & CONTENT_MASK,
            birth: birth as u32 & CONTENT_MASK,
        }
    }

    pub(crate) fn reply(self) -> Self {
        Self {
            vc: Vc::Response,
            dest: self.source,
            source: 0,
            sequence: self.sequence & ((1 << REPLY_SEQUENCE_BITS) - 1),
            birth: self.birth,
        }
    }

    /// A key that in practice identifies this packet uniquely.
    #[inline]
    pub(crate) fn key(self) -> u64 {
        let low =
            u64::from(self.birth) | u64::from(self.sequence) << 22 | u64::from(self.dest) << 44;
        let high = u64::from(self.source) | (self.vc as u64) << 15;
        let mixed =
            (low ^ high.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) | 1
    }

    /// The full birth cycle, given a current cycle less than 2^22 later.
    #[inline]
    pub(crate) fn born(self, now: u64) -> u64 {
        let mask = (1u64 << BIRTH_BITS) - 1;
        now.wrapping_sub(now.wrapping_sub(u64::from(self.birth)) & mask)
    }
}

/// The payload of phit `index` of the packet with the given key.
#[inline]
fn pattern(key: u64, index: usize) -> u32 {
    key.rotate_left(7 * index as u32) as u32 & CONTENT_MASK
}

/// Rotation that moves the low bits of a request number to those of a transaction id, by which
/// tracing routers distinguish packets.
const TURN: u32 = 16;

/// Rotates the low bits of a phit to the top, or back.
#[inline]
const fn turned(content: u32) -> u32 {
    (content << TURN | content >> (22 - TURN)) & CONTENT_MASK
}

#[inline]
const fn turned_back(content: u32) -> u32 {
    (content >> TURN | content << (22 - TURN)) & CONTENT_MASK
}

#[inline]
fn body(content: u32) -> u32 {
    Phit::new(PhitKind::Body, content).to_bits()
}

#[inline]
fn request_head(dest: u16) -> u32 {
    let head = Head {
        dest,
        vc: Vc::Request,
        hashed: true,
        adaptive: false,
        source_routed: false,
        payload: 0,
    };
    Phit::new(PhitKind::Head, head.emit()).to_bits()
}

#[derive(Clone, Copy, Debug)]
pub struct Packet {
    phits: [u32; MAX_PACKET_PHITS],
    len: u8,
}

impl Packet {
    #[inline]
    pub(crate) fn request(name: Name, hash: u16, len: usize, seal: Seal) -> Self {
        let key = name.key();
        let mut phits = [0; MAX_PACKET_PHITS];
        phits[0] = request_head(name.dest);
        phits[1] = body(second_phit(hash, pattern(key, 1) as u8 & 0x7f));
        phits[2] = body(u32::from(name.source));
        phits[3] = body(turned(name.sequence));
        phits[4] = body(name.birth);
        for (index, phit) in phits.iter_mut().enumerate().take(len - 1).skip(5) {
            *phit = body(pattern(key, index));
        }
        Self::sealed(phits, len, key, seal)
    }

    #[inline]
    pub(crate) fn reply(name: Name, seal: Seal) -> Self {
        let head = Head {
            dest: name.dest,
            vc: Vc::Response,
            hashed: false,
            adaptive: true,
            source_routed: false,
            payload: (name.sequence >> 7) as u8 & 7,
        };
        let mut phits = [0; MAX_PACKET_PHITS];
        phits[0] = Phit::new(PhitKind::Head, head.emit()).to_bits();
        phits[1] = body(second_phit(0, name.sequence as u8 & 0x7f));
        phits[2] = body(name.birth);
        Self::sealed(phits, REPLY_PHITS, name.key(), seal)
    }

    #[inline]
    fn sealed(mut phits: [u32; MAX_PACKET_PHITS], len: usize, key: u64, seal: Seal) -> Self {
        phits[len - 1] = seal.end(&phits[..len - 1], key);
        Self {
            phits,
            len: len as u8,
        }
    }

    /// The identity that tracing routers see.
    pub(super) fn identity(&self) -> u64 {
        let phits = &self.phits[..usize::from(self.len)];
        let content = |at: usize| phits.get(at).map(|&phit| Phit::from_bits(phit).content());
        let response = content(0).is_some_and(|head| head_vc(head) == Vc::Response);
        identity_of(response, content).unwrap_or(0)
    }

    pub(crate) fn vc(&self) -> Vc {
        head_vc(Phit::from_bits(self.phits[0]).content())
    }

    #[inline]
    pub(crate) fn phits(&self) -> &[u32] {
        &self.phits[..usize::from(self.len)]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub name: Name,
    pub hash: u16,
    /// Number of phits, including the end.
    pub phits: u32,
    /// Whether all phits arrived as sent.
    pub intact: bool,
}

/// Assembles packets that arrive phit by phit on one link.
#[derive(Clone, Debug, Default)]
pub struct Assembly {
    phits: [u32; MAX_PACKET_PHITS],
    len: u8,
    /// Whether more phits arrived than a packet can have.
    overlong: bool,
}

impl Assembly {
    /// Whether a packet has begun but not ended.
    pub(crate) const fn is_open(&self) -> bool {
        self.len > 0
    }

    /// Virtual channel of the open packet, or of the packet that `phit` begins.
    #[inline]
    pub(crate) fn vc(&self, phit: Phit) -> Vc {
        let head = if self.len == 0 {
            phit
        } else {
            Phit::from_bits(self.phits[0])
        };
        head_vc(head.content())
    }

    /// Takes a phit; returns the packet that it ends, if any.
    #[inline]
    pub(crate) fn take(&mut self, phit: Phit, seal: Seal) -> Option<Delivery> {
        match self.phits.get_mut(usize::from(self.len)) {
            Some(slot) => {
                *slot = phit.to_bits();
                self.len += 1;
            }
            None => self.overlong = true,
        }
        if !phit.is_eop() {
            return None;
        }
        let len = usize::from(core::mem::take(&mut self.len));
        let whole = !core::mem::take(&mut self.overlong);
        Some(read(&self.phits[..len], whole, seal))
    }
}

fn read(phits: &[u32], whole: bool, seal: Seal) -> Delivery {
    let content = |i: usize| {
        phits
            .get(i)
            .map_or(0, |&bits| Phit::from_bits(bits).content())
    };
    let head = content(0);
    let vc = head_vc(head);
    let request = Name {
        vc,
        dest: head_dest(head),
        source: content(2) as u16,
        sequence: turned_back(content(3)),
        birth: content(4),
    };
    let reply = Name {
        source: 0,
        sequence: u32::from(head_payload(head)) << 7 | u32::from(second_payload(content(1))),
        birth: content(2),
        ..request
    };
    let name = if vc == Vc::Request { request } else { reply };
    let hash = hash_bits(content(1));
    let key = name.key();
    let shaped = match vc {
        Vc::Request => phits.len() > 5 && is_request(phits, name, hash, key),
        // The name suffices to reconstruct the original packet.
        Vc::Response => phits.len() == REPLY_PHITS && Packet::reply(name, seal).phits() == phits,
    };
    let sealed = shaped && phits[phits.len() - 1] == seal.end(&phits[..phits.len() - 1], key);
    let intact = whole && sealed;
    Delivery {
        name,
        hash,
        phits: phits.len() as u32,
        intact,
    }
}

/// Whether the phits of a request, except its end, match its name and hash bits.
#[inline]
fn is_request(phits: &[u32], name: Name, hash: u16, key: u64) -> bool {
    let mut wrong = phits[0] ^ request_head(name.dest);
    wrong |= phits[1] ^ body(second_phit(hash, pattern(key, 1) as u8 & 0x7f));
    // The name was read from these phits; compare the rest, which is their kind and the source's
    // upper bits.
    wrong |= phits[2] ^ body(u32::from(name.source));
    wrong |= phits[3] ^ body(turned(name.sequence));
    wrong |= phits[4] ^ body(name.birth);
    for (index, &phit) in phits.iter().enumerate().take(phits.len() - 1).skip(5) {
        wrong |= phit ^ body(pattern(key, index));
    }
    wrong == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire_framing::yarc::packet::check_packet;

    fn both() -> [(Packet, Name); 3] {
        let name = Name::request(0x1234, 0x7abc, 0x3_5678, 0xdead_beef);
        [
            (Packet::request(name, 0x5a5a, 13, Seal::Crc), name),
            (Packet::request(name, 1, 8, Seal::Crc), name),
            (Packet::reply(name.reply(), Seal::Crc), name.reply()),
        ]
    }

    #[test]
    fn sent_phits_form_a_packet_and_arrive() {
        for (packet, name) in both() {
            let phits: Vec<Phit> = packet.phits().iter().map(|&b| Phit::from_bits(b)).collect();
            assert_eq!(check_packet(&phits), Ok(EopStatus::Healthy));
            let mut assembly = Assembly::default();
            let mut arrived = None;
            for &phit in &phits {
                assert_eq!(arrived, None);
                arrived = assembly.take(phit, Seal::Crc);
            }
            let arrived = arrived.expect("the packet has ended");
            assert!(arrived.intact);
            assert_eq!((arrived.name, arrived.phits as usize), (name, phits.len()));
        }
    }

    #[test]
    fn any_wrong_bit_is_noticed() {
        for (packet, _) in both() {
            for index in 0..packet.phits().len() {
                for bit in 0..22 {
                    let mut assembly = Assembly::default();
                    let mut last = None;
                    for (i, &bits) in packet.phits().iter().enumerate() {
                        let flip = if i == index { 1 << bit } else { 0 };
                        last = assembly.take(Phit::from_bits(bits ^ flip), Seal::Crc);
                    }
                    // A wrong `h`, `a` or `r` bit affects routers as well as the sink.
                    assert!(!last.unwrap().intact, "phit {index} bit {bit}");
                }
            }
        }
    }

    #[test]
    fn births_are_complete_again() {
        let name = Name::request(1, 2, 3, (5 << 22) + 17);
        assert_eq!(name.born((5 << 22) + 17), (5 << 22) + 17);
        assert_eq!(name.born((6 << 22) + 16), (5 << 22) + 17);
    }
}
