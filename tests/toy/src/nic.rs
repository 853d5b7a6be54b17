//! The NIC: writes and reads of up to 32 bytes.
//!
//! The first word of a packet holds, from the lowest bits on, destination and source (16 bits
//! each), kind and length (8 bits each). Then follow the address, the name of the request, a zero
//! word and the data.

use super::Packet;
use phitwire::nic::Abilities;
use phitwire::packets::transfer::{Kind, MAX_DATA, Transfer};
use phitwire::packets::{PacketNic, TransferPacket};

pub type RingNic = PacketNic<Packet>;

impl TransferPacket for Packet {
    const ABILITIES: Abilities = Abilities::puts_and_gets(32);

    fn pack(transfer: &Transfer) -> Self {
        let kind = transfer.kind as u64;
        let head = [
            transfer.to.into(),
            u64::from(transfer.from) << 16,
            kind << 32,
        ];
        let head = head.iter().sum::<u64>() | u64::from(transfer.len) << 40;
        let mut words = [head, transfer.address, transfer.name, 0, 0, 0, 0, 0];
        for (word, at) in words[4..].iter_mut().zip(transfer.data.as_chunks().0) {
            *word = u64::from_be_bytes(*at);
        }
        Self(words)
    }

    fn unpack(&self) -> Option<Transfer> {
        let [head, address, name, reserved, ref words @ ..] = self.0;
        let mut data = [0; MAX_DATA];
        for (word, at) in words.iter().zip(data.as_chunks_mut().0) {
            *at = word.to_be_bytes();
        }
        let kind = *Kind::ALL.get((head >> 32) as usize & 0xff)?;
        (head >> 48 == 0 && reserved == 0).then_some(Transfer {
            to: head as u16,
            from: (head >> 16) as u16,
            kind,
            ordered: true,
            address,
            name,
            len: (head >> 40) as u8,
            data,
            refusal: None,
        })
    }
}
