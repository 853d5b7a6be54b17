//! All programs draw tickets from one counter, in the memory of the first, by fetching atomic
//! operations. No ticket may be drawn twice or skipped.
//!
//!     cargo run --example counter -- --door PATH PATH...

pub mod common;

use common::{Outcome, Program};
use phitwire_client::door::{AtomicOp, Local};
use std::sync::atomic::Ordering::Acquire;

const TICKETS: u64 = 1_000;
/// Maximum number of commands in flight.
const WINDOW: usize = 32;
const COUNTER: u64 = 0;
const TALK: u64 = 1 << 12;
/// Bytes of data that each program needs.
pub const DATA_BYTES: u64 = 1 << 16;

pub fn program(this: &mut Program) -> Outcome {
    let mut handle = 0;
    if this.rank == 0 {
        let part = Local {
            offset: COUNTER,
            bytes: 64,
        };
        handle = this.register(part)?;
    }
    let handles = this.all_gather(TALK, u64::from(handle))?;
    let counter = this.remote(0, handles[0], 0);

    let mut under_way = std::collections::VecDeque::new();
    let mut tickets = Vec::new();
    for _ in 0..TICKETS {
        if under_way.len() == WINDOW
            && let Some(name) = under_way.pop_front()
        {
            tickets.push(this.end(name)?);
        }
        let name = this.name();
        let operands = [1, 0];
        this.nic
            .atomic(name, counter, AtomicOp::Add, operands, true)?;
        this.nic.flush();
        under_way.push_back(name);
    }
    for name in under_way {
        tickets.push(this.end(name)?);
    }

    let all = TICKETS * this.all.len() as u64;
    tickets.sort_unstable();
    if tickets.iter().any(|&ticket| ticket >= all) || !tickets.is_sorted_by(|a, b| a < b) {
        return Err("a ticket was drawn twice, or is out of range".into());
    }
    // Only `all` distinct numbers below `all` have this sum of squares.
    let square = |n: &u64| n.wrapping_mul(*n);
    let sum = tickets.iter().map(square).fold(0, u64::wrapping_add);
    let sums = this.all_gather(TALK, sum)?;
    let expected = (0..all).map(|n| square(&n)).fold(0, u64::wrapping_add);
    if sums.into_iter().fold(0, u64::wrapping_add) != expected {
        return Err("a ticket was drawn twice, another not at all".into());
    }
    let count = this.nic.word(COUNTER)?.load(Acquire);
    match this.rank != 0 || count == all {
        true => Ok(()),
        false => Err(format!("the counter is {count}, not {all}").into()),
    }
}

#[allow(dead_code, reason = "the tests run `program` alone")]
fn main() -> std::process::ExitCode {
    common::main(DATA_BYTES, program)
}
