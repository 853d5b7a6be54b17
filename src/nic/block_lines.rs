//! Tracks the lines of blocks in traffic runs.
//!
//! A source may send a block to an address without knowing whether the previous block arrived
//! there. Lines of the previous block may still be in flight, and arrive among those of the new
//! block or after them. That is not a fault, and must neither count as one nor hide one. So the
//! target checks the number in each line. When a line of an earlier block overwrites a correct line
//! of the latest block, the target records that the correct line had arrived.

use std::collections::BTreeMap;

use super::memory::Memory;
use super::stamp::{Found, LINE, Stamp};

/// Index of an announced address, and index of a line in the block there.
pub(crate) type Line = (u16, u32);

/// The lines that have arrived at one address.
#[derive(Clone, Copy, Debug, Default)]
struct BlockState {
    /// The latest block of which a line has arrived.
    newest: u32,
    /// Lines of block `newest` that have arrived. Damaged lines count too, so that a damaged block
    /// also completes and is checked.
    came: u32,
    /// Whether the final line, which announces the complete block, arrived before other lines.
    is_awaited: bool,
}

/// The arrived and overwritten lines of one run's blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct LateLines {
    blocks: Box<[BlockState]>,
    lines: u32,
    /// Overwritten correct lines, with the number of their block.
    overwritten: BTreeMap<Line, u32>,
}

impl LateLines {
    /// Tracks `addresses` addresses, each for blocks of `size` bytes.
    pub(crate) fn new(addresses: usize, size: u32) -> Self {
        Self {
            blocks: vec![BlockState::default(); addresses].into_boxed_slice(),
            lines: size.div_ceil(LINE as u32),
            overwritten: BTreeMap::new(),
        }
    }

    /// Handles line `line` of a block before its `data`, at most [`LINE`] bytes, is written to
    /// `address` of `memory`. A line too short to hold a number comes from a source that never
    /// overwrites a block of unknown fate. Returns the block's number if its final line had arrived
    /// earlier and this line completes the block.
    #[inline]
    pub(crate) fn comes(
        &mut self,
        stamp: Stamp,
        (address, line): (u64, Line),
        data: &[u8],
        memory: &Memory,
    ) -> Option<u32> {
        debug_assert!(data.len() <= LINE, "a block arrives line by line");
        let block = self.blocks.get_mut(usize::from(line.0))?;
        match Stamp::claimed_number(block.newest, data) {
            Some(number) if number != block.newest => {
                self.of_another(stamp, (address, line), number, data, memory);
            }
            _ => {
                block.came = block.came.saturating_add(1);
                if !self.overwritten.is_empty() {
                    self.overwritten.remove(&line);
                }
            }
        }
        let block = &mut self.blocks[usize::from(line.0)];
        let is_there = block.is_awaited && block.came >= self.lines;
        // Report the block once: late lines of earlier blocks may follow.
        block.is_awaited &= !is_there;
        is_there.then_some(block.newest)
    }

    /// Handles the final line of block `number`, which announces the complete block. Returns
    /// whether all lines have arrived; if not, [`comes`](Self::comes) reports the completion later.
    pub(crate) fn is_whole(&mut self, index: u16, number: u32) -> bool {
        match self.blocks.get_mut(usize::from(index)) {
            Some(block) if block.newest == number => {
                block.is_awaited = block.came < self.lines;
                !block.is_awaited
            }
            // Return true, so that the caller judges the block and finds that it arrived late.
            _ => true,
        }
    }

    /// Handles a line of a block other than the latest.
    #[cold]
    fn of_another(
        &mut self,
        stamp: Stamp,
        (address, line): (u64, Line),
        number: u32,
        data: &[u8],
        memory: &Memory,
    ) {
        let block = &mut self.blocks[usize::from(line.0)];
        if !stamp.matches(address, number, data) {
            let is_damaged = !stamp.is_of_another_run(address, data);
            block.came = block.came.saturating_add(is_damaged.into());
            return;
        }
        let newest = block.newest;
        if is_before(newest, number) {
            *block = BlockState {
                newest: number,
                came: 1,
                is_awaited: false,
            };
            self.overwritten.remove(&line);
            return;
        }
        let mut before = [0; LINE];
        let before = &mut before[..data.len().min(LINE)];
        if memory.read(address, before).is_ok() && stamp.matches(address, newest, before) {
            self.overwritten.insert(line, newest);
        }
    }

    /// Whether lines of a block later than `number` have arrived at the address, so that block
    /// `number` can no longer be judged.
    pub(crate) fn is_outdated(&self, index: u16, number: u32) -> bool {
        let block = self.blocks.get(usize::from(index));
        block.is_some_and(|block| is_before(number, block.newest))
    }

    /// Whether `line` of block `number` had arrived before a line of an earlier block overwrote it.
    pub(crate) fn has_been_there(&self, line: Line, number: u32) -> bool {
        self.overwritten.get(&line) == Some(&number)
    }
}

/// Sequence comparison modulo 2^32: a number is before the 2^31 - 1 numbers that follow it.
const fn is_before(number: u32, other: u32) -> bool {
    number.wrapping_sub(other) > 1 << 31
}

/// Classifies the `size` bytes at `local`, which were read from `address` of the target's memory.
pub fn block_found(memory: &Memory, local: u64, address: u64, size: u32) -> Found {
    let mut line = [0; LINE];
    let size = u64::from(size);
    let of_line = |at: u64| {
        let line = &mut line[..(size - at).min(LINE as u64) as usize];
        match memory.read(local + at, line) {
            Ok(()) => Found::of(address + at, line),
            Err(_) => Found::Wrong,
        }
    };
    let lines = (0..size).step_by(LINE).map(of_line);
    lines.max().unwrap_or(Found::Whole)
}

/// Counts the lines of another run, and the lines of another block that overwrote a line which
/// `was_there`. Returns `None` if any other line is wrong.
pub(crate) fn wrong_lines(
    memory: &Memory,
    address: u64,
    size: u32,
    (stamp, number): (Stamp, u32),
    was_there: impl Fn(u32) -> bool,
) -> Option<u64> {
    let (mut found, mut wrong) = ([0; LINE], 0);
    let (size, mut lines) = (u64::from(size), stamp.lines(address, number));
    for at in (0..size).step_by(LINE) {
        let expected = lines.next_line();
        let found = &mut found[..(size - at).min(LINE as u64) as usize];
        memory.read(address + at, found).ok()?;
        if *found != expected[..found.len()] {
            let line = (at / LINE as u64) as u32;
            let late = || was_there(line) && stamp.is_of_any_number(address + at, found);
            if !stamp.is_of_another_run(address + at, found) && !late() {
                return None;
            }
            wrong += 1;
        }
    }
    Some(wrong)
}
