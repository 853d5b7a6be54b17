//! "Payload bandwidth (MB/s)" (T3E table 4) of streams between two neighbours.

use phitwire_framing::t3e::header::Command;

use super::harness::{Harness, Stream, Transfer};
use super::sizes::torus;
use crate::pe::E_REGISTERS;
use phitwire::reproduce::{Kind, Observation, Row, Source, Table, Tolerance};

/// Payload of a link if every flit is a data word of 8 bytes, at 75 million flits per second.
pub const PEAK_MB_PER_S: f64 = 600.0;
/// Allowed deviation below T3E table 4. The allowed deviation above it covers only a partial
/// packet at an end of the measurement.
const BELOW: f64 = 0.01;
const PACKET_WORDS: f64 = 8.0;

/// Rows: the kind of stream, and MB/s if one end streams and if both do.
const PAPER: [(&str, Command, [f64; 2]); 4] = [
    ("single-word gets", Command::Get1, [300.0, 150.0]),
    ("vector gets", Command::Get8, [480.0, 400.0]),
    ("single-word puts", Command::Put1, [150.0, 100.0]),
    ("vector puts", Command::Put8, [480.0, 400.0]),
];

/// Number of outstanding requests, and clocks before and during the measurement.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub warmup: u64,
    /// Length of the measurement, in clocks.
    pub clocks: u64,
    /// Maximum number of requests without a response.
    pub outstanding: u32,
}

/// At least a hundred thousand clocks, and a whole number of packets of any kind.
pub const WINDOW: Window = Window {
    warmup: 5_000,
    clocks: 120_000,
    outstanding: E_REGISTERS,
};

/// Number of payload words that arrived in the window, for each direction that carries any.
fn words(command: Command, both: bool, window: Window) -> Result<f64, String> {
    let torus = torus("4x4x4")?;
    let registers = torus.registers().map_err(|error| error.to_string())?;
    let mut network = Harness::new(torus.shape(), registers);
    // Nodes 0 and 1 are neighbours in X.
    let streams: &[(u32, u32)] = if both { &[(0, 1), (1, 0)] } else { &[(0, 1)] };
    for &(from, to) in streams {
        let outstanding = window.outstanding;
        network.stream(
            from,
            Stream {
                to,
                command,
                outstanding,
            },
        );
    }
    let measured = window.warmup..window.warmup + window.clocks;
    while network.cycle() < measured.end {
        network.step();
    }
    let gets = matches!(command, Command::Get1 | Command::Get8);
    let came = |transfer: &&Transfer| {
        let carrier = if gets {
            &transfer.response
        } else {
            &transfer.request
        };
        carrier.flits > 0 && measured.contains(&carrier.last)
    };
    let packets = network.transfers().iter().filter(came).count();
    let each = match command {
        Command::Get1 | Command::Put1 => 1,
        _ => 8,
    };
    Ok((packets * each) as f64 / streams.len() as f64)
}

/// Simulates the streams and counts words.
///
/// # Errors
/// If the network cannot be built.
pub fn table(window: Window) -> Result<Table, String> {
    let clocks = window.clocks as f64;
    let (mut rows, mut also) = (Vec::new(), Vec::new());
    let mut above = 0.0_f64;
    for (label, command, paper) in PAPER {
        let ways = [("one-way", false), ("symmetrical", true)];
        for ((way, both), paper) in ways.into_iter().zip(paper) {
            let words = words(command, both, window)?;
            above = above.max(words - paper / PEAK_MB_PER_S * clocks);
            let ours = PEAK_MB_PER_S * words / clocks;
            let label = |unit| format!("{label}, {way}, {unit}");
            rows.push(Row::new(
                Kind::Running,
                Source::Paper,
                label("MB/s"),
                paper,
                ours,
                Tolerance::Relative(BELOW),
            ));
            // Efficiencies repeat the MB/s in whole percent, so they are listed without a
            // tolerance.
            let part = |mb_per_s: f64| 100.0 * mb_per_s / PEAK_MB_PER_S;
            also.push(Observation::new(
                Kind::Running,
                label("%"),
                part(paper).round(),
                part(ours),
            ));
        }
    }
    rows.push(Row::new(
        Kind::Running,
        Source::Expected,
        "words above the capacity of a link, worst case",
        0.0,
        above,
        Tolerance::AtMost(PACKET_WORDS),
    ));
    Ok(Table {
        title: "Payload bandwidth of a link (T3E table 4)".into(),
        unit: "",
        decimals: 1,
        rows,
        also,
        assumptions: vec![
            format!(
                "Run: two neighbours of a 4x4x4 torus; the first one, or both, send requests as \
                 fast as their link accepts them, at most {} without a response. Arriving payload \
                 is counted over {} clocks after {} others; if both send, the row is the mean of \
                 both directions.",
                window.outstanding, window.clocks, window.warmup
            ),
            "The last row is the bound: a link cannot carry more than 600 MB/s x words / flits, \
             plus one packet at the ends of the measurement."
                .into(),
            "Only one output leads to a neighbour, so packets do not adapt (T3E sec. 7). Reaching \
             the rates shows that the 12 flits of a deterministic channel cover the round trip of \
             a credit."
                .into(),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_carry_the_paper_s_rates() {
        let window = Window {
            warmup: 2_000,
            clocks: 12_000,
            ..WINDOW
        };
        let whole = table(window).unwrap();
        assert!(whole.within(), "{whole:#?}");
        // A few requests do not cover the round trip.
        let few = Window {
            outstanding: 4,
            ..window
        };
        assert!(!table(few).unwrap().within());
    }
}
