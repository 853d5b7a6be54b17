//! Transfers as packets of phits.

use phitwire_framing::yarc::maintenance::{Maintenance, Operation};
use phitwire_framing::yarc::memory::{
    ADDRESS_BITS, DecodeError, LINE_BYTES, Request, Response, Status, TID_BITS, decode_request,
    decode_response, encode_request, encode_response,
};
use phitwire_framing::yarc::packet::{EopStatus, PacketBuf, Vc, eop_status, head_source_routed};
use phitwire_framing::yarc::phit::Phit;

use super::counters::NicCounters;
use super::{ABILITIES, Register, slice_of};
use crate::link::Lcb;
use phitwire::device::DeviceEvent;
use phitwire::link::{LinkView as _, NodeLink as _};
use phitwire::nic::Abilities;
use phitwire::packets::transfer::{Kind, Transfer};
use phitwire::packets::{Arrival, Refusal, TransferEnd};

/// The virtual channels in the order in which the NIC receives: responses never wait for requests
/// (BlackWidow sec. 4.2).
const CHANNELS: [Vc; 2] = [Vc::Response, Vc::Request];

/// Assembles the packets of one virtual channel from phits.
#[derive(Debug, Default)]
struct Assembly {
    packet: PacketBuf,
    /// Whether to discard phits up to the end of packet.
    skipping: bool,
}

impl Assembly {
    /// Takes phits of `vc` up to an end of packet. Returns false if no packet is complete and no
    /// phit is left. Packets that cannot be assembled are counted and dropped.
    #[inline]
    fn complete(&mut self, link: &mut Lcb, vc: Vc, counters: &mut NicCounters) -> bool {
        let Self { packet, skipping } = self;
        if packet.as_slice().last().is_some_and(|phit| phit.is_eop()) {
            return true;
        }
        let input = link.input_mut();
        while input.ready(vc) {
            let phit = input.pop(vc);
            if phit.is_head() {
                counters.discard_cut += u64::from(!packet.is_empty() || *skipping);
                packet.clear();
                *skipping = false;
            } else if *skipping {
                *skipping = !phit.is_eop();
                continue;
            } else if packet.is_empty() {
                counters.discard_headless += 1;
                *skipping = !phit.is_eop();
                continue;
            }
            if !packet.push(phit) {
                counters.discard_overlong += 1;
                packet.clear();
                *skipping = !phit.is_eop();
            } else if phit.is_eop() {
                return true;
            }
        }
        false
    }
}

/// Kind of a complete packet, from its first and last phit.
enum Envelope {
    /// Undamaged and not source-routed: a request or response, if it can be decoded.
    Memory,
    Reply(Maintenance),
    Discarded,
}

#[inline]
fn open(packet: &[Phit], counters: &mut NicCounters) -> Envelope {
    let (Some(head), Some(eop)) = (packet.first(), packet.last()) else {
        return Envelope::Discarded;
    };
    match eop_status(eop.content()) {
        Some(EopStatus::Healthy) if head_source_routed(head.content()) => {
            return open_maintenance(packet, counters);
        }
        Some(EopStatus::Healthy) => return Envelope::Memory,
        Some(EopStatus::SoftError) => counters.discard_soft_error += 1,
        Some(EopStatus::TransmitError) => counters.discard_transmit_error += 1,
        None => counters.discard_shape += 1,
    }
    Envelope::Discarded
}

#[cold]
fn open_maintenance(packet: &[Phit], counters: &mut NicCounters) -> Envelope {
    match Maintenance::decode(packet) {
        Ok(reply) if is_reply(&reply) => return Envelope::Reply(reply),
        Ok(_) => counters.discard_source_routed += 1,
        Err(error) => counters.malformed(error),
    }
    Envelope::Discarded
}

fn is_reply(packet: &Maintenance) -> bool {
    matches!(
        packet.operation,
        Operation::ReadReply { .. } | Operation::WriteReply { .. }
    )
}

const fn vc(kind: Kind) -> Vc {
    match kind.is_request() {
        true => Vc::Request,
        false => Vc::Response,
    }
}

const fn status(refusal: Option<Refusal>) -> Status {
    match refusal {
        Some(Refusal::OutOfRange) => Status::OutOfRange,
        Some(Refusal::Full | Refusal::Outdated) => Status::Busy,
        Some(Refusal::Unsupported | Refusal::UnknownRun) | None => Status::Unsupported,
    }
}

/// The transfer in an undamaged packet that arrived on `vc`.
#[inline]
fn transfer(vc: Vc, packet: &[Phit]) -> Result<Transfer, DecodeError> {
    match vc {
        Vc::Request => {
            let asked = decode_request(packet)?;
            let mut transfer = match asked.request {
                Request::Write { address, data, len } => {
                    let put = Transfer::new(asked.dest, Kind::Put, address);
                    put.with(&data[..usize::from(len)])
                }
                Request::Read { address, len } => Transfer {
                    len,
                    ..Transfer::new(asked.dest, Kind::Get, address)
                },
            };
            (transfer.from, transfer.name) = (asked.source, asked.tid.into());
            Ok(transfer)
        }
        Vc::Response => {
            let (dest, response) = decode_response(packet)?;
            let done = Transfer::new(dest, Kind::Done, 0);
            let (transfer, tid) = match response {
                Response::WriteDone {
                    tid,
                    status: Status::Done,
                } => (done, tid),
                Response::ReadData { tid, len, data } => {
                    (done.with(&data[..usize::from(len)]), tid)
                }
                Response::Refused { tid, status } if status != Status::Done => {
                    let mut refused = Transfer::new(dest, Kind::Refused, 0);
                    refused.refusal = Some(match status {
                        Status::OutOfRange => Refusal::OutOfRange,
                        Status::Busy => Refusal::Full,
                        Status::Unsupported | Status::Done => Refusal::Unsupported,
                    });
                    (refused, tid)
                }
                // The status contradicts the operation: a length that fits no request.
                Response::WriteDone { tid, .. } | Response::Refused { tid, .. } => {
                    let len = u8::MAX;
                    (Transfer { len, ..done }, tid)
                }
            };
            Ok(Transfer {
                name: tid.into(),
                ..transfer
            })
        }
    }
}

/// Transfers as packets of phits, with the packets that have arrived in part.
#[derive(Debug, Default)]
pub struct PhitTransfers {
    /// Indexed like [`CHANNELS`].
    assemblies: [Assembly; 2],
}

impl TransferEnd for PhitTransfers {
    type Link = Lcb;
    type Counters = NicCounters;

    const CHANNELS: usize = CHANNELS.len();
    const ABILITIES: Abilities = ABILITIES;
    const NAME_BITS: u32 = TID_BITS;
    const KEEPS_ORDER: bool = false;
    const FIXED_NUMBER: bool = true;
    const REQUEST_QUEUE: usize = 1024;
    const REQUESTS: Option<usize> = Some(1);

    #[inline]
    fn port_of(address: u64, ports: usize) -> usize {
        slice_of(address, ports)
    }

    #[inline]
    fn can_carry(asked: &Transfer) -> bool {
        let in_line = asked.address as usize % LINE_BYTES;
        asked.address >> ADDRESS_BITS == 0 && in_line + usize::from(asked.len) <= LINE_BYTES
    }

    #[inline]
    fn front(
        &mut self,
        link: &mut Lcb,
        channel: usize,
        counters: &mut NicCounters,
    ) -> Option<Arrival> {
        let (assembly, vc) = (&mut self.assemblies[channel], CHANNELS[channel]);
        while assembly.complete(link, vc, counters) {
            let packet = assembly.packet.as_slice();
            match open(packet, counters) {
                Envelope::Memory => match transfer(vc, packet) {
                    Ok(transfer) => return Some(Arrival::Whole(transfer)),
                    Err(error) => counters.malformed(error),
                },
                Envelope::Reply(reply) => {
                    let port = link.config().local().port;
                    let event = DeviceEvent::own(Some(port), Register { port, reply });
                    return Some(Arrival::Event(event));
                }
                Envelope::Discarded => {}
            }
            assembly.packet.clear();
        }
        None
    }

    #[inline]
    fn pop(&mut self, _: &mut Lcb, channel: usize) {
        self.assemblies[channel].packet.clear();
    }

    fn stalled(link: &Lcb, counters: &mut NicCounters) {
        counters.response_stalls += u64::from(link.input().ready(Vc::Request));
    }

    #[inline]
    fn has_room(link: &Lcb, kind: Kind, _: u8) -> bool {
        link.wire().can_begin(vc(kind))
    }

    #[inline]
    fn send(link: &mut Lcb, transfer: &Transfer) {
        let Transfer {
            to,
            from,
            address,
            len,
            ..
        } = *transfer;
        let (tid, data) = (transfer.name as u32, || transfer.data.as_chunks().0[0]);
        let mut packet = PacketBuf::new();
        let out = &mut packet;
        let encoded = match transfer.kind {
            Kind::Put => {
                let data = data();
                encode_request(to, from, tid, &Request::Write { address, data, len }, out)
            }
            Kind::Done if len > 0 => {
                let data = data();
                encode_response(to, &Response::ReadData { tid, len, data }, out)
            }
            Kind::Done => {
                let status = Status::Done;
                encode_response(to, &Response::WriteDone { tid, status }, out)
            }
            Kind::Refused => {
                let status = status(transfer.refusal);
                encode_response(to, &Response::Refused { tid, status }, out)
            }
            _ => encode_request(to, from, tid, &Request::Read { address, len }, out),
        };
        encoded.expect("the NIC checked its requests, and replies have values of a packet");
        link.push_packet(packet.as_slice());
    }
}
