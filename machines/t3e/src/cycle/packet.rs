//! The packets of synthetic traffic, and the sink that verifies them.
//!
//! Packets have the machine's format. Their data identify them, so that a sink can verify that each
//! arrived once and undamaged.

use phitwire_framing::t3e::check::DataCheck;
use phitwire_framing::t3e::flit::VCS;
use phitwire_framing::t3e::header::{Command, Header, Name};
use phitwire_framing::t3e::packet::{PacketBuf, Request};

use phitwire::rng::mix;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    #[default]
    Put,
    Get,
}

impl Operation {
    /// The commands of a request of `bytes` bytes, and of its response.
    pub(super) const fn commands(self, bytes: u8) -> [Command; 2] {
        match (self, bytes <= 8) {
            (Self::Put, true) => [Command::Put1, Command::Done],
            (Self::Put, false) => [Command::Put8, Command::Done],
            (Self::Get, true) => [Command::Get1, Command::Get1Data],
            (Self::Get, false) => [Command::Get8, Command::Get8Data],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    pub to: u16,
    pub name: u32,
    /// Cycle in which the request was generated, below 2^48.
    pub birth: u64,
}

impl Message {
    /// A number that in practice identifies this packet uniquely.
    #[inline]
    pub(super) fn key(self, command: Command) -> u64 {
        let ends = u64::from(self.to) | u64::from(self.name) << 16 | (command as u64) << 48;
        mix(self.birth ^ ends.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1
    }

    /// The packet of a request from processor `from`.
    pub(super) fn request(self, command: Command, from: u16, ordered: bool) -> PacketBuf {
        let request = Request {
            address: self.birth,
            bytes: command.message_bytes(),
            ordered,
            name: Name::new(self.name),
        };
        let data = self.data(command);
        PacketBuf::request(command, (from, self.to), &request, &data[..command.words()])
    }

    pub(super) fn response(self, command: Command) -> PacketBuf {
        let data = self.data(command);
        let name = Name::new(self.name);
        let bytes = 8 * command.words() as u8;
        PacketBuf::response(command, self.to, name, bytes, &data[..command.words()])
    }

    /// The data of a packet: its birth, and words derived from its identity.
    fn data(self, command: Command) -> [u64; 8] {
        let key = self.key(command);
        core::array::from_fn(|word| match word {
            0 => self.birth,
            _ => key.rotate_left(7 * word as u32),
        })
    }
}

/// An arrived packet; `from` is valid only for requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub command: Command,
    pub message: Message,
    pub from: u16,
    /// Whether the data are correct.
    pub whole: bool,
}

/// Packets being received, by virtual channel.
#[derive(Clone, Debug, Default)]
pub struct Assembly {
    words: [[u64; 10]; VCS],
    lengths: [u8; VCS],
    wanted: [u8; VCS],
}

impl Assembly {
    /// Takes a flit of `vc` for processor `own`, and returns the packet that it completes, if any.
    /// A response without data carries no birth.
    #[inline]
    pub(super) fn take(&mut self, vc: usize, word: u64, own: u16) -> Option<Delivery> {
        let at = usize::from(self.lengths[vc]);
        if at == 0 {
            let header = Header::parse(word);
            self.wanted[vc] = header.map_or(1, |(header, _)| header.command.flits() as u8);
        }
        self.words[vc][at] = word;
        self.lengths[vc] += 1;
        if self.lengths[vc] < self.wanted[vc] {
            return None;
        }
        let flits = usize::from(core::mem::take(&mut self.lengths[vc]));
        Some(delivery(&self.words[vc][..flits], own))
    }

    /// Whether a part of a packet has arrived.
    pub(super) fn is_open(&self) -> bool {
        self.lengths != [0; VCS]
    }
}

fn delivery(words: &[u64], own: u16) -> Delivery {
    let mut found = Delivery {
        command: Command::Refused,
        message: Message {
            to: own,
            name: 0,
            birth: 0,
        },
        from: 0,
        whole: false,
    };
    let Ok((header, _)) = Header::parse(words[0]) else {
        return found;
    };
    let command = header.command;
    let data = words.get(command.header_flits()..).unwrap_or_default();
    found.command = command;
    let message = &mut found.message;
    if command.is_response() {
        message.name = u32::from(header.id) | u32::from(header.origin) << Name::ID_BITS;
        message.birth = data.first().copied().unwrap_or(0);
    } else {
        let request = Request::parse(&header, words[1]);
        (message.name, message.birth) = (request.name.bits(), request.address);
        found.from = header.origin;
    }
    let good = DataCheck::of(&words[1..]) == header.data_check;
    let expected = message.data(command);
    found.whole = good && data == &expected[..data.len()];
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sink_knows_whether_it_got_what_was_sent() {
        let message = Message {
            to: 9,
            name: 0xa_1234,
            birth: 77,
        };
        for operation in [Operation::Put, Operation::Get] {
            for bytes in [8, 64] {
                let [request, response] = operation.commands(bytes);
                for packet in [
                    message.request(request, 3, false),
                    message.response(response),
                ] {
                    let mut assembly = Assembly::default();
                    let mut take = |own, flits: &[u64]| {
                        let taken = flits.iter().filter_map(|word| assembly.take(1, *word, own));
                        let all: Vec<_> = taken.collect();
                        all[0]
                    };
                    let mut flits = packet.flits().to_vec();
                    let got = take(9, &flits);
                    assert!(got.whole, "{got:?}");
                    assert_eq!(got.message.name, message.name);
                    if got.command != Command::Done {
                        assert_eq!(got.message, message);
                    }
                    let elsewhere = take(8, &flits).message.key(got.command);
                    assert_ne!(elsewhere, message.key(got.command));
                    *flits.last_mut().unwrap() ^= 1 << 30;
                    assert!(!take(9, &flits).whole);
                }
            }
        }
    }
}
