//! The printed numbers of figures 11 to 15, and of the accompanying text.

use super::{Load, Setup, run, verified};
use crate::cycle::AriesOptions;
use crate::nic::HostTimes;
use crate::topology::Shape;
use phitwire::nic::{Operation, TrafficSpec};
use phitwire::reproduce::{Kind, Observation, Row, Source, Table, Tolerance};
use phitwire::sim::MessageOp;

/// The tolerance of every printed number.
const ABOUT: Tolerance = Tolerance::Relative(0.1);
/// Cores of a node with two Xeon E5, which the white paper does not print.
const CORES: u32 = 16;
/// Microseconds of a run that measures a rate.
const SPAN_US: u64 = 50;
const MIB: u32 = 1 << 20;

fn row(label: &str, paper: f64, ours: f64, within: Tolerance) -> Row {
    Row::new(Kind::Running, Source::Paper, label, paper, ours, within)
}

fn also(label: impl Into<String>, paper: Option<f64>, ours: f64) -> Observation {
    Observation::new(Kind::Running, label, paper, ours)
}

fn table(figure: &str, unit: &'static str, rows: Vec<Row>, also: Vec<Observation>) -> Table {
    Table {
        title: format!("{figure} (Cray XC white paper, Aries Performance)"),
        unit,
        decimals: 2,
        rows,
        also,
        assumptions: vec![
            "Run: NICs, links and routers in the machine's time, with the hosts of the section \
             [host]. Two of its times are fitted, to two numbers of figure 11: crossing_ns to the \
             8-byte put and read_ns to the 8-byte get. The guide (virtual-time.md) lists the \
             source of each time."
                .into(),
        ],
    }
}

/// End-to-end latencies.
///
/// # Errors
/// If the network cannot be simulated, or a checker fails.
pub fn figure11(setup: &Setup) -> Result<Table, String> {
    let us = |op, size| Ok::<_, String>(setup.latency_ns(op, size)? / 1e3);
    let rows = vec![
        row(
            "put of 8 bytes (fitted)",
            0.8,
            us(Operation::Put, 8)?,
            ABOUT,
        ),
        row(
            "get of 8 bytes (fitted)",
            1.6,
            us(Operation::Get, 8)?,
            ABOUT,
        ),
    ];
    let mut further = Vec::new();
    for (name, op) in [("put", Operation::Put), ("get", Operation::Get)] {
        for size in [64, 128] {
            further.push(also(format!("{name} of {size} bytes"), None, us(op, size)?));
        }
    }
    let mut table = table("Figure 11: latency", "us", rows, further);
    table.assumptions.push(
        "The paper's \"little additional latency\" of 64 and 128 bytes is not printed. Its 1.3 us \
         of an MPI message include software, and are not compared: --op has no sends."
            .into(),
    );
    Ok(table)
}

/// Bandwidth of puts.
///
/// # Errors
/// See [`figure11`].
pub fn figure12(setup: &Setup) -> Result<Table, String> {
    let gbytes = |(nics, processes), load: Load| -> Result<f64, String> {
        let mut setup = setup.clone();
        (setup.shape.nics, setup.host.processes) = (nics, processes);
        let span = SPAN_US.max(u64::from(load.size / 500));
        Ok(setup.rate(load, span)? * f64::from(load.size) / 1e9)
    };
    let long = Load::puts(64 << 10, 8);
    let get = Load {
        op: Operation::Get,
        ..long
    };
    let both = Load {
        both_ways: true,
        ..long
    };
    let each = gbytes((4, 1), both)?;
    let rows = vec![
        row(
            "puts of 64 KiB, one way",
            10.0,
            gbytes((2, 1), long)?,
            ABOUT,
        ),
        row(
            "gets of 64 KiB (peak of a NIC, text)",
            10.2,
            gbytes((2, 1), get)?,
            ABOUT,
        ),
        row(
            "puts, each of both ways (host interface, text), about",
            8.0,
            each,
            ABOUT,
        ),
        row("the same, measured in the paper", 7.5, each, ABOUT),
    ];
    let shared = gbytes((2, 1), both)?;
    let label = "the same, between NICs that share processor tiles";
    let mut further = vec![also(label, Some(7.5), shared)];
    for processes in [4, 5, 8, 16] {
        let rate = gbytes((2, processes), Load::puts(128, 1_024))?;
        let label = format!("puts of 128 bytes, {processes} processes (half of 10)");
        further.push(also(label, Some(5.0), rate));
    }
    let mut table = table("Figure 12: bandwidth of puts", "GB/s", rows, further);
    table.assumptions.push(
        "The paper reaches half of the peak at 128 bytes \"with multiple issuing processes\" \
         without their number, so these rows are shown and not compared."
            .into(),
    );
    table.assumptions.push(
        "Traffic both ways is between NICs 0 and 3 of a router; the paper does not print which \
         nodes it measured. NICs 0 and 1 share four processor tiles of one flit per 875 MHz \
         cycle. A put of 64 bytes takes 14 flits and the response to a put of the other NIC \
         takes one, so full tiles would allow 7.5 GB/s each way. Ours are 87 % full, because \
         packets wait for each other in the tiles: such a pair of NICs does not reach the paper's \
         number, with hosts or without."
            .into(),
    );
    Ok(table)
}

/// Rates of puts by number of processes.
///
/// # Errors
/// See [`figure11`].
pub fn figure13(setup: &Setup) -> Result<Table, String> {
    let millions = |processes| -> Result<f64, String> {
        let host = HostTimes {
            processes,
            ..setup.host
        };
        let setup = Setup {
            host,
            ..setup.clone()
        };
        Ok(setup.rate(Load::puts(8, 1_024), SPAN_US)? / 1e6)
    };
    let rows = vec![
        row("one process", 7.5, millions(1)?, ABOUT),
        row("a node: 16 processes", 120.0, millions(CORES)?, ABOUT),
    ];
    let mut further = Vec::new();
    for processes in [4, 8, 2 * CORES] {
        let rate = millions(processes)?;
        further.push(also(format!("{processes} processes"), None, rate));
    }
    let mut table = table("Figure 13: rate of 8-byte puts", "M/s", rows, further);
    table.assumptions.push(
        "Not modelled: the rewritten MDH of each request, with which the paper has 80 M/s, and \
         hyperthreads, which share a core: beyond 16 processes our rate grows to the link's."
            .into(),
    );
    Ok(table)
}

/// Bandwidth of long messages.
///
/// # Errors
/// See [`figure11`].
pub fn figure14(setup: &Setup) -> Result<Table, String> {
    let gbytes = |window, us| -> Result<f64, String> {
        Ok(setup.rate(Load::puts(MIB, window), us)? * f64::from(MIB) / 1e9)
    };
    let rows = vec![row("streaming, 1 MiB", 9.7, gbytes(4, 500)?, ABOUT)];
    let further = vec![also("one at a time, 1 MiB", Some(8.5), gbytes(1, 500)?)];
    let mut table = table("Figure 14: MPI bandwidth", "GB/s", rows, further);
    table.assumptions.push(
        "Puts stand for MPI messages: --op has no sends. The 8.5 GB/s of the ping-pong are those \
         of MPI's software, which is not modelled, and are not compared."
            .into(),
    );
    Ok(table)
}

/// Allreduce by the collective engines, among `nics` NICs.
///
/// # Errors
/// See [`figure11`].
pub fn figure15(setup: &Setup, nics: &[usize]) -> Result<Table, String> {
    const COUNT: u64 = 20;
    let mut world = setup.world()?;
    let all = world.traffic_numbers();
    let mut seen = Vec::new();
    for (run, &nics) in (1..).zip(nics) {
        let some = all.get(..nics).ok_or("too few NICs")?;
        let measured = world
            .measure_collective(MessageOp::Allreduce, some, (run, COUNT), super::LIMIT)
            .map_err(|error| error.to_string())?;
        let elapsed = verified(measured)?.elapsed;
        seen.push((nics, elapsed.as_ps() as f64 / 1e6 / COUNT as f64));
    }
    let (most, last) = seen.pop().ok_or("no number of NICs")?;
    let label = format!("{most} nodes, less than");
    let rows = vec![row(&label, 10.0, last, Tolerance::AtMost(0.0))];
    let smaller = seen.iter();
    let further = smaller.map(|&(nics, us)| also(format!("{nics} nodes"), None, us));
    let further = further.collect();
    let mut table = table("Figure 15: allreduce of a 64-bit sum", "us", rows, further);
    table.assumptions.push(
        "The paper's 12,000 processes are 16 on each of 750 nodes. The sum among the processes of \
         a node is not modelled; the engines' part must leave time for it."
            .into(),
    );
    Ok(table)
}

/// A hop between routers, and the farthest pair.
///
/// # Errors
/// See [`figure11`].
pub fn hop(setup: &Setup) -> Result<Table, String> {
    let put = |groups, chassis, blades, nics, metres| {
        let shape = Shape {
            groups,
            chassis,
            blades,
            nics,
        };
        let setup = Setup {
            shape,
            metres,
            ..setup.clone()
        };
        setup.latency_ns(Operation::Put, 8)
    };
    let one = put(1, 1, 1, 2, [1; 3])?;
    let two = put(1, 1, 2, 1, [1; 3])?;
    let farthest = |metres| {
        let shape = Shape {
            groups: 2,
            chassis: 3,
            blades: 3,
            nics: 1,
        };
        let setup = Setup {
            shape,
            blue: Some(1),
            metres,
            ..setup.clone()
        };
        setup.farthest_ns()
    };
    let rows = vec![row("one hop", 100.0, (two - one) / 2.0, ABOUT)];
    let further = vec![
        also(
            "five hops, cables of 1 m (less than, largest systems)",
            Some(2_000.0),
            farthest([1; 3])?,
        ),
        also(
            "the same, cables of 1, 3 and 20 m",
            Some(2_000.0),
            farthest(AriesOptions::METRES)?,
        ),
    ];
    let mut table = table("Hops of 8-byte puts", "ns", rows, further);
    table.assumptions.push(
        "A hop is half of what a put takes longer between two routers than within one: a put goes \
         there and back. The longest minimal route has five hops; the pair is the farthest of all \
         between two groups of 3 x 3 routers with one blue link. The paper prints no lengths of \
         cables, so these rows are not judged."
            .into(),
    );
    Ok(table)
}

/// Rates of atomic additions at one NIC.
///
/// # Errors
/// See [`figure11`].
pub fn amo(setup: &Setup) -> Result<Table, String> {
    let hits = additions(setup, 1)?;
    let misses = additions(setup, 4_096)?;
    let rows = vec![
        row("one cached variable", 400.0, hits, ABOUT),
        row(
            "4,096 variables, at least",
            50.0,
            misses,
            Tolerance::AtLeast,
        ),
        row(
            "4,096 variables, at most",
            120.0,
            misses,
            Tolerance::AtMost(0.0),
        ),
    ];
    let mut table = table("Atomic additions at one NIC", "M/s", rows, Vec::new());
    table.assumptions.push(
        "Eight NICs of three routers, with 16 processes each, add to the ninth. amo_miss_ns is \
         decided within the paper's range."
            .into(),
    );
    Ok(table)
}

/// Millions of additions per second to `addresses` variables of the last NIC, by all others.
fn additions(setup: &Setup, addresses: u16) -> Result<f64, String> {
    let setup = Setup {
        shape: Shape {
            groups: 1,
            chassis: 1,
            blades: 3,
            nics: 3,
        },
        host: HostTimes {
            processes: CORES,
            ..setup.host
        },
        ..setup.clone()
    };
    let mut world = setup.world()?;
    let numbers = world.traffic_numbers();
    let spec = TrafficSpec {
        processors: numbers[..numbers.len() - 1].to_vec(),
        window: 96,
        duration_ns: SPAN_US * 1_000,
        addresses,
        ..setup.one_way(&world, Operation::Amo, 8)
    };
    let measured = run(&mut world, &spec)?;
    Ok(measured.completed as f64 / (measured.elapsed.as_ps() as f64 / 1e6))
}
