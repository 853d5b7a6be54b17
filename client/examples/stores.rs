//! Loads and stores, which the NICs of all machines support. Each program stores a line into the
//! memory of every other, followed by a flag on which the other waits, then loads its line back. If
//! the NIC has atomic operations, it also adds to a common word.
//!
//!     cargo run --example stores -- --door PATH PATH...

pub mod common;

use common::{Outcome, Program};
use phitwire_client::door::{AtomicOp, Local};
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

/// Length of a line in bytes, which fits into every put. Its flag follows at `FLAG`.
const LINE: u64 = 32;
/// Distance between the slots of programs.
const SLOT_BYTES: u64 = 128;
const FLAG: u64 = 64;
/// Offset of the common word at the first program, and of the destination of loads.
const SUM: u64 = 64 << 10;
const BACK: u64 = 80 << 10;
/// Bytes of data that each program needs.
pub const DATA_BYTES: u64 = 96 << 10;
const PATIENCE: Duration = Duration::from_secs(60);
const ADDITIONS: u64 = 100;

fn line(from: usize, to: usize) -> [u8; LINE as usize] {
    std::array::from_fn(|n| (n * 7 + from * 31 + to * 3 + 1) as u8)
}

pub fn program(this: &mut Program) -> Outcome {
    let part = Local {
        offset: 0,
        bytes: BACK,
    };
    let handle = this.register(part)?;
    let handles = this.agree(handle.into())?;
    let (rank, count) = (this.rank, this.all.len());
    let others: Vec<_> = (0..count).filter(|&other| other != rank).collect();
    let own = rank as u64 * SLOT_BYTES;
    for &to in &others {
        let there = |offset| this.remote(to, handles[to], own + offset);
        let (data, flag) = (there(0), there(FLAG));
        let name = this.name();
        this.nic.put(name, data, &line(rank, to), false)?;
        // A completed put is in the target's memory.
        this.end(name)?;
        let name = this.name();
        this.nic.put(name, flag, &1_u64.to_le_bytes(), false)?;
        this.end(name)?;
        let name = this.name();
        let into = Local {
            offset: BACK,
            bytes: LINE,
        };
        this.nic.get(name, data, into)?;
        this.end(name)?;
        let mut back = [0; LINE as usize];
        this.nic.read(BACK, &mut back)?;
        if back != line(rank, to) {
            return Err(
                format!("the data loaded from program {to} differ from those stored").into(),
            );
        }
    }
    let begin = Instant::now();
    for &from in &others {
        let theirs = from as u64 * SLOT_BYTES;
        while this.nic.word(theirs + FLAG)?.load(Acquire) == 0 {
            if begin.elapsed() > PATIENCE {
                return Err(format!("program {from} has stored nothing").into());
            }
            std::thread::yield_now();
        }
        let mut found = [0; LINE as usize];
        this.nic.read(theirs, &mut found)?;
        if found != line(from, rank) {
            return Err(format!("program {from} has stored wrong data").into());
        }
    }
    if this.nic.operations().atomics {
        let sum = this.remote(0, handles[0], SUM);
        for _ in 0..ADDITIONS {
            let name = this.name();
            let operands = [rank as u64 + 1, 0];
            this.nic.atomic(name, sum, AtomicOp::Add, operands, false)?;
            this.end(name)?;
        }
        this.agree(0)?;
        let all = (1..=count as u64).sum::<u64>() * ADDITIONS;
        let sum = this.nic.word(SUM)?.load(Acquire);
        if rank == 0 && sum != all {
            return Err(format!("the sum is {sum}, not {all}").into());
        }
    }
    Ok(())
}

#[allow(dead_code, reason = "the tests run `program` alone")]
fn main() -> std::process::ExitCode {
    common::main(DATA_BYTES, program)
}
