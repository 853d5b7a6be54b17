//! "Round-trip network latency" (T3E figure 7): "twice the delay from the input of the router at
//! the source node to the input of the control chip at the destination node", without memory.
//!
//! The available copies of the paper lack the figure, so the reference values were computed from
//! T3E table 2 for this project. This tests the routers, not the figure.

use phitwire_framing::t3e::header::Command;

use super::harness::Harness;
use super::sizes::{self, torus};
use super::table2::CLOCK_NS;
use crate::route::clocks::Corners;
use crate::route::walk;
use crate::router::RouterRegisters;
use crate::topology::{Routes, Torus};
use phitwire::reproduce::{Kind, Observation, Row, Settings, Source, Table, Tolerance};
use phitwire::rng::Rng;

/// A machine size, with average and maximum round trips in clocks.
type Size = (&'static str, f64, f64);

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

/// Number of pairs that the command measures: all of them for up to 256 nodes.
pub const PAIRS: u32 = 100_000;

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    nodes: u32,
    pairs: u32,
    all: bool,
    average: f64,
    maximum: u64,
    /// Number of paths, in both directions, whose time differs from the closed form.
    differing: u64,
}

/// Round trips in a torus: of all ordered pairs if there are at most `most`, otherwise of `most`
/// random pairs.
fn seen(size: &str, most: u32, seed: u64) -> Result<Seen, String> {
    let torus = torus(size)?;
    let registers = torus.registers().map_err(|error| error.to_string())?;
    seen_in(&torus, registers, most, seed)
}

fn seen_in(
    torus: &Torus,
    registers: Vec<RouterRegisters>,
    most: u32,
    seed: u64,
) -> Result<Seen, String> {
    let shape = torus.shape();
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
            return Err(format!("no packet from {from} arrives at {to} in {shape}"));
        }
        let transfer = network.transfers()[0];
        network.forget();
        let times = [transfer.request.one_way(), transfer.response.one_way()];
        for (ends, time) in [(from, to), (to, from)].into_iter().zip(times) {
            differing += u64::from(closed_form(torus, routes, ends)? != time);
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

/// The clocks of a path, as a sum of terms from T3E table 2.
fn closed_form(torus: &Torus, routes: &Routes, (from, to): (u32, u32)) -> Result<u64, String> {
    let entry = routes.tables.route(from, to);
    let entry = entry.ok_or_else(|| format!("no route from {from} to {to}"))?;
    let (broken, registers) = (&routes.broken, &routes.registers);
    let channels = walk(torus.shape(), broken, registers, from, to, &entry);
    let channels = channels.map_err(|error| error.to_string())?;
    Ok(Corners::of(&channels).clocks().into())
}

/// Measures round trips in the given sizes.
///
/// # Errors
/// If a packet does not arrive.
pub fn table(settings: &Settings<'_>, sizes: &[Size], most: u32) -> Result<Table, String> {
    let seed = settings.seed;
    let seen = sizes::each(settings, sizes, |size| seen(size.0, most, seed))?;
    Ok(table_of(sizes, &seen, most))
}

fn table_of(sizes: &[Size], seen: &[Seen], most: u32) -> Table {
    let (mut rows, mut also) = (Vec::new(), Vec::new());
    let (mut differing, mut ways) = (0, 0);
    for (&(size, average, maximum), seen) in sizes.iter().zip(seen) {
        let nodes = seen.nodes;
        let sampled = if seen.all { "" } else { " (sampled)" };
        let tolerance = match seen.all {
            // Half of the last digit, plus floating-point error.
            true => Tolerance::Absolute(0.0501),
            false => Tolerance::Relative(0.005),
        };
        let label = |what| format!("{nodes} PEs, {size}: {what}{sampled}");
        let (ours, longest) = (seen.average, seen.maximum as f64);
        let row = |what, earlier, ours, within| {
            let (kind, source) = (Kind::Running, Source::Earlier);
            Row::new(kind, source, label(what), earlier, ours, within)
        };
        let exact = Tolerance::Absolute(0.0);
        rows.push(row("average", average, ours, tolerance));
        rows.push(row("maximum", maximum, longest, exact));
        for (what, clocks) in [("average", ours), ("maximum", longest)] {
            let label = format!("{nodes} PEs: {what}, in us");
            let us = clocks * CLOCK_NS / 1_000.0;
            also.push(Observation::new(Kind::Running, label, None, us));
        }
        differing += seen.differing;
        ways += 2 * u64::from(seen.pairs);
    }
    rows.push(Row::new(
        Kind::Running,
        Source::Expected,
        format!("paths, of {ways}, whose time differs from the sum of table 2"),
        0.0,
        differing as f64,
        Tolerance::Absolute(0.0),
    ));
    Table {
        title: "Round-trip network latency (T3E figure 7)".into(),
        unit: "clocks",
        decimals: 2,
        rows,
        also,
        assumptions: vec![
            format!(
                "Run: a get of one word and its response, alone in a network of routers, for each \
                 ordered pair of different nodes, or for {most} random pairs if there are more; \
                 every second packet may adapt. Times are those of first flits, from the input of \
                 the source's router to the processor, and back; time in the processor is not \
                 counted."
            ),
            "Our copy of the paper lacks the picture of figure 7. The \"earlier\" values were \
             computed for this project from T3E table 2: ten clocks at each end, three or six in \
             each router between them, minimal routes in direction order, uniform destinations \
             other than the source."
                .into(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire_framing::t3e::tag::Coordinates;

    #[test]
    fn round_trips_are_those_of_table_2() {
        let settings = Settings::of_the_paper(1);
        let table = table(&settings, &SIZES[..4], 5_000).unwrap();
        assert!(table.within(), "{table:#?}");
    }

    /// Number of rows outside their tolerance, and of all rows.
    fn outside(table: &Table) -> (usize, usize) {
        let outside = table.rows.iter().filter(|row| !row.within());
        (outside.count(), table.rows.len())
    }

    /// The first router sends packets to its neighbour by the longer way around the ring.
    #[test]
    fn another_path_through_the_router_is_outside() {
        let torus = torus("4x4x2").unwrap();
        let seen = |spoils: bool| {
            let mut registers = torus.registers().unwrap();
            let near = torus.shape().node(Coordinates([1, 0, 0])).unwrap() as usize;
            let table = &mut registers[0].table;
            let mut entry = table.look_up(near as u16).unwrap();
            if spoils {
                entry.tag.signs ^= 1;
            }
            table.set(near, Some(entry));
            seen_in(&torus, registers, PAIRS, 1).unwrap()
        };
        let sizes = &SIZES[2..3];
        assert_eq!(outside(&table_of(sizes, &[seen(false)], PAIRS)).0, 0);
        // Both the request and the response to the neighbour's own request take two more hops each.
        let spoiled = seen(true);
        assert_eq!((spoiled.differing, spoiled.maximum), (2, 76));
        let table = table_of(sizes, &[spoiled], PAIRS);
        assert!(!table.rows.last().unwrap().within(), "{table:#?}");
    }

    /// Rows of each kind can be outside their tolerance.
    #[test]
    fn an_average_a_maximum_and_a_single_way_are_judged() {
        let whole = Seen {
            nodes: 64,
            pairs: 4_032,
            all: true,
            average: 60.0,
            maximum: 82,
            differing: 0,
        };
        let sampled = Seen {
            nodes: 512,
            pairs: PAIRS,
            all: false,
            average: 79.9,
            maximum: 118,
            differing: 0,
        };
        let sizes = [SIZES[3], SIZES[6]];
        let outside_after = |spoil: fn(&mut [Seen; 2])| {
            let mut seen = [whole, sampled];
            spoil(&mut seen);
            outside(&table_of(&sizes, &seen, PAIRS))
        };
        assert_eq!(outside_after(|_| {}), (0, 5));
        assert_eq!(outside_after(|seen| seen[0].average += 0.06), (1, 5));
        assert_eq!(outside_after(|seen| seen[0].average -= 0.06), (1, 5));
        assert_eq!(outside_after(|seen| seen[1].average *= 1.0049).0, 0);
        assert_eq!(outside_after(|seen| seen[1].average *= 1.0051).0, 1);
        assert_eq!(outside_after(|seen| seen[0].maximum += 1).0, 1);
        assert_eq!(outside_after(|seen| seen[1].maximum -= 1).0, 1);
        assert_eq!(outside_after(|seen| seen[1].differing = 1).0, 1);
        assert_eq!(outside_after(|seen| seen[0].average = f64::NAN).0, 1);
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
