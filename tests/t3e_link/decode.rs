//! All T3E decoders of received bytes, for the fuzz target and the replay of its corpus: bursts,
//! flits, headers, packets, barrier messages, maintenance packets, the buffers of an input. No
//! input may cause a panic, except where a decoder contradicts itself or its encoder.

use phitwire_framing::t3e::barrier::Message;
use phitwire_framing::t3e::burst::Burst;
use phitwire_framing::t3e::check::Repair;
use phitwire_framing::t3e::flit::{Control, Flit, FlitKind, VCS};
use phitwire_framing::t3e::header::{Header, HeaderError};
use phitwire_framing::t3e::maintenance::MaintenancePacket;
use phitwire_framing::t3e::maintenance::{MaintenanceHeader, MaintenanceTrail};
use phitwire_framing::t3e::packet::{MAX_PACKET_FLITS, PacketBuf, Request};
use phitwire_t3e::link::{Depths, FlitBuffer};

/// Number of units by the result of decoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Headers valid, corrected and uncorrectable, and those with an invalid command.
    pub headers: [u32; 4],
    /// Words after headers: valid, corrected and uncorrectable.
    pub packets: [u32; 3],
    /// Barrier messages, corrected ones, and words that are not messages.
    pub messages: [u32; 3],
    /// First flits of maintenance packets, second ones, and whole packets.
    pub maintenance: [u32; 3],
    /// Bursts with invalid control bits.
    pub unreadable: u32,
    /// Packets cut short by the next.
    pub cut: u64,
    /// Flits without a header or a free slot.
    pub discarded: u64,
}

impl Outcome {
    pub fn add(&mut self, other: &Self) {
        let add = |own: &mut [u32], other: &[u32]| {
            own.iter_mut()
                .zip(other)
                .for_each(|(own, other)| *own += other);
        };
        add(&mut self.headers, &other.headers);
        add(&mut self.packets, &other.packets);
        add(&mut self.messages, &other.messages);
        add(&mut self.maintenance, &other.maintenance);
        self.unreadable += other.unreadable;
        self.cut += other.cut;
        self.discarded += other.discarded;
    }
}

/// Decodes `bytes` as consecutive bursts with all their contents, and passes the flits to an input.
pub fn decode(bytes: &[u8]) -> Outcome {
    let mut outcome = Outcome::default();
    let mut buffer = FlitBuffer::correcting(Depths::PAPER);
    // Slots granted to the other end, which may send more flits than that.
    let mut promised = buffer.grant();
    for bytes in bytes.as_chunks().0 {
        let burst = Burst::parse(bytes);
        let mut again = [0xa5; Burst::BYTES];
        burst.emit(&mut again);
        assert_eq!(Burst::parse(&again), burst, "what is read is written");
        if again != *bytes {
            outcome.unreadable += 1;
        }
        for three in burst.words.windows(3) {
            decode_maintenance([three[0], three[1], three[2]], &mut outcome);
        }
        for flit in burst.flits() {
            decode_flit(flit, &mut outcome);
            if let FlitKind::Data(vc) = flit.control.kind() {
                take(&mut buffer, vc.into(), flit, &mut promised);
            }
        }
    }
    for vc in 0..VCS {
        buffer.complete(vc);
        decode_packets(&mut buffer, vc, &mut outcome);
    }
    outcome.cut += buffer.counters().rx_truncated_packets;
    outcome.discarded += buffer.counters().rx_headless_flits + buffer.counters().rx_overflows;
    outcome
}

/// Stores a flit in an input; while the other end respects its credits, a slot must be free.
fn take(buffer: &mut FlitBuffer, vc: usize, flit: Flit, promised: &mut [u32; VCS]) {
    let (held, overflows) = (buffer.len(vc), buffer.counters().rx_overflows);
    let (arrived, is_free) = buffer.receive(vc, flit);
    assert_eq!(buffer.len(vc), held + arrived);
    assert!(arrived <= MAX_PACKET_FLITS as u32);
    let overflowed = buffer.counters().rx_overflows > overflows;
    assert!(!overflowed || promised[vc] == 0, "a slot was promised");
    if !overflowed {
        promised[vc] = promised[vc].saturating_sub(1) + u32::from(is_free);
    }
    // A flit without a slot must not free one.
    assert!(!overflowed || !is_free);
    // Pop some flits now and then.
    if flit.word.is_multiple_of(4) {
        for _ in 0..buffer.len(vc).min(3) {
            promised[vc] += u32::from(buffer.pop(vc).1);
        }
    }
    assert!(promised[vc] <= Depths::PAPER.of(vc));
}

fn decode_flit(flit: Flit, outcome: &mut Outcome) {
    let control = flit.control;
    assert_eq!(
        Control::parse(control.bits(), control.is_head()),
        Some(control)
    );
    match Header::parse(flit.word) {
        Ok((header, repair)) => {
            let differs = (header.emit() ^ flit.word).count_ones();
            assert_eq!(
                differs,
                u32::from(repair == Repair::Corrected),
                "{header:?}"
            );
            outcome.headers[usize::from(differs > 0)] += 1;
            assert!((1..=MAX_PACKET_FLITS).contains(&header.command.flits()));
        }
        Err(HeaderError::Check) => outcome.headers[2] += 1,
        Err(HeaderError::Command(_)) => outcome.headers[3] += 1,
    }
    match (Message::decode(flit.word), Message::correct(flit.word)) {
        (Ok(message), corrected) => {
            assert_eq!(message.encode(), flit.word);
            assert_eq!(corrected, None, "nothing is wrong");
            outcome.messages[0] += 1;
        }
        (Err(_), Some((message, wrong))) => {
            assert_eq!(message.encode() ^ flit.word, 1 << wrong);
            outcome.messages[1] += 1;
        }
        (Err(_), None) => outcome.messages[2] += 1,
    }
}

/// Decodes three words as a maintenance packet, which travels its whole route and gets a reply.
fn decode_maintenance(words: [u64; 3], outcome: &mut Outcome) {
    // Six counts of hops, from -32 to 31 each.
    const MOST_HOPS: usize = 6 * 32;
    let Some((mut header, corrected)) = MaintenanceHeader::parse(words[0]) else {
        return;
    };
    let differs = (header.emit() ^ words[0]).count_ones();
    assert_eq!(differs, u32::from(corrected), "{header:?}");
    outcome.maintenance[0] += 1;
    let Some((mut trail, corrected)) = MaintenanceTrail::parse(words[1]) else {
        return;
    };
    let differs = (trail.emit() ^ words[1]).count_ones();
    assert_eq!(differs, u32::from(corrected), "{trail:?}");
    outcome.maintenance[1] += 1;
    let hops = core::iter::from_fn(|| header.step());
    let gone = hops.map(|hop| trail.step(hop)).count();
    assert!(gone <= MOST_HOPS, "{gone} hops");
    let Some((packet, _)) = MaintenancePacket::assemble(header, trail, words[2]) else {
        return;
    };
    outcome.maintenance[2] += 1;
    let reply = packet.reply(packet.command, packet.value);
    let [first, second, _] = reply.words();
    assert!(MaintenanceHeader::parse(first).is_some_and(|(_, wrong)| !wrong));
    let (trail, _) = MaintenanceTrail::parse(second).expect("it was just made");
    assert_eq!(trail.register, packet.register);
}

/// Decodes the packets of a channel, all of which must be complete.
fn decode_packets(buffer: &mut FlitBuffer, vc: usize, outcome: &mut Outcome) {
    while buffer.len(vc) > 0 {
        let Ok((header, _)) = Header::parse(buffer.front(vc)) else {
            buffer.pop(vc);
            continue;
        };
        let count = header.command.flits().min(buffer.len(vc) as usize);
        let words: Vec<u64> = (0..count).map(|_| buffer.pop(vc).0).collect();
        let mut packet = PacketBuf::from_flits(&words).expect("no packet is longer");
        let (header, [_, found]) = packet.open().expect("it was read before");
        outcome.packets[found as usize] += 1;
        if found != Repair::Hopeless && count > 1 {
            assert_eq!(packet.flits().len(), count);
            let request = Request::parse(&header, packet.flits()[1]);
            assert!((1..=64).contains(&request.bytes));
            assert!(PacketBuf::response_bytes(&header, packet.flits()[1]) <= 64);
        }
    }
}

/// Like [`decode`], with a valid header in each word that is marked as one, and valid checks.
pub fn decode_with_checks_made_right(bytes: &[u8]) -> Outcome {
    let mut bytes = bytes.to_vec();
    for chunk in bytes.as_chunks_mut().0 {
        let mut burst = Burst::parse(chunk);
        for (word, control) in burst.words.iter_mut().zip(burst.controls) {
            if control.is_head() {
                let information = *word & ((1 << 57) - 1);
                *word = phitwire_framing::t3e::check::seal_header(information);
            }
        }
        burst.emit(chunk);
    }
    decode(&bytes)
}
