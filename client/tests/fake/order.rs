//! One command after another, in an order drawn from a seed.
//!
//! A command is taken only when every program waits, so the programs' behaviour depends on the
//! order alone and not on the machine's load: an order that causes a jam always does. A jam is
//! detected without a timeout.

use phitwire_client::door::COMMAND_BYTES;
use phitwire_client::door::segment::{CLIENT_SLEEPS_AT, COMPLETIONS_HEAD_AT, COMPLETIONS_TAIL_AT};
use std::sync::atomic::Ordering::Acquire;

use super::{Nics, Program};

/// Picks the program that is served next.
pub struct Order {
    state: u64,
    latest: usize,
    is_jammed: bool,
}

impl Order {
    pub fn new(seed: u64) -> Self {
        Self {
            state: seed,
            latest: 0,
            is_jammed: false,
        }
    }

    /// A number below `bound` (splitmix64).
    fn draw(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.state;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ word >> 31) % bound as u64) as usize
    }

    /// Picks one of the programs that have a command. Mostly the previous one again: jams occur
    /// where programs are far ahead of others.
    fn pick(&mut self, ready: &[usize]) -> usize {
        let stays = self.draw(5) != 0 && ready.contains(&self.latest);
        if !stays {
            self.latest = ready[self.draw(ready.len())];
        }
        self.latest
    }
}

impl Program {
    /// Whether the program sleeps and has taken all completions. It sets its sleep flag only after
    /// it has returned their slots.
    fn waits(&self) -> bool {
        let word = |at| self.end.mapping().word(at).load(Acquire);
        word(CLIENT_SLEEPS_AT) != 0 && word(COMPLETIONS_HEAD_AT) == word(COMPLETIONS_TAIL_AT)
    }
}

impl Nics {
    /// Whether a round ended without a program that could continue.
    pub fn is_jammed(&self) -> bool {
        self.order.as_ref().is_some_and(|order| order.is_jammed)
    }

    pub fn work_in_order(&mut self) {
        self.notice_gone();
        let here = |n: &usize| !self.programs[*n].is_gone;
        let here: Vec<usize> = (0..self.programs.len()).filter(here).collect();
        let all_are_here = self.programs.len() == self.listeners.len();
        if !all_are_here || here.is_empty() || !here.iter().all(|&n| self.programs[n].waits()) {
            return std::thread::yield_now();
        }
        let has_commands = |n: &usize| self.programs[*n].end.has_commands();
        let ready: Vec<usize> = here.into_iter().filter(has_commands).collect();
        let Some(order) = &mut self.order else {
            return;
        };
        if ready.is_empty() {
            order.is_jammed = true;
            return;
        }
        let at = order.pick(&ready);
        let mut entry = [0xa5; COMMAND_BYTES];
        if self.next_command(at, &mut entry) {
            self.carry_out(at, &entry);
        }
        self.deliver();
        self.publish();
    }
}
