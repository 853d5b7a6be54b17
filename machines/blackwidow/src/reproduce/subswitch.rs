//! A stand-alone subswitch of any degree under worst-case traffic (BlackWidow sec. 7.6). The chip
//! has none with a degree above eight.
//!
//! Its parts are the chip's: row and column buffers are [`Pipe`]s with YARC's depths and wires,
//! packets win outputs through [`MatrixArbiter`]s and keep them until their end, and a phit moves
//! when the column buffer has a free slot. Degrees above eight arbitrate within groups of eight and
//! then among the groups. One virtual channel carries traffic, as in the published figure. Up to
//! degree eight, a test compares the model with the whole chip ([`throughput`](super::throughput)).

use crate::route::adaptive::{COLUMN_BUFFER_PHITS, ROW_BUFFER_PHITS};
use crate::router::pipeline::{COLUMN_CREDIT_CYCLES, COLUMN_CYCLES, ROW_CREDIT_CYCLES, ROW_CYCLES};
use phitwire::kit::pipe::RING_SLOTS;
use phitwire::kit::{MatrixArbiter, Pipe, Room};
use phitwire::rng::Rng;

/// Largest degree that can be arbitrated.
pub const MAX_DEGREE: usize = 64;

type RowPipe = Pipe<ROW_BUFFER_PHITS, { ROW_CYCLES as u32 }, { ROW_CREDIT_CYCLES as u32 }>;
type ColumnPipe =
    Pipe<COLUMN_BUFFER_PHITS, { COLUMN_CYCLES as u32 }, { COLUMN_CREDIT_CYCLES as u32 }>;

/// Saturated input traffic to random outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Length in phits of the shortest packet, at least 1.
    pub shortest: u32,
    /// Length in phits of the longest packet; all lengths in between are equally likely.
    pub longest: u32,
    pub pattern: OutputChoice,
}

impl Traffic {
    /// Draws the length in phits and the output of the next packet of `input`.
    pub(super) fn next(&self, input: usize, outputs: usize, rng: &mut Rng) -> (u32, usize) {
        let lengths = u64::from(self.longest - self.shortest) + 1;
        let phits = self.shortest + rng.below(lengths) as u32;
        let output = match self.pattern {
            OutputChoice::Uniform => rng.below(outputs as u64) as usize,
            OutputChoice::Straight => input,
            OutputChoice::OneOutput => 0,
        };
        (phits, output)
    }
}

/// How the output of an input's next packet is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputChoice {
    Uniform,
    /// Always the output with the input's number, without contention.
    Straight,
    OneOutput,
}

/// Arbitrates 64 requests with [`MatrixArbiter`]s within groups of eight, and one among the groups.
#[derive(Clone, Copy, Debug, Default)]
struct Arbiter {
    eights: [MatrixArbiter; 8],
    among: MatrixArbiter,
}

impl Arbiter {
    /// The winner among `requests`, which must not be empty.
    fn arbitrate(&mut self, requests: u64) -> usize {
        let bytes = requests.to_le_bytes();
        let asking = (0..8).fold(0, |mask, i| mask | u8::from(bytes[i] != 0) << i);
        let eight = usize::from(self.among.arbitrate(asking));
        8 * eight + usize::from(self.eights[eight].arbitrate(bytes[eight]))
    }
}

/// A phit: its output, and whether it is the last of its packet.
#[derive(Clone, Copy, Debug, Default)]
struct Phit {
    output: u8,
    last: bool,
}

#[derive(Clone, Copy, Debug)]
struct Input {
    row: RowPipe,
    ring: [Phit; RING_SLOTS],
    /// Output of the packet being written, and its remaining phits.
    sending: u8,
    left: u32,
}

#[derive(Clone, Copy, Debug)]
struct Output {
    column: ColumnPipe,
    arbiter: Arbiter,
    /// Input of the packet that holds the output.
    holder: Option<usize>,
}

/// A subswitch with its row and column buffers. Column buffers drain at full speed: in the worst
/// case no other subswitch sends to the same outputs.
#[derive(Clone, Debug)]
pub struct Subswitch {
    inputs: Vec<Input>,
    outputs: Vec<Output>,
    traffic: Traffic,
    rng: Rng,
    cycle: u32,
    delivered: u64,
}

impl Subswitch {
    /// An empty subswitch of `degree` inputs and outputs.
    ///
    /// # Panics
    /// If the degree is not in 1 to [`MAX_DEGREE`], or packet lengths are zero or an empty range.
    pub fn new(degree: usize, traffic: Traffic, rng: Rng) -> Self {
        assert!((1..=MAX_DEGREE).contains(&degree), "degree {degree}");
        assert!(traffic.shortest >= 1 && traffic.shortest <= traffic.longest);
        let input = Input {
            row: RowPipe::new(0),
            ring: [Phit::default(); RING_SLOTS],
            sending: 0,
            left: 0,
        };
        let output = Output {
            column: ColumnPipe::new(0),
            arbiter: Arbiter::default(),
            holder: None,
        };
        Self {
            inputs: vec![input; degree],
            outputs: vec![output; degree],
            traffic,
            rng,
            cycle: 0,
            delivered: 0,
        }
    }

    /// Runs for `cycles` cycles, and returns the number of phits that left the column buffers.
    pub fn run(&mut self, cycles: u32) -> u64 {
        let before = self.delivered;
        for _ in 0..cycles {
            self.step();
        }
        self.delivered - before
    }

    /// Runs one cycle from outputs to inputs, the order that a pipe expects.
    fn step(&mut self) {
        let cycle = self.cycle;
        for output in &mut self.outputs {
            if output.column.is_ready(cycle) {
                output.column.read(cycle);
                self.delivered += 1;
            }
        }
        self.switch(cycle);
        for input in 0..self.inputs.len() {
            self.send(input, cycle);
        }
        self.cycle += 1;
    }

    /// Moves a phit to every requested output.
    fn switch(&mut self, cycle: u32) {
        // Inputs with a phit at the front, by output. A row buffer is one queue, so it requests one
        // output.
        let mut requests = [0u64; MAX_DEGREE];
        for (i, input) in self.inputs.iter().enumerate() {
            if input.row.is_ready(cycle) {
                requests[usize::from(input.ring[input.row.front()].output)] |= 1 << i;
            }
        }
        for (output, requests) in self.outputs.iter_mut().zip(requests) {
            let served = output
                .holder
                .map_or(requests, |holder| requests & 1 << holder);
            if served == 0 || output.column.room(cycle, 0) != Room::Open {
                continue;
            }
            let from = match output.holder {
                Some(holder) => holder,
                None => output.arbiter.arbitrate(served),
            };
            let input = &mut self.inputs[from];
            let phit = input.ring[input.row.front()];
            input.row.read(cycle);
            output.column.write(cycle);
            output.holder = (!phit.last).then_some(from);
        }
    }

    /// Sends the next phit over an input's row bus, if the row buffer has a free slot.
    fn send(&mut self, number: usize, cycle: u32) {
        let input = &mut self.inputs[number];
        if input.row.room(cycle, 0) != Room::Open {
            return;
        }
        if input.left == 0 {
            let (phits, output) = self.traffic.next(number, self.outputs.len(), &mut self.rng);
            input.left = phits;
            input.sending = output as u8;
        }
        input.left -= 1;
        let (slot, _) = input.row.write(cycle);
        input.ring[slot] = Phit {
            output: input.sending,
            last: input.left == 0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn throughput(degree: usize, pattern: OutputChoice) -> f64 {
        let traffic = Traffic {
            shortest: 4,
            longest: 19,
            pattern,
        };
        let mut subswitch = Subswitch::new(degree, traffic, Rng::new(1, 1));
        subswitch.run(200);
        subswitch.run(5_000) as f64 / (5_000.0 * degree as f64)
    }

    #[test]
    fn straight_traffic_uses_every_cycle() {
        for degree in [1, 2, 8, 9, 64] {
            assert!(
                (throughput(degree, OutputChoice::Straight) - 1.0).abs() < 1e-9,
                "{degree}"
            );
        }
    }

    #[test]
    fn one_output_is_shared_without_loss() {
        for degree in [1, 2, 8, 9, 64] {
            let expected = 1.0 / degree as f64;
            assert!(
                (throughput(degree, OutputChoice::OneOutput) - expected).abs() < 1e-9,
                "{degree}"
            );
        }
    }

    #[test]
    fn arbitration_is_fair_among_any_number() {
        for count in [1, 2, 7, 8, 16, 32, 64] {
            let mut arbiter = Arbiter::default();
            let mut grants = [0; 64];
            let requests = u64::MAX >> (64 - count);
            (0..10 * count).for_each(|_| grants[arbiter.arbitrate(requests)] += 1);
            assert!(
                grants[..count].iter().all(|&grants| grants == 10),
                "{count}: {grants:?}"
            );
        }
    }
}
