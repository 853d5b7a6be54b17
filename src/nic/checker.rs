//! The target's side of a traffic run: was everything delivered, once, whole and in order?
//!
//! A source announces a run to each of its targets by a write of 32 bytes to
//! [`ANNOUNCE_ADDRESS`], an address that no memory has, before it sends the first message. From
//! then on the target demands of every write of that source into the announced addresses that it
//! carries the stamp that is exactly the next of its address. Which of the last 32 numbers have
//! been seen is remembered per address, so that a second delivery (duplicate) and a delivery after
//! a later one (misorder) are told apart.

use super::MAX_PROCESSOR;
use super::memory::Memory;
use super::stamp::Stamp;
use super::traffic_report::TrafficReport;
use super::traffic_spec::{MAX_ADDRESSES, MAX_WINDOW, Operation};

/// Where a run is announced: above every memory, within the 48 address bits.
pub const ANNOUNCE_ADDRESS: u64 = 1 << 47;
/// Bytes between two addresses of a run: one value of the hash bits (paper, section 7.8.2).
pub(crate) const STRIDE: u64 = 64;

const MAGIC: u32 = 0x5048_5452;
/// Runs whose counts a target keeps; the oldest goes.
const KEPT_RUNS: usize = 16;
/// Addresses checked per target over all sources: 32 MiB of records.
const MAX_CHECKED: usize = 4 << 20;

/// What a source tells a target before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Announcement {
    pub run: u32,
    pub nonce: u32,
    pub op: Operation,
    pub size: u8,
    pub addresses: u16,
    /// First address; a multiple of [`STRIDE`].
    pub base: u64,
}

impl Announcement {
    pub(crate) fn emit(&self) -> [u8; 32] {
        let mut out = [0; 32];
        out[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        out[4..8].copy_from_slice(&self.run.to_le_bytes());
        out[8..12].copy_from_slice(&self.nonce.to_le_bytes());
        out[12] = u8::from(self.op == Operation::Get);
        out[13] = self.size;
        out[14..16].copy_from_slice(&self.addresses.to_le_bytes());
        out[16..24].copy_from_slice(&self.base.to_le_bytes());
        out
    }

    /// The announcement in `data`, or `None` when any field of it is not one that a source sends.
    pub(crate) fn parse(data: &[u8]) -> Option<Self> {
        let data: &[u8; 32] = data.try_into().ok()?;
        let word =
            |at: usize| u32::from_le_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]]);
        let announcement = Self {
            run: word(4),
            nonce: word(8),
            op: match data[12] {
                0 => Operation::Put,
                1 => Operation::Get,
                _ => return None,
            },
            size: data[13],
            addresses: u16::from_le_bytes([data[14], data[15]]),
            base: u64::from(word(20)) << 32 | u64::from(word(16)),
        };
        let sound = word(0) == MAGIC
            && announcement.run != 0
            && (1..=32).contains(&announcement.size)
            && (1..=MAX_ADDRESSES).contains(&announcement.addresses)
            && announcement.base.is_multiple_of(STRIDE)
            && data[24..] == [0; 8];
        sound.then_some(announcement)
    }

    /// Bytes from the first address to the end of the last block.
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.addresses) * STRIDE
    }
}

/// What became of an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Announced {
    /// Messages may come.
    Accepted,
    /// The addresses are not in this memory.
    OutOfRange,
    /// The target checks as many addresses as it can.
    Full,
}

#[derive(Clone, Copy, Debug, Default)]
struct Record {
    /// The number that must come next.
    next: u32,
    /// Bit `n`: number `next - 1 - n` was delivered.
    seen: u32,
}

/// One source's run.
#[derive(Clone, Debug)]
struct Flow {
    announcement: Announcement,
    stamp: Stamp,
    /// The run before it: its stragglers are late, not corrupt.
    previous: Option<Stamp>,
    records: Box<[Record]>,
    counts: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct RunCounts {
    run: u32,
    delivered: u64,
    corrupted: u64,
    duplicated: u64,
    misordered: u64,
    missing: u64,
}

/// All runs that a network interface is a target of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checker {
    /// By source processor; grows with the highest that ever announced a run.
    flows: Vec<Option<Box<Flow>>>,
    runs: Vec<RunCounts>,
    checked: usize,
    stragglers: u64,
}

impl Checker {
    /// Messages of a run that its source had already replaced by the next.
    pub(crate) fn stragglers(&self) -> u64 {
        self.stragglers
    }

    /// The run announced last.
    pub(crate) fn latest_run(&self) -> Option<u32> {
        self.runs.last().map(|counts| counts.run)
    }

    /// Adds what is counted of `run` to `report`; false when nothing is known of it.
    pub(crate) fn report(&self, run: u32, report: &mut TrafficReport) -> bool {
        let Some(counts) = self.runs.iter().find(|counts| counts.run == run) else {
            return false;
        };
        report.delivered += counts.delivered;
        report.corrupted += counts.corrupted;
        report.duplicated += counts.duplicated;
        report.misordered += counts.misordered;
        report.missing += counts.missing;
        true
    }

    /// Takes the announcement that `source` sent to `target`, which has `memory`. The same
    /// announcement again (its response was late) changes nothing.
    pub(crate) fn announce(
        &mut self,
        source: u16,
        target: u16,
        announcement: Announcement,
        memory: &mut Memory,
    ) -> Announced {
        let end = announcement.base.checked_add(announcement.bytes());
        if end.is_none_or(|end| end > memory.size()) || source > MAX_PROCESSOR {
            return Announced::OutOfRange;
        }
        let index = usize::from(source);
        if self.flows.len() <= index {
            self.flows.resize(index + 1, None);
        }
        let old = self.flows[index].as_deref();
        if old.is_some_and(|flow| flow.announcement == announcement) {
            return Announced::Accepted;
        }
        let records = match announcement.op {
            Operation::Put => usize::from(announcement.addresses),
            Operation::Get => 0,
        };
        let freed = old.map_or(0, |flow| flow.records.len());
        if self.checked - freed + records > MAX_CHECKED {
            return Announced::Full;
        }
        let previous = old.map(|flow| flow.stamp);
        self.checked = self.checked - freed + records;
        if announcement.op == Operation::Get {
            fill(memory, &announcement);
        }
        let counts = self.counts_of(announcement.run);
        self.flows[index] = Some(Box::new(Flow {
            announcement,
            stamp: Stamp::of_run(announcement.run, announcement.nonce, source, target),
            previous,
            records: vec![Record::default(); records].into_boxed_slice(),
            counts,
        }));
        Announced::Accepted
    }

    /// The index of the counts of `run`, new if need be. When there are too many runs, the counts
    /// of the oldest are given up, and so are its flows.
    fn counts_of(&mut self, run: u32) -> usize {
        if let Some(index) = self.runs.iter().position(|counts| counts.run == run) {
            return index;
        }
        if self.runs.len() == KEPT_RUNS {
            self.runs.remove(0);
            for slot in &mut self.flows {
                match slot {
                    Some(flow) if flow.counts == 0 => {
                        self.checked -= flow.records.len();
                        *slot = None;
                    }
                    Some(flow) => flow.counts -= 1,
                    None => {}
                }
            }
        }
        self.runs.push(RunCounts {
            run,
            ..RunCounts::default()
        });
        self.runs.len() - 1
    }

    /// Judges a write of `data` to `address` that came from `source`. Writes that belong to no
    /// announced run are none of the checker's business.
    #[inline]
    pub(crate) fn put(&mut self, source: u16, address: u64, data: &[u8]) {
        let Some(Some(flow)) = self.flows.get_mut(usize::from(source)) else {
            return;
        };
        let offset = address.wrapping_sub(flow.announcement.base);
        let Some(record) = flow.records.get_mut((offset / STRIDE) as usize) else {
            return;
        };
        let counts = &mut self.runs[flow.counts];
        let right_size = data.len() == usize::from(flow.announcement.size);
        if right_size && flow.stamp.matches(address, record.next, data) {
            record.next = record.next.wrapping_add(1);
            record.seen = record.seen << 1 | 1;
            counts.delivered += 1;
            return;
        }
        match number_of(flow, address, data) {
            Some(number) => counts.judge(&mut flow.records[(offset / STRIDE) as usize], number),
            None if flow
                .previous
                .is_some_and(|stamp| belongs(stamp, address, data)) =>
            {
                self.stragglers += 1;
            }
            None => counts.corrupted += 1,
        }
    }
}

/// The sequence number of a message that is not the one expected, if it is a whole message.
#[cold]
fn number_of(flow: &Flow, address: u64, data: &[u8]) -> Option<u32> {
    if data.len() != usize::from(flow.announcement.size) {
        return None;
    }
    if let Some(number) = claimed_number(data) {
        return flow.stamp.matches(address, number, data).then_some(number);
    }
    // A folded stamp does not tell its number: try those around the expected one, nearest first. As many
    // messages may be missing as a source has outstanding, but the shortest stamps are the same too
    // often to look so far.
    let reach = if data.len() < 4 { 32 } else { MAX_WINDOW };
    let offset = address.wrapping_sub(flow.announcement.base);
    let next = flow.records[(offset / STRIDE) as usize].next;
    (1..=reach)
        .flat_map(|n| [next.wrapping_add(n), next.wrapping_sub(n)])
        .find(|&number| flow.stamp.matches(address, number, data))
}

fn belongs(stamp: Stamp, address: u64, data: &[u8]) -> bool {
    claimed_number(data).is_some_and(|number| stamp.matches(address, number, data))
}

/// The number that an unfolded stamp claims to have.
fn claimed_number(data: &[u8]) -> Option<u32> {
    let word = data.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*word) as u32)
}

impl RunCounts {
    /// Counts the whole message `number` where another was expected.
    fn judge(&mut self, record: &mut Record, number: u32) {
        let ahead = number.wrapping_sub(record.next) as i32;
        if ahead >= 0 {
            self.missing += ahead as u64;
            self.delivered += 1;
            record.seen = record.seen.checked_shl(ahead as u32 + 1).unwrap_or(0) | 1;
            record.next = number.wrapping_add(1);
            return;
        }
        let behind = ahead.unsigned_abs() - 1;
        if behind < 32 && record.seen >> behind & 1 == 0 {
            record.seen |= 1 << behind;
            self.misordered += 1;
            self.delivered += 1;
            self.missing = self.missing.saturating_sub(1);
        } else {
            // Older than the 32 remembered: taken for a second delivery.
            self.duplicated += 1;
        }
    }
}

/// Fills the announced addresses with the pattern that gets expect.
fn fill(memory: &mut Memory, announcement: &Announcement) {
    let mut line = [0; 32];
    for n in 0..u64::from(announcement.addresses) {
        let address = announcement.base + n * STRIDE;
        Stamp::of_memory().fill(address, 0, &mut line, 32);
        memory
            .write(address, &line)
            .expect("the range has been checked");
    }
}

#[cfg(test)]
#[path = "checker_tests.rs"]
mod tests;
