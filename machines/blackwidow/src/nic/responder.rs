//! The responding side: executes requests of other processors in the local memory.

use phitwire_framing::yarc::memory::{Request, Response, Status, decode_request, encode_response};
use phitwire_framing::yarc::packet::PacketBuf;
use phitwire_framing::yarc::phit::Phit;

use super::counters::NicCounters;
use phitwire::nic::checker::{ANNOUNCE_ADDRESS, Announced, Announcement, Checker, Purpose};
use phitwire::nic::is_probed;
use phitwire::nic::memory::Memory;
use phitwire::nic::programs::{Programs, is_registered};
use phitwire::nic::traffic_spec::Operation;

/// The local memory, and the traffic runs that write to it.
#[derive(Debug)]
pub(crate) struct Responder {
    processor: u16,
    pub memory: Memory,
    pub programs: Programs,
    pub checker: Checker,
    pub counters: NicCounters,
}

impl Responder {
    pub(crate) fn new(processor: u16, memory_bytes: u64) -> Self {
        Self {
            processor,
            memory: Memory::new(memory_bytes),
            programs: Programs::default(),
            checker: Checker::default(),
            counters: NicCounters::default(),
        }
    }

    /// Executes the request in `packet` and writes the response to `out`. Returns false, after
    /// counting the packet, if it is not a request to this processor.
    #[inline]
    pub(crate) fn serve(&mut self, packet: &[Phit], out: &mut PacketBuf) -> bool {
        let asked = match decode_request(packet) {
            Ok(asked) => asked,
            Err(error) => {
                self.counters.malformed(error);
                return false;
            }
        };
        if asked.dest != self.processor {
            self.counters.discard_misrouted += 1;
            return false;
        }
        let (source, tid) = (asked.source, asked.tid);
        let status = Status::Done;
        let done = Response::WriteDone { tid, status };
        let served = match asked.request {
            Request::Write {
                address: ANNOUNCE_ADDRESS,
                data,
                len,
            } => {
                let announced = self.announced(source, &data[..usize::from(len)]);
                announced.map(|()| done)
            }
            // Discard the payload of a probe.
            Request::Write { address, .. } if is_probed(address) => Ok(done),
            Request::Write { address, data, len } => {
                let written = self.write(source, address, &data[..usize::from(len)]);
                written.map(|()| done)
            }
            Request::Read { address, len } => {
                let read = self.read(address, len);
                read.map(|data| Response::ReadData { tid, len, data })
            }
        };
        let response = served.unwrap_or_else(|status| Response::Refused { tid, status });
        match encode_response(source, &response, out) {
            Ok(()) => true,
            Err(_) => {
                unreachable!("source, tid and length come from a packet, so they fit into one")
            }
        }
    }

    #[inline]
    fn write(&mut self, source: u16, address: u64, data: &[u8]) -> Result<(), Status> {
        let is_program_s = is_registered(address);
        let is_written = match is_program_s {
            true => self.programs.write(address, data),
            false => self.memory.write(address, data).is_ok(),
        };
        if !is_written {
            self.counters.refused_out_of_range += 1;
            return Err(Status::OutOfRange);
        }
        self.counters.writes_served += 1;
        if !is_program_s {
            self.checker.put(source.into(), address, data);
        }
        Ok(())
    }

    fn read(&mut self, address: u64, len: u8) -> Result<[u8; 32], Status> {
        let mut data = [0; 32];
        let out = &mut data[..usize::from(len)];
        let is_read = match is_registered(address) {
            true => self.programs.read(address, out),
            false => self.memory.read(address, out).is_ok(),
        };
        if !is_read {
            self.counters.refused_out_of_range += 1;
            return Err(Status::OutOfRange);
        }
        self.counters.reads_served += 1;
        Ok(data)
    }

    #[cold]
    fn announced(&mut self, source: u16, data: &[u8]) -> Result<(), Status> {
        let parsed = Announcement::parse(data);
        // Reject runs with operations that this machine lacks, although other machines have them.
        let ours = parsed.filter(|(_, told)| told.op != Operation::Amo && told.size <= 32);
        let Some((purpose, announcement)) = ours else {
            self.counters.refused_unsupported += 1;
            return Err(Status::Unsupported);
        };
        let (processor, memory) = (self.processor, &mut self.memory);
        let checker = &mut self.checker;
        let announced = match purpose {
            Purpose::Begin => {
                checker.announce(source.into(), processor.into(), announcement, memory)
            }
            Purpose::Ask => checker.knows(source.into(), &announcement),
        };
        let (counter, status) = match announced {
            Announced::Accepted => {
                self.counters.runs_announced += u64::from(purpose == Purpose::Begin);
                return Ok(());
            }
            Announced::OutOfRange => (&mut self.counters.refused_out_of_range, Status::OutOfRange),
            Announced::Outdated => (&mut self.counters.refused_outdated, Status::Busy),
            Announced::Full => (&mut self.counters.refused_busy, Status::Busy),
            Announced::Unknown => (&mut self.counters.refused_unknown_run, Status::Unsupported),
        };
        *counter += 1;
        Err(status)
    }
}
