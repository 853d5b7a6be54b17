//! Two programs put eight bytes into each other's memory in turn, and report the times: virtual ones
//! in a virtual lab, else those of the host.
//!
//!     cargo run --example ping_pong -- --door PATH PATH

pub mod common;

use std::time::{Duration, Instant};

use common::{Outcome, Program};
use phitwire_client::door::{Completion, Local};

const ROUNDS: u32 = 1_000;
/// Layout of the data: destination of puts, messages.
const IN: u64 = 0;
const TALK: u64 = 1 << 16;
/// Bytes of data that each program needs.
pub const DATA_BYTES: u64 = 2 << 16;

impl Program {
    fn time(&self, begin: Instant) -> Duration {
        self.nic.virtual_time().unwrap_or_else(|| begin.elapsed())
    }

    /// Waits for the event of the other program's put.
    fn arrival(&mut self, round: u32) -> Outcome {
        let found = self.until(|completion| match *completion {
            Completion::PutEvent { bytes, .. } => Some(bytes),
            _ => None,
        })?;
        let mut word = [0; 8];
        self.nic.read(IN, &mut word)?;
        match (found, u64::from_le_bytes(word)) {
            (8, word) if word == u64::from(round) => Ok(()),
            (bytes, word) => Err(format!("round {round}: {bytes} bytes, {word}").into()),
        }
    }
}

pub fn program(this: &mut Program) -> Outcome {
    let begin = Instant::now();
    let part = Local {
        offset: IN,
        bytes: 64,
    };
    let handle = this.register(part)?;
    let handles = this.all_gather(TALK, u64::from(handle))?;
    if this.rank > 1 {
        return Ok(());
    }
    let other = 1 - this.rank;
    let there = this.remote(other, handles[other], 0);
    let (start, mut answers) = (this.time(begin), Duration::ZERO);
    for round in 0..ROUNDS {
        if this.rank == 1 {
            this.arrival(round)?;
        }
        let (name, issued) = (this.name(), this.time(begin));
        this.nic
            .put(name, there, &u64::from(round).to_le_bytes(), true)?;
        this.end(name)?;
        answers += this.time(begin) - issued;
        if this.rank == 0 {
            this.arrival(round)?;
        }
    }
    if this.rank == 0 {
        let kind = match this.nic.is_virtual() {
            true => "virtual",
            false => "host",
        };
        println!(
            "8 bytes, {kind} time: {} ns one way, {} ns from a put to its answer",
            ((this.time(begin) - start) / ROUNDS / 2).as_nanos(),
            (answers / ROUNDS).as_nanos()
        );
    }
    Ok(())
}

#[allow(dead_code, reason = "the tests run `program` alone")]
fn main() -> std::process::ExitCode {
    common::main(DATA_BYTES, program)
}
