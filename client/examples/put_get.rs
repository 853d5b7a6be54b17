//! Each program puts bytes into the memory of the next, gets an event for the bytes of the previous
//! program, and reads its own bytes back: first one packet, then a block.
//!
//!     cargo run --example put_get -- --door PATH PATH...

pub mod common;

use common::{Outcome, Program};
use phitwire_client::door::{Completion, Local};

const BLOCK: u64 = 48 << 10;
/// Layout of the data: data of the previous program, destination of gets, source of the block,
/// messages.
const IN: u64 = 0;
const BACK: u64 = 1 << 16;
const OUT: u64 = 2 << 16;
const TALK: u64 = 3 << 16;
/// Bytes of data that each program needs.
pub const DATA_BYTES: u64 = 4 << 16;

fn pattern(rank: usize, bytes: usize) -> Vec<u8> {
    let byte = |n: usize| (n * 7 + n / 256 + rank * 31) as u8;
    (0..bytes).map(byte).collect()
}

impl Program {
    fn holds(&self, at: u64, rank: usize, bytes: usize) -> Outcome {
        let mut found = vec![0; bytes];
        self.nic.read(at, &mut found)?;
        match found == pattern(rank, bytes) {
            true => Ok(()),
            false => Err(format!("at {at}, the bytes are not those of program {rank}").into()),
        }
    }
}

pub fn program(this: &mut Program) -> Outcome {
    let part = Local {
        offset: IN,
        bytes: BLOCK,
    };
    let handle = this.register(part)?;
    let handles = this.all_gather(TALK, u64::from(handle))?;
    let (rank, next) = (this.rank, this.next());
    let before = (rank + this.all.len() - 1) % this.all.len();
    let there = this.remote(next, handles[next], 0);

    let short = this.nic.longest_put();
    let name = this.name();
    this.nic.put(name, there, &pattern(rank, short), true)?;
    this.end(name)?;
    let landed = this.until(|completion| match *completion {
        Completion::PutEvent {
            processor,
            handle,
            offset,
            bytes,
        } => Some((processor, handle, offset, bytes)),
        _ => None,
    })?;
    if landed != (this.all[before].0, handle, 0, short as u64) {
        return Err(format!("{landed:?} has landed").into());
    }
    this.holds(IN, before, short)?;
    let name = this.name();
    let into = Local {
        offset: BACK,
        bytes: short as u64,
    };
    this.nic.get(name, there, into)?;
    this.end(name)?;
    this.holds(BACK, rank, short)?;

    // No program may put its block before all have checked the packets.
    this.all_gather(TALK, 0)?;
    this.nic.write(OUT, &pattern(rank, BLOCK as usize))?;
    let name = this.name();
    let from = Local {
        offset: OUT,
        bytes: BLOCK,
    };
    this.nic.block_put(name, there, from, Some(rank as u64))?;
    this.end(name)?;
    let word = this.until(|completion| match *completion {
        Completion::BlockEvent { word, .. } => Some(word),
        _ => None,
    })?;
    if word != before as u64 {
        return Err(format!("received word {word} from program {before}").into());
    }
    this.holds(IN, before, BLOCK as usize)?;
    let name = this.name();
    let into = Local {
        offset: BACK,
        bytes: BLOCK,
    };
    this.nic.block_get(name, there, into)?;
    this.end(name)?;
    this.holds(BACK, rank, BLOCK as usize)
}

#[allow(dead_code, reason = "the tests run `program` alone")]
fn main() -> std::process::ExitCode {
    common::main(DATA_BYTES, program)
}
