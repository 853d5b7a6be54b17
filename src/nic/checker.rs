//! The target's side of a traffic run: checks that every message arrived once, undamaged and in
//! order.
//!
//! A source announces a run to each of its targets before the first message, with a write of 32
//! bytes to [`ANNOUNCE_ADDRESS`], which lies beyond every memory, or with a control request where
//! the machine has those. From then on, every write of that source to the announced addresses must
//! carry the next stamp for its address. The target remembers skipped numbers, so that it can
//! distinguish a duplicate from a message delivered after a later one. The latter is a misorder, or
//! no fault if each packet of the run chooses its path separately.
//!
//! A late message of another run of the same source identifies itself however old it is (see
//! [`stamp`](super::stamp)), and counts as stale, never as corrupted. For messages too short to
//! carry that identity, the target remembers the last runs. Run numbers grow, so a late
//! announcement cannot replace a newer one.
//!
//! Messages of an atomic run add one to the words at the announced addresses, which the
//! announcement sets to known values. So the words count the completed additions.
//!
//! A restarted target has an empty memory and knows no run. Zeros in its memory are not damage, but
//! zeros at a target that never restarted are. So a source whose gets or additions found zeros
//! [asks](Checker::knows) the target at the end whether it still knows the run.

use std::collections::VecDeque;

use super::block_lines::{LateLines, Line, wrong_lines};
use super::memory::Memory;
use super::sequence_tracker::{SequenceArrival, SequenceTracker};
use super::stamp::{LINE, Stamp, read_line};
use super::traffic_report::TrafficReport;
use super::traffic_spec::{
    MAX_ADDRESSES, MAX_BLOCK_SIZE, MAX_RUN, MAX_SIZE, MAX_WINDOW, NUMBERED_BYTES, Operation,
};

pub const ANNOUNCEMENT_BYTES: usize = 32;
/// Address of announcements: above every memory, within the 48 address bits.
pub const ANNOUNCE_ADDRESS: u64 = 1 << 47;
/// Bytes between two addresses of a run: the granularity of the hash (BlackWidow sec. 7.8.2), or a
/// block.
pub(crate) const fn stride_of(size: u32) -> u64 {
    if size <= STRIDE as u32 {
        STRIDE
    } else {
        (size as u64).next_multiple_of(STRIDE)
    }
}

pub(crate) const STRIDE: u64 = 64;

/// Flag in the operation byte: messages to one address may arrive in any order.
const ANY_ORDER: u8 = 0x80;
/// Upper bound on a run's additions to one word. A larger difference means corruption.
pub(crate) const MOST_ADDITIONS: u64 = 1 << 44;
const MAGIC: u32 = 0x5048_5452;
/// Offset of the purpose in an announcement.
const PURPOSE_AT: usize = 13;
/// Number of runs whose counts a target keeps; the oldest is discarded.
const KEPT_RUNS: usize = 16;
/// Number of finished runs per source that are remembered because their messages are shorter than
/// [`NUMBERED_BYTES`].
const KEPT_SHORT_RUNS: usize = 4;
/// Distinct sources: node ids have 18 bits.
const SOURCES: u32 = 1 << 18;
/// Maximum number of addresses checked per target over all sources: 16 MiB of counters.
const MAX_CHECKED: usize = 4 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    Begin = 0,
    /// Asks whether the target knows the run.
    Ask = 1,
}

/// Announcement of a run, which its source sends to each target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement {
    pub(crate) run: u64,
    pub(crate) nonce: u32,
    pub op: Operation,
    /// Whether messages to one address arrive in order.
    pub(crate) ordered: bool,
    pub size: u32,
    pub(crate) addresses: u16,
    /// First address; a multiple of [`STRIDE`].
    pub base: u64,
}

impl Announcement {
    pub(crate) fn emit(&self, purpose: Purpose) -> [u8; ANNOUNCEMENT_BYTES] {
        let mut out = [0; ANNOUNCEMENT_BYTES];
        out[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        out[4..8].copy_from_slice(&(self.run as u32).to_le_bytes());
        out[8..12].copy_from_slice(&self.nonce.to_le_bytes());
        out[12] = self.op as u8 | if self.ordered { 0 } else { ANY_ORDER };
        out[PURPOSE_AT] = purpose as u8;
        out[14..16].copy_from_slice(&self.addresses.to_le_bytes());
        out[16..24].copy_from_slice(&self.base.to_le_bytes());
        out[24..28].copy_from_slice(&self.size.to_le_bytes());
        out[28..32].copy_from_slice(&((self.run >> 32) as u32).to_le_bytes());
        out
    }

    /// Parses `data`; `None` if a field has a value that no source sends.
    pub fn parse(data: &[u8]) -> Option<(Purpose, Self)> {
        let data: &[u8; ANNOUNCEMENT_BYTES] = data.try_into().ok()?;
        let word =
            |at: usize| u32::from_le_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]]);
        let announcement = Self {
            run: u64::from(word(28)) << 32 | u64::from(word(4)),
            nonce: word(8),
            op: Operation::from_code(data[12] & !ANY_ORDER)?,
            ordered: data[12] & ANY_ORDER == 0,
            size: word(24),
            addresses: u16::from_le_bytes([data[14], data[15]]),
            base: u64::from(word(20)) << 32 | u64::from(word(16)),
        };
        let sound = word(0) == MAGIC
            && (1..=MAX_RUN).contains(&announcement.run)
            && (1..=MAX_BLOCK_SIZE).contains(&announcement.size)
            && (1..=MAX_ADDRESSES).contains(&announcement.addresses)
            && announcement.base.is_multiple_of(STRIDE);
        let purposes = [Purpose::Begin, Purpose::Ask];
        let purpose = purposes.get(usize::from(data[PURPOSE_AT]))?;
        sound.then_some((*purpose, announcement))
    }

    pub(crate) fn all_addresses(&self) -> impl Iterator<Item = u64> + use<> {
        let (base, stride) = (self.base, stride_of(self.size));
        (0..u64::from(self.addresses)).map(move |n| base + n * stride)
    }

    fn is_block(&self) -> bool {
        self.size > MAX_SIZE
    }

    /// Bytes from the first address to the end of the last block.
    pub fn bytes(&self) -> u64 {
        u64::from(self.addresses) * stride_of(self.size)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announced {
    Accepted,
    /// The addresses exceed this memory.
    OutOfRange,
    /// The target already checks its maximum of addresses.
    Full,
    /// A later run of the same source was already announced.
    Outdated,
    /// Reply to [`Purpose::Ask`] if the target does not know the run.
    Unknown,
}

/// The run of one source.
#[derive(Clone, Debug)]
struct Flow {
    announcement: Announcement,
    stamp: Stamp,
    /// Puts: the numbers that have arrived at each address.
    turns: SequenceTracker,
    /// Blocks: the lines that late blocks have overwritten.
    late: LateLines,
    counts: usize,
    /// Earlier runs whose messages are too short to identify their run, newest first.
    short: VecDeque<ShortRun>,
}

/// A finished run whose messages are shorter than a stamp.
#[derive(Clone, Debug)]
struct ShortRun {
    announcement: Announcement,
    stamp: Stamp,
    turns: SequenceTracker,
}

impl Flow {
    /// The short runs that the next flow of this source must remember.
    fn into_short(self) -> VecDeque<ShortRun> {
        let Self {
            announcement,
            stamp,
            turns,
            mut short,
            ..
        } = self;
        if announcement.op == Operation::Put && announcement.size < NUMBERED_BYTES {
            short.truncate(KEPT_SHORT_RUNS - 1);
            short.push_front(ShortRun {
                announcement,
                stamp,
                turns,
            });
        }
        debug_assert!(short.len() <= KEPT_SHORT_RUNS, "the oldest are forgotten");
        short
    }

    /// Whether `data`, which does not match this run, is an undamaged message of an earlier one.
    #[cold]
    fn is_stale(&self, address: u64, data: &[u8]) -> bool {
        self.stamp.is_of_another_run(address, data)
            || self.short.iter().any(|old| old.has_sent(address, data))
    }
}

impl Flow {
    /// The address index and line index of `data` at `address`, if the run writes blocks.
    #[inline]
    fn line_of(&self, address: u64, data: &[u8]) -> Option<Line> {
        let offset = address.wrapping_sub(self.announcement.base);
        let is_line = offset.is_multiple_of(LINE as u64) && data.len() <= LINE;
        let writes = self.announcement.is_block() && self.announcement.op == Operation::Put;
        if !writes || offset >= self.announcement.bytes() || !is_line {
            return None;
        }
        let stride = stride_of(self.announcement.size) as u32;
        let (index, at) = (offset / u64::from(stride), offset % u64::from(stride));
        Some((index as u16, (at / LINE as u64) as u32))
    }
}

impl ShortRun {
    fn has_sent(&self, address: u64, data: &[u8]) -> bool {
        let index = address.wrapping_sub(self.announcement.base) / STRIDE;
        let next = self.turns.next(index);
        let number = |next| number_of(self.stamp, self.announcement.size, address, next, data);
        next.is_some_and(|next| {
            data.len() == self.announcement.size as usize && self.stamp.matches(address, next, data)
                || number(next).is_some()
        })
    }
}

/// All runs that target a NIC.
#[derive(Clone, Debug, Default)]
pub struct Checker {
    /// Flows by source number; grows to the highest source that has announced a run.
    flows: Vec<Option<Box<Flow>>>,
    /// Counts of each run at this target.
    runs: Vec<TrafficReport>,
    checked: usize,
    stragglers: u64,
    /// The last rejected run and the later run of the same source that replaced it.
    outdated: Option<(u64, u64)>,
}

impl Checker {
    /// Messages and announcements that arrived after their source had announced a later run.
    pub fn stragglers(&self) -> u64 {
        self.stragglers
    }

    pub(crate) fn latest_run(&self) -> Option<u64> {
        self.runs.last().map(|counts| counts.run)
    }

    /// Adds the counts of `run` to `report`; false if the run is unknown. `read` returns the 64-bit
    /// word at a memory address.
    pub(crate) fn report(
        &self,
        run: u64,
        report: &mut TrafficReport,
        mut read: impl FnMut(u64) -> u64,
    ) -> bool {
        let outdated = self.outdated.filter(|(refused, _)| *refused == run);
        report.outdated_by = outdated.map_or(0, |(_, latest)| latest);
        let Some(index) = self.runs.iter().position(|counts| counts.run == run) else {
            return outdated.is_some();
        };
        let mut counts = self.runs[index].clone();
        for flow in self.flows() {
            if flow.counts == index && flow.announcement.op == Operation::Amo {
                counts.add_atomics(flow, &mut read);
            }
        }
        report.merge(&counts);
        true
    }

    /// Handles the announcement that `source` sent to `target`, which owns `memory`. Repeating an
    /// announcement has no effect.
    pub fn announce(
        &mut self,
        source: u32,
        target: u32,
        announcement: Announcement,
        memory: &mut Memory,
    ) -> Announced {
        let end = announcement.base.checked_add(announcement.bytes());
        if end.is_none_or(|end| end > memory.size()) || source >= SOURCES {
            return Announced::OutOfRange;
        }
        let index = source as usize;
        if self.flows.len() <= index {
            self.flows.resize(index + 1, None);
        }
        let old = self.flows[index].as_deref();
        if old.is_some_and(|flow| flow.announcement == announcement) {
            return Announced::Accepted;
        }
        if let Some(flow) = old.filter(|flow| announcement.run < flow.announcement.run) {
            self.stragglers += 1;
            let latest = flow.announcement.run;
            let before = self.outdated.filter(|(run, _)| *run == announcement.run);
            let latest = before.map_or(latest, |(_, before)| before.max(latest));
            self.outdated = Some((announcement.run, latest));
            return Announced::Outdated;
        }
        let checked = match announcement.op {
            Operation::Put => usize::from(announcement.addresses),
            Operation::Get | Operation::Amo => 0,
        };
        let freed = old.map_or(0, |flow| flow.turns.len());
        debug_assert!(freed <= self.checked, "all addresses of flows are counted");
        if self.checked - freed + checked > MAX_CHECKED {
            return Announced::Full;
        }
        if let Some(flow) = old.filter(|flow| flow.announcement.op == Operation::Amo) {
            self.runs[flow.counts].add_atomics(flow, |at| word_at(memory, at));
        }
        let old = self.flows[index].take();
        self.checked -= freed;
        let blocks = if announcement.is_block() { checked } else { 0 };
        let stamp = Stamp::of_run(announcement.run, announcement.nonce, source, target);
        match announcement.op {
            Operation::Put => {}
            Operation::Get => fill(memory, &announcement),
            Operation::Amo => set_words(memory, &announcement, stamp),
        }
        // This may discard the flows of the oldest run, but not the old flow of this source, which
        // was already removed.
        let counts = self.counts_of(announcement.run);
        self.checked += checked;
        self.flows[index] = Some(Box::new(Flow {
            announcement,
            stamp,
            turns: SequenceTracker::new(checked),
            late: LateLines::new(blocks, announcement.size),
            counts,
            short: old.map_or_else(VecDeque::new, |flow| flow.into_short()),
        }));
        debug_assert_eq!(self.checked, self.addresses_checked());
        debug_assert!(self.checked <= MAX_CHECKED, "an announcement was accepted");
        debug_assert!(
            self.flows().all(|flow| flow.counts < self.runs.len()),
            "every flow belongs to a remembered run"
        );
        Announced::Accepted
    }

    fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.flows.iter().flatten().map(|flow| &**flow)
    }

    fn addresses_checked(&self) -> usize {
        self.flows().map(|flow| flow.turns.len()).sum()
    }

    /// Answers whether the run that `source` announced is known. If so, the target has not
    /// restarted since, and its memory still holds what was written.
    pub fn knows(&self, source: u32, announcement: &Announcement) -> Announced {
        let flow = self.flows.get(source as usize);
        match flow.and_then(Option::as_deref) {
            Some(flow) if flow.announcement == *announcement => Announced::Accepted,
            _ => Announced::Unknown,
        }
    }

    /// Returns the index of the counts of `run`, which are created if missing. When full, discards
    /// the counts and flows of the oldest run.
    fn counts_of(&mut self, run: u64) -> usize {
        if let Some(index) = self.runs.iter().position(|counts| counts.run == run) {
            return index;
        }
        if self.runs.len() == KEPT_RUNS {
            self.runs.remove(0);
            for slot in &mut self.flows {
                match slot {
                    Some(flow) if flow.counts == 0 => {
                        self.checked -= flow.turns.len();
                        *slot = None;
                    }
                    Some(flow) => flow.counts -= 1,
                    None => {}
                }
            }
        }
        self.runs.push(TrafficReport {
            run,
            ..TrafficReport::default()
        });
        debug_assert!(self.runs.len() <= KEPT_RUNS, "the oldest is forgotten");
        self.runs.len() - 1
    }

    /// Judges a write of `data` to `address` from `source`. Ignores writes outside announced runs.
    #[inline]
    pub fn put(&mut self, source: u32, address: u64, data: &[u8]) {
        let Some(Some(flow)) = self.flows.get_mut(source as usize) else {
            return;
        };
        let index = address.wrapping_sub(flow.announcement.base) / STRIDE;
        let Some(next) = flow.turns.next(index) else {
            return;
        };
        if flow.announcement.is_block() {
            return;
        }
        let counts = &mut self.runs[flow.counts];
        let right_size = data.len() == flow.announcement.size as usize;
        if right_size && flow.stamp.matches(address, next, data) {
            flow.turns.advance(index);
            counts.delivered += 1;
            return;
        }
        match number_of(flow.stamp, flow.announcement.size, address, next, data) {
            Some(number) => {
                let turn = flow.turns.take(index, number);
                counts.judge(turn, flow.announcement.ordered);
            }
            None if flow.is_stale(address, data) => {
                self.stragglers += 1;
                counts.stale += 1;
            }
            None => counts.corrupted += 1,
        }
    }
}

impl Checker {
    /// Handles a write of `data` from `source` to `address` before it is made in `memory`, because
    /// blocks need to know which bytes it overwrites. If this is the last missing line of a block
    /// whose final line arrived earlier, returns the address index and the number of that block, to
    /// be [judged](Self::block) after the write.
    #[inline]
    pub fn line(
        &mut self,
        source: u32,
        address: u64,
        data: &[u8],
        memory: &Memory,
    ) -> Option<(u32, u32)> {
        let flow = self.flows.get_mut(source as usize)?.as_deref_mut()?;
        let line = flow.line_of(address, data)?;
        let number = flow.late.comes(flow.stamp, (address, line), data, memory)?;
        Some((line.0.into(), number))
    }

    /// Handles the final line, `data`, of a block after it was written to `address` of `memory`,
    /// and judges the block if all other lines have arrived. Returns false if `source` has no block
    /// with a line at `address`.
    pub fn last_line(&mut self, source: u32, address: u64, data: &[u8], memory: &Memory) -> bool {
        let Some(Some(flow)) = self.flows.get_mut(source as usize) else {
            return false;
        };
        let Some((index, _)) = flow.line_of(address, data) else {
            return false;
        };
        let next = flow.turns.next(index.into()).unwrap_or(0);
        let number = Stamp::claimed_number(next, data);
        let counts = &mut self.runs[flow.counts];
        match number.filter(|&number| flow.stamp.matches(address, number, data)) {
            Some(number) if flow.late.is_whole(index, number) => {
                self.block(source, index.into(), number, memory);
            }
            Some(_) => {}
            None if flow.stamp.is_of_another_run(address, data) => {
                self.stragglers += 1;
                counts.stale += 1;
            }
            None => counts.corrupted += 1,
        }
        true
    }

    /// Judges block `number` from `source`, complete in `memory`; `index` is that of its address
    /// among the announced ones. Skips a block that the source has overwritten without knowing its
    /// fate: the source does not rely on it.
    pub fn block(&mut self, source: u32, index: u32, number: u32, memory: &Memory) {
        let Some(Some(flow)) = self.flows.get_mut(source as usize) else {
            return;
        };
        let index = u64::from(index);
        if !flow.announcement.is_block() || flow.turns.next(index).is_none() {
            return;
        }
        let size = flow.announcement.size;
        let address = flow.announcement.base + index * stride_of(size);
        let counts = &mut self.runs[flow.counts];
        if flow.late.is_outdated(index as u16, number) {
            self.stragglers += 1;
            counts.stale += 1;
            return;
        }
        let was_there = |line| flow.late.has_been_there((index as u16, line), number);
        let Some(stale) = wrong_lines(memory, address, size, (flow.stamp, number), was_there)
        else {
            counts.corrupted += 1;
            return;
        };
        // Lines that another run or an earlier block has overwritten since are not corrupted: they
        // did arrive.
        self.stragglers += stale;
        counts.stale += stale;
        let turn = flow.turns.take(index, number);
        counts.judge(turn, flow.announcement.ordered);
    }
}

/// Returns the sequence number of an undamaged message of `size` bytes that is not the expected
/// one.
#[cold]
fn number_of(stamp: Stamp, size: u32, address: u64, next: u32, data: &[u8]) -> Option<u32> {
    if data.len() != size as usize {
        return None;
    }
    if let Some(number) = Stamp::claimed_number(next, data) {
        return stamp.matches(address, number, data).then_some(number);
    }
    // A folded stamp does not contain its number, so try the numbers around the expected one,
    // nearest first. A source's whole window may be missing, but the shortest stamps collide too
    // often to search that far.
    let reach = if data.len() < 4 { 32 } else { MAX_WINDOW };
    (1..=reach)
        .flat_map(|n| [next.wrapping_add(n), next.wrapping_sub(n)])
        .find(|&number| stamp.matches(address, number, data))
}

impl TrafficReport {
    /// Counts an undamaged message by the arrival order of its number.
    fn judge(&mut self, turn: SequenceArrival, ordered: bool) {
        match turn {
            SequenceArrival::InOrder => self.delivered += 1,
            SequenceArrival::Ahead(skipped) => {
                self.missing += u64::from(skipped);
                self.delivered += 1;
            }
            SequenceArrival::Late => {
                self.misordered += u64::from(ordered);
                self.overtaken += u64::from(!ordered);
                self.delivered += 1;
                self.missing = self.missing.saturating_sub(1);
            }
            // A duplicate, or a number too old to be remembered.
            SequenceArrival::Again => self.duplicated += 1,
        }
    }

    /// Counts the additions of `flow` from the current values of its words.
    fn add_atomics(&mut self, flow: &Flow, mut read: impl FnMut(u64) -> u64) {
        for address in flow.announcement.all_addresses() {
            let count = read(address).wrapping_sub(flow.stamp.first_count(address));
            if count <= MOST_ADDITIONS {
                self.delivered += count;
            } else {
                self.corrupted += 1;
            }
        }
    }
}

fn word_at(memory: &Memory, address: u64) -> u64 {
    let mut word = [0; 8];
    memory
        .read(address, &mut word)
        .expect("the range was checked");
    u64::from_le_bytes(word)
}

/// Sets the announced words to the start values of an atomic run.
fn set_words(memory: &mut Memory, announcement: &Announcement, stamp: Stamp) {
    for address in announcement.all_addresses() {
        memory
            .write(address, &stamp.first_count(address).to_le_bytes())
            .expect("the range was checked");
    }
}

/// Fills the announced addresses with the pattern that gets expect.
fn fill(memory: &mut Memory, announcement: &Announcement) {
    for address in announcement.all_addresses() {
        for at in (0..stride_of(announcement.size)).step_by(LINE) {
            memory
                .write(address + at, &read_line(address + at))
                .expect("the range was checked");
        }
    }
}

#[cfg(test)]
#[path = "checker_tests.rs"]
mod tests;
