//! Writes the tables of field positions and code names that the Wireshark dissector uses for
//! frames, flits and packets. They are derived from the code that reads and writes these formats,
//! so that they cannot drift: from constants where those are public, otherwise from the bits that
//! an encoder changes when it gets another value.
//!
//! ```sh
//! cargo run --example wireshark_fields >docs/wireshark/phitwire_fields.lua
//! ```
//!
//! `tests/wireshark` checks that the committed file is up to date.

use std::fmt::{Display, Write as _};
use std::ops::Range;

use phitwire::packets::Packet as _;
use phitwire_aries::link::LcbRegisters;
use phitwire_framing::aries::packet as aries_packet;
use phitwire_framing::aries::{crc20, flit as aries_flit, frame as aries_frame, set as aries_set};
use phitwire_framing::carrier::{frame, number, training};
use phitwire_framing::t3e::burst::{BURST_FLITS, Burst};
use phitwire_framing::t3e::flit::{Flit as T3eFlit, VCS as T3E_VCS};
use phitwire_framing::t3e::header::{Command as T3eCommand, Header, Name};
use phitwire_framing::t3e::tag::{Coordinates, Tag};
use phitwire_framing::yarc::{control, crc16, frame as yarc_frame, memory, packet, phit};
use phitwire_t3e::link::BurstPacket;

use aries_flit::{Flit, Head, NodeId, Routing};
use aries_packet::{AmoOp, RequestView, Status};
use aries_set::{DataSet, SetView, Tail};
use control::ControlWord;

fn main() {
    print!("{}", tables());
}

/// Returns the text of the whole file.
pub fn tables() -> String {
    let mut to = Lua::default();
    to.line("-- Written by `cargo run --example wireshark_fields`, and checked by `cargo test`: not by hand.");
    to.line("-- Bytes are { first, count }, bits { lowest, count }; of flits of 48 bits { flit, lowest, count }.");
    to.open("return");
    carrier(&mut to);
    yarc(&mut to);
    aries(&mut to);
    t3e(&mut to);
    to.line("}");
    to.text
}

/// A Lua table under construction.
#[derive(Default)]
struct Lua {
    text: String,
    depth: usize,
}

impl Lua {
    fn line(&mut self, line: &str) {
        self.text += &"  ".repeat(self.depth);
        self.text += line;
        self.text.push('\n');
    }

    fn open(&mut self, what: &str) {
        self.line(&format!("{what} {{"));
        self.depth += 1;
    }

    fn table(&mut self, name: &str, of: impl FnOnce(&mut Self)) {
        self.open(&format!("{name} ="));
        of(self);
        self.depth -= 1;
        self.line("},");
    }

    fn number(&mut self, name: &str, value: impl TryInto<u64>) {
        let value = value
            .try_into()
            .unwrap_or_else(|_| unreachable!("constants are not negative"));
        self.line(&format!("{name} = {value},"));
    }

    fn hex(&mut self, name: &str, value: impl Into<u64>) {
        self.line(&format!("{name} = {:#x},", value.into()));
    }

    fn bytes(&mut self, name: &str, at: &Range<usize>) {
        self.line(&format!("{name} = {{ {}, {} }},", at.start, at.len()));
    }

    /// Writes the range of the bits set in `mask`, which must be adjacent.
    fn bits(&mut self, name: &str, mask: u128) {
        let (lowest, count) = span(mask);
        self.line(&format!("{name} = {{ {lowest}, {count} }},"));
    }

    fn names<T: Display>(&mut self, name: &str, of: impl IntoIterator<Item = (u64, T)>) {
        self.table(name, |to| {
            for (code, text) in of {
                to.line(&format!("[{code}] = \"{text}\","));
            }
        });
    }
}

/// The lowest bit of a mask of adjacent bits, and their number.
fn span(mask: u128) -> (u32, u32) {
    let count = mask.count_ones();
    let lowest = mask.trailing_zeros();
    assert!(
        count > 0 && mask >> lowest == (1 << count) - 1,
        "a field's bits are neighbours: {mask:#x}"
    );
    (lowest, count)
}

fn carrier(to: &mut Lua) {
    to.hex("ethertype", frame::ETHERTYPE);
    to.number("udp_port", frame::UDP_PORT);
    to.hex("magic", frame::MAGIC);
    to.number("version", frame::VERSION);
    to.number("header_bytes", frame::HEADER_BYTES);
    to.number("check_bytes", frame::CHECK_BYTES);
    to.number("plain_at", frame::PLAIN_AT);
    to.number("word_bytes", phit::LANES.word_bytes());
    to.number("word_bits", phit::LANES.word_bits());
    to.number("lanes", phit::LANES.count());
    to.number("number_bits", number::PacketNumber::BITS);
    to.number("kind_at", frame::KIND_AT);
    to.table("header", |to| {
        to.bytes("link", &frame::LINK_AT);
        to.bytes("fabric", &frame::FABRIC_AT);
        to.bytes("tx_epoch", &frame::TX_EPOCH_AT);
        to.bytes("rx_epoch", &frame::RX_EPOCH_AT);
        to.bytes("lanes", &frame::LANES_AT);
        to.bytes("units", &frame::UNITS_AT);
    });
    to.table("kinds", |to| {
        to.number("data", yarc_frame::DataFrame::KIND.code());
        to.number("training", training::Training::KIND.code());
        to.number("sets", aries_frame::SetFrame::KIND.code());
        to.number("bursts", Burst::KIND.code());
    });
    to.table("training", |to| {
        to.number("bytes", training::TRAINING_BYTES);
        to.bytes("state", &training::STATE_AT);
        to.bytes("rx_lanes", &training::RX_LANES_AT);
        to.bytes("port", &training::PORT_AT);
        to.bytes("expect_port", &training::EXPECT_PORT_AT);
        to.bytes("max_packet", &training::MAX_PACKET_AT);
        to.bytes("rate", &training::RATE_AT);
        to.bytes("window", &training::WINDOW_AT);
        for (vc, at) in training::CREDITS_AT.iter().enumerate() {
            to.bytes(&format!("credits{vc}"), at);
        }
        to.bytes("node", &training::NODE_AT);
        to.bytes("expect_node", &training::EXPECT_NODE_AT);
        to.bytes("check", &training::CHECK_AT);
        to.bytes("pattern", &training::PATTERN_AT);
    });
}

/// The bits of the control word that `change` changes.
fn word_bits(change: impl FnOnce(&mut ControlWord)) -> u128 {
    let bits = |word: ControlWord| {
        let mut bytes = [0; 16];
        bytes[4..].copy_from_slice(&word.emit());
        u128::from_be_bytes(bytes) >> 16 << 16
    };
    let mut word = ControlWord::default();
    change(&mut word);
    bits(word) ^ bits(ControlWord::default())
}

fn yarc(to: &mut Lua) {
    let most = number::PacketNumber::new(number::PacketNumber::MAX);
    to.table("yarc", |to| {
        to.bytes("rest", &yarc_frame::REST_AT);
        to.number("map_at", yarc_frame::MAP_AT);
        to.number("group_phits", yarc_frame::GROUP_PHITS);
        to.number("min_phits", yarc_frame::MIN_FRAME_PHITS);
        to.number("content_bits", phit::CONTENT_BITS);
        to.table("word", |to| {
            to.number("bits", control::WORD_BITS);
            to.number("phits", control::WORD_PHITS);
            to.bits("seq", word_bits(|word| word.seq = most));
            to.bits(
                "offset",
                word_bits(|word| word.offset = control::MAX_OFFSET),
            );
            // Only the codes 0, 1 and 2 are in use, so derive the field from its neighbours.
            let (offset, ack) = (
                span(word_bits(|word| word.offset = control::MAX_OFFSET)),
                span(word_bits(|word| word.ack = most)),
            );
            to.line(&format!(
                "status = {{ {}, {} }},",
                ack.0 + ack.1,
                offset.0 - ack.0 - ack.1
            ));
            to.bits("ack", word_bits(|word| word.ack = most));
            to.bits(
                "vc_ack0",
                word_bits(|word| word.vc_ack[0] = control::VC_ACK_MASK),
            );
            to.bits(
                "vc_ack1",
                word_bits(|word| word.vc_ack[1] = control::VC_ACK_MASK),
            );
            to.hex("polynomial", control::POLYNOMIAL);
            to.hex("initial", control::INITIAL);
        });
        to.table("packet", |to| {
            to.number("min_phits", packet::MIN_PACKET_PHITS);
            to.number("max_phits", packet::MAX_PACKET_PHITS);
            to.bits("dest", packet::DEST_MASK.into());
            to.bits("v", 1 << packet::V_BIT);
            to.bits("h", 1 << packet::H_BIT);
            to.bits("a", 1 << packet::A_BIT);
            to.bits("r", 1 << packet::R_BIT);
            let of = |shift: u32, bits: u32| ((1_u128 << bits) - 1) << shift;
            to.bits(
                "head_payload",
                of(packet::HEAD_PAYLOAD_SHIFT, packet::HEAD_PAYLOAD_BITS),
            );
            to.bits("hash", packet::HASH_MASK.into());
            to.bits(
                "second_payload",
                of(packet::SECOND_PAYLOAD_SHIFT, packet::SECOND_PAYLOAD_BITS),
            );
            to.bits("crc", packet::EOP_CRC_MASK.into());
            to.bits(
                "ok",
                of(
                    packet::EOP_STATUS_SHIFT,
                    packet::EOP_RESERVED_SHIFT - packet::EOP_STATUS_SHIFT,
                ),
            );
            to.hex("polynomial", crc16::POLYNOMIAL);
            to.hex("initial", crc16::INITIAL);
        });
        to.table("memory", |to| {
            to.number("source_bits", memory::SOURCE_BITS);
            to.number("tid_bits", memory::TID_BITS);
            to.number("address_bits", memory::ADDRESS_BITS);
            to.number("hash_shift", memory::HASH_SHIFT);
            to.number("hash_bits", packet::DEST_BITS);
            to.number("line_bytes", memory::LINE_BYTES);
        });
    });
}

fn aries(to: &mut Lua) {
    let all = NodeId::from_bits(u32::MAX);
    let none = NodeId::default();
    let head = |response, length, to, routing, id, code| {
        Head::new(response, length, to, routing, id, code)
            .flit()
            .bits()
    };
    let blank = head(false, 0, none, Routing::Adaptive0, 0, 0);
    to.table("aries", |to| {
        to.number("sets_at", aries_frame::SETS_AT);
        to.number("set_bytes", aries_set::SET_BYTES);
        to.number("flit_bytes", aries_set::FLIT_BYTES);
        to.number("data_flits", aries_set::DATA_FLITS);
        to.number("max_sets", aries_frame::MAX_FRAME_SETS);
        to.number("vc_ack_unit", aries_set::VC_ACK_UNIT);
        to.number("vcs", aries_flit::VCS);
        to.number("first_response_vc", aries_flit::FIRST_RESPONSE_VC);
        to.number("max_packet_flits", aries_flit::MAX_PACKET_FLITS);
        to.hex("crc20_polynomial", crc20::POLYNOMIAL);
        to.hex("crc20_initial", crc20::INITIAL);
        to.number("crc20_bits", crc20::BITS);
        let seeds = LcbRegisters::default()
            .scrambler_seeds
            .map(|seed| format!("{seed:#x}"));
        to.line(&format!("scrambler_seeds = {{ {} }},", seeds.join(", ")));
        to.table("head", |to| {
            let mut bits = |name: &str, other: u64| to.bits(name, (other ^ blank).into());
            let plain = Head::new(false, 0, none, Routing::Adaptive0, 0, 0);
            bits("vc", plain.with_vc(7).flit().bits());
            bits("non_minimal", plain.with_non_minimal(true).flit().bits());
            bits("length", head(false, 0xf, none, Routing::Adaptive0, 0, 0));
            bits("destination", head(false, 0, all, Routing::Adaptive0, 0, 0));
            bits("routing", head(false, 0, none, Routing::Valiant, 0, 0));
            bits(
                "packet_id",
                head(false, 0, none, Routing::Adaptive0, u16::MAX, 0),
            );
            bits("poisoned", plain.with_poison().flit().bits());
            bits("code", head(false, 0, none, Routing::Adaptive0, 0, u8::MAX));
        });
        let id = |group, router, nic| u128::from(NodeId::new(group, router, nic).bits());
        to.table("node", |to| {
            to.bits("group", id(u16::MAX, 0, 0));
            to.bits("router", id(0, u8::MAX, 0));
            to.bits("nic", id(0, 0, u8::MAX));
        });
        tenth(to);
        to.table("control", |to| {
            to.number("flags", aries_set::FLAGS_AT);
            to.bytes("next", &aries_set::NEXT_AT);
            to.bytes("ack", &aries_set::CONTROL_ACK_AT);
            to.number("vc_acks", aries_set::VC_ACKS_AT);
            to.bytes("missing_from", &aries_set::MISSING_FROM_AT);
            to.bytes("missing", &aries_set::MISSING_AT);
            to.bytes("clock", &aries_set::CLOCK_AT);
        });
        request(to);
        to.hex("packet_polynomial", aries_packet::POLYNOMIAL);
        to.hex("packet_initial", aries_packet::INITIAL);
        to.number("echo_bits", aries_packet::ECHO_BITS);
        let name = |status: Status| (status as u64, status.name());
        to.names("status", Status::ALL.map(name));
        to.names(
            "operations",
            AmoOp::ALL.map(|op| (op as u64, spaced(&format!("{op:?}")))),
        );
        to.names(
            "routings",
            Routing::ALL.map(|mode| (mode as u64, spaced(&format!("{mode:?}")))),
        );
    });
}

fn tenth(to: &mut Lua) {
    let tenth = |control: bool, tail: Tail| {
        let mut set = [0; aries_set::SET_BYTES];
        let flits = [Flit::IDLE; aries_set::DATA_FLITS];
        DataSet { flits, tail }.emit(&mut set);
        if control {
            SetView::new(&mut set).set_tail(true, tail);
        }
        SetView::new(&set).flit(aries_set::DATA_FLITS).bits() >> crc20::BITS << crc20::BITS
    };
    let blank = tenth(false, Tail::default());
    to.table("tenth", |to| {
        let mut bits =
            |name: &str, control, tail| to.bits(name, (tenth(control, tail) ^ blank).into());
        let tail = Tail::default();
        bits("control", true, tail);
        bits(
            "number",
            false,
            Tail {
                number: 0x3f,
                ..tail
            },
        );
        bits(
            "odd",
            false,
            Tail {
                number: 0x40,
                ..tail
            },
        );
        bits("nack", false, Tail { nack: true, ..tail });
        bits(
            "ack",
            false,
            Tail {
                ack: u8::MAX,
                ..tail
            },
        );
        bits(
            "load",
            false,
            Tail {
                load: u8::MAX,
                ..tail
            },
        );
        bits(
            "clock",
            false,
            Tail {
                clock: true,
                ..tail
            },
        );
        bits(
            "vc_ack",
            false,
            Tail {
                vc_ack: u8::MAX,
                ..tail
            },
        );
        to.bits("crc", crc20::MASK.into());
    });
}

fn request(to: &mut Lua) {
    let field = |to: &mut Lua, name: &str, flit: usize, change: &dyn Fn(&mut RequestView)| {
        let mut view = RequestView::new([Flit::IDLE; aries_packet::REQUEST_HEADER_FLITS]);
        change(&mut view);
        let (lowest, count) = span(view.into_inner()[flit].bits().into());
        to.line(&format!("{name} = {{ {flit}, {lowest}, {count} }},"));
    };
    to.table("request", |to| {
        field(to, "command_high", 1, &|view| view.set_command_high(true));
        field(to, "source", 1, &|view| {
            view.set_source(NodeId::from_bits(u32::MAX))
        });
        field(to, "mdh", 1, &|view| view.set_mdh(u16::MAX));
        field(to, "echo", 1, &|view| view.set_echo(u8::MAX));
        field(to, "ssid", 1, &|view| view.set_ssid(u16::MAX));
        field(to, "address_high", 1, &|view| view.set_address(u64::MAX));
        field(to, "address_low", 2, &|view| view.set_address(u64::MAX));
        field(to, "key", 2, &|view| view.set_key(u16::MAX));
    });
}

fn t3e(to: &mut Lua) {
    to.table("t3e", |to| {
        to.number("burst_flits", BURST_FLITS);
        to.number("burst_bytes", Burst::BYTES);
        to.number("burst_vcs", BurstPacket::VCS);
        to.number("flit_bits", T3eFlit::BITS);
        to.number("vcs", T3E_VCS);
        to.table("header", |to| {
            let flit = |change: &dyn Fn(&mut Header)| {
                let mut header = Header::new(T3eCommand::Get1, Tag::default(), Name::new(0), 0);
                change(&mut header);
                header.emit() & ((1 << 57) - 1)
            };
            let blank = flit(&|_| ());
            let mut bits = |name: &str, change: &dyn Fn(&mut Header)| {
                to.bits(name, (flit(change) ^ blank).into())
            };
            bits("tag", &|header| header.tag = Tag::from_bits(u32::MAX));
            bits("x", &|header| {
                header.tag.to = Coordinates([u8::MAX >> 4, 0, 0])
            });
            bits("y", &|header| {
                header.tag.to = Coordinates([0, u8::MAX >> 3, 0])
            });
            bits("z", &|header| {
                header.tag.to = Coordinates([0, 0, u8::MAX >> 4])
            });
            bits("signs", &|header| header.tag.signs = 7);
            bits("final", &|header| header.tag.final_hop = true);
            bits("adaptive", &|header| header.tag.adaptive = true);
            bits("origin", &|header| header.origin = u16::MAX);
            bits("id", &|header| header.id = u16::MAX);
            bits("data_check", &|header| header.data_check = u16::MAX);
            let (tag, _) =
                span((flit(&|header| header.tag = Tag::from_bits(u32::MAX)) ^ blank).into());
            to.line(&format!("command = {{ 0, {tag} }},"));
        });
        to.table("commands", |to| {
            for (command, code, flits) in T3eCommand::ALL {
                let mut text = String::new();
                let (name, header) = (spaced(&format!("{command:?}")), command.header_flits());
                let _ = write!(
                    text,
                    "[{code}] = {{ name = \"{name}\", flits = {flits}, header = {header} }},"
                );
                to.line(&text);
            }
        });
    });
}

/// Converts a name such as `CompareSwap` to `compare swap`.
fn spaced(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !text.is_empty() {
            text.push(' ');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}
