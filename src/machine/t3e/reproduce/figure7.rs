//! "Round-trip network latency" (T3E paper, figure 7): "twice the delay from the input of the
//! router at the source node to the input of the control chip at the destination node", without
//! memory.
//!
//! Our copies of the paper lack the picture: what is compared with was computed from table 2 for
//! this project. So it is the routers that are on trial here, not the paper.

use std::sync::Mutex;

use super::harness::Harness;
use super::table2::CLOCK_NS;
use crate::machine::t3e::format::Command;
use crate::machine::t3e::route::clocks::Corners;
use crate::machine::t3e::route::walk;
use crate::machine::t3e::topology::{Routes, Torus, TorusSpec};
use crate::reproduce::{Observation, Row, Settings, Table, Tolerance};
use crate::rng::Rng;

/// A size of the machine, and average and maximum round trips in clocks.
type Size = (&'static str, f64, f64);

/// The sizes of the machine.
pub const SIZES: [Size; 9] = [
    ("2x2x2", 48.6, 64.0),
    ("2x4x2", 52.0, 70.0),
    ("4x4x2", 55.9, 76.0),
    ("4x4x4", 60.0, 82.0),
    ("4x8x4", 66.6, 94.0),
    ("8x8x4", 73.2, 106.0),
    ("8x8x8", 79.9, 118.0),
    ("8x16x8", 92.2, 142.0),
    ("8x32x8", 116.4, 190.0),
];

/// Pairs of the command: all of them up to 256 nodes.
pub const PAIRS: u32 = 100_000;

/// What was measured in a network.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    nodes: u32,
    pairs: u32,
    all: bool,
    average: f64,
    maximum: u64,
    /// Ways, there and back, that took other times than the closed form says.
    differing: u64,
}

/// Round trips in a torus: of all ordered pairs if they are no more than `most`, otherwise of so
/// many random ones.
fn seen(size: &str, most: u32, seed: u64) -> Result<Seen, String> {
    let shape = size.parse().map_err(|error| format!("{error}"))?;
    let torus = TorusSpec::new(shape).torus();
    let shape = torus.shape();
    let registers = torus.registers().map_err(|error| error.to_string())?;
    let routes = torus.routes().map_err(|error| error.to_string())?;
    let mut network = Harness::new(shape, registers);
    let nodes = shape.nodes();
    let all = nodes * (nodes - 1);
    let mut rng = Rng::new(seed, nodes.into());
    let pairs = all.min(most);
    let (mut sum, mut maximum, mut differing) = (0, 0, 0);
    for number in 0..pairs {
        let pair = match pairs == all {
            true => number,
            false => rng.below(all.into()) as u32,
        };
        let (from, other) = (pair / (nodes - 1), pair % (nodes - 1));
        let to = other + u32::from(other >= from);
        network.ask(from, to, Command::Get1, number % 2 == 0);
        if !network.run_to_rest() {
            return Err(format!("nothing arrives from {from} at {to} in {size}"));
        }
        let transfer = network.transfers()[0];
        network.forget();
        let times = [transfer.request.one_way(), transfer.response.one_way()];
        for (ends, time) in [(from, to), (to, from)].into_iter().zip(times) {
            differing += u64::from(closed_form(&torus, routes, ends)? != time);
        }
        let round_trip = times[0] + times[1];
        sum += round_trip;
        maximum = maximum.max(round_trip);
    }
    Ok(Seen {
        nodes,
        pairs,
        all: pairs == all,
        average: sum as f64 / f64::from(pairs),
        maximum,
        differing,
    })
}

/// Clocks of a way that table 2 adds up to.
fn closed_form(torus: &Torus, routes: &Routes, (from, to): (u32, u32)) -> Result<u64, String> {
    let entry = routes.tables.route(from, to);
    let entry = entry.ok_or_else(|| format!("no way from {from} to {to}"))?;
    let (broken, registers) = (&routes.broken, &routes.registers);
    let channels = walk(torus.shape(), broken, registers, from, to, &entry);
    let channels = channels.map_err(|error| error.to_string())?;
    Ok(Corners::of(&channels).clocks().into())
}

/// Measures round trips in these sizes.
///
/// # Errors
/// If a packet does not arrive.
pub fn table(settings: &Settings<'_>, sizes: &[Size], most: u32) -> Result<Table, String> {
    let results: Vec<_> = sizes
        .iter()
        .map(|_| Mutex::new(Ok(Seen::default())))
        .collect();
    let seed = settings.seed;
    // The largest ones come first, as they take longest.
    (settings.divided)(sizes.len() as u64, &|part| {
        for number in part {
            let place = sizes.len() - 1 - number as usize;
            let found = seen(sizes[place].0, most, seed);
            *results[place].lock().expect("nobody panics with it") = found;
        }
    });
    let (mut rows, mut also) = (Vec::new(), Vec::new());
    let (mut differing, mut ways) = (0, 0);
    for (&(size, average, maximum), result) in sizes.iter().zip(results) {
        let seen = result.into_inner().expect("nobody panicked with it")?;
        let nodes = seen.nodes;
        let sampled = if seen.all { "" } else { " (sampled)" };
        let tolerance = match seen.all {
            // Half of the last digit, and what floating point adds.
            true => Tolerance::Absolute(0.0501),
            false => Tolerance::Relative(0.005),
        };
        let label = |what| format!("{nodes} PEs, {size}: {what}{sampled}");
        let (ours, most) = (seen.average, seen.maximum as f64);
        rows.push(Row::new(label("average"), average, ours, tolerance));
        rows.push(Row::new(
            label("maximum"),
            maximum,
            most,
            Tolerance::Absolute(0.0),
        ));
        for (what, clocks) in [("average", ours), ("maximum", most)] {
            let label = format!("{nodes} PEs: {what}, in us");
            also.push(Observation::new(label, None, clocks * CLOCK_NS / 1_000.0));
        }
        differing += seen.differing;
        ways += 2 * u64::from(seen.pairs);
    }
    rows.push(Row::new(
        format!("ways, of {ways}, that took other times than table 2 adds up to"),
        0.0,
        differing as f64,
        Tolerance::Absolute(0.0),
    ));
    Ok(Table {
        title: "Round-trip network latency (T3E paper, figure 7)".into(),
        unit: "clocks",
        decimals: 2,
        rows,
        also,
        assumptions: vec![
            format!(
                "Run: a get of one word and its response alone in a network of routers, for each ordered pair of \
                 different nodes, or for {most} random pairs where there are more; every second packet may \
                 adapt. Times are those of first flits, from the input of the source's router to the \
                 processor, there and back; what the processor does between counts nothing."
            ),
            "The picture of figure 7 is missing in the text that we have. What stands in its column was \
             computed for this project from table 2: ten clocks at each end, three or six in each router \
             between them, minimal routes in direction order, uniform destinations without the source."
                .into(),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_those_of_table_2() {
        let settings = Settings::of_the_paper(1);
        let table = table(&settings, &SIZES[..4], 5_000).unwrap();
        assert!(table.within(), "{table:#?}");
    }

    #[test]
    fn large_machines_are_sampled() {
        for size in [&SIZES[6], &SIZES[8]] {
            let seen = seen(size.0, 300, 1).unwrap();
            assert!(!seen.all);
            assert_eq!(seen.differing, 0);
            assert!(seen.maximum as f64 <= size.2 && (seen.average / size.1 - 1.0).abs() < 0.1);
        }
    }
}
