//! A message circulates through all programs for some laps; each adds to it.
//!
//!     cargo run --example ring -- --door PATH PATH...

pub mod common;

use common::{Outcome, Program};
use phitwire_client::door::Local;

const LAPS: u64 = 20;
const WORDS: u64 = 512;
const MESSAGE: Local = Local {
    offset: 0,
    bytes: WORDS * 8,
};
/// Bytes of data that each program needs.
pub const DATA_BYTES: u64 = 1 << 16;

/// The message after `steps` steps.
fn expected(steps: u64) -> Vec<u8> {
    let words = (0..WORDS).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(steps));
    words.flat_map(u64::to_le_bytes).collect()
}

impl Program {
    fn take_in(&mut self, steps: u64) -> Outcome {
        let name = self.name();
        self.nic.receive(name, MESSAGE)?;
        let bytes = self.received(name)?;
        let mut message = vec![0; MESSAGE.bytes as usize];
        self.nic.read(MESSAGE.offset, &mut message)?;
        match bytes == MESSAGE.bytes && message == expected(steps) {
            true => Ok(()),
            false => Err(format!("after {steps} steps, the message has changed").into()),
        }
    }

    fn pass_on(&mut self, steps: u64) -> Outcome {
        self.nic.write(MESSAGE.offset, &expected(steps))?;
        self.send(self.next(), MESSAGE)
    }
}

pub fn program(this: &mut Program) -> Outcome {
    let all = this.all.len() as u64;
    for lap in 0..LAPS {
        let steps = lap * all + this.rank as u64;
        if this.rank == 0 {
            this.pass_on(steps)?;
            this.take_in(steps + all - 1)?;
        } else {
            this.take_in(steps - 1)?;
            this.pass_on(steps)?;
        }
    }
    Ok(())
}

#[allow(dead_code, reason = "the tests run `program` alone")]
fn main() -> std::process::ExitCode {
    common::main(DATA_BYTES, program)
}
