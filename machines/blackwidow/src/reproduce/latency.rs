//! Table 2: zero-load latency of a folded Clos and a 3-D torus (BlackWidow sec. 7.3).
//!
//! The printed Clos values match exactly with 20 ns per router, the estimate of footnote 3
//! (BlackWidow sec. 7.1); the text does not say how they were computed. The actual chip takes 31.25
//! ns (sec. 3), and cables take time. So the table recomputes the estimate, and compares simulated
//! networks with the chip's own figures.

use super::stated;
use super::torus::Torus;
use crate::cycle::{BlackWidow, BlackWidowOptions};
use crate::route::registers::NO_PORT;
use crate::topology::{BlackWidowSpec, ClosWiring, FoldedClos};
use phitwire::net::PortSet;
use phitwire::reproduce::{Kind, Observation, Row, Source, Table, Tolerance};
use phitwire::rng::Rng;
use phitwire::sim::direct::CycleModel as _;
use phitwire::sim::direct::{Config, Load, Report, Serial, Simulation, Traffic, Warmup};

#[derive(Clone, Copy, Debug)]
struct Column {
    nodes: u32,
    /// Shape of the torus. The text says that the shapes are those of the Cray XT3, but does not
    /// print them.
    torus: [u32; 3],
    torus_ns: f64,
    clos_ns: f64,
}

const COLUMNS: [Column; 4] = [
    Column {
        nodes: 576,
        torus: [6, 12, 8],
        torus_ns: 144.0,
        clos_ns: 78.0,
    },
    Column {
        nodes: 2304,
        torus: [12, 12, 16],
        torus_ns: 210.0,
        clos_ns: 91.0,
    },
    Column {
        nodes: 9216,
        torus: [24, 16, 24],
        torus_ns: 326.0,
        clos_ns: 104.0,
    },
    Column {
        nodes: 30_720,
        torus: [40, 32, 24],
        torus_ns: 484.0,
        clos_ns: 116.0,
    },
];

/// Number of pairs of nodes whose path is measured per network. Their mean is within 0.2 % of that
/// of all pairs.
pub const PAIRS: u32 = 200_000;
/// Number of columns whose networks are simulated.
const RUNNING: usize = 2;
/// Half of the last printed digit.
const PRINTED: Tolerance = Tolerance::Absolute(0.5);
/// Four standard errors of the mean over several thousand packets, plus queueing.
const SCATTER: Tolerance = Tolerance::Relative(0.01);
/// A hundredth of a port's rate: almost no contention.
const QUIET: u32 = 10_000;
/// Phits of an average packet after its head (footnote 3).
const BEHIND_HEAD: f64 = 12.0;
/// Number of ports of a torus router: two in each dimension, and the processor's.
const TORUS_PORTS: f64 = 7.0;

fn pair(rng: &mut Rng, nodes: u32) -> (u32, u32) {
    let source = rng.below(u64::from(nodes)) as u32;
    let step = 1 + rng.below(u64::from(nodes) - 1) as u32;
    (source, (source + step) % nodes)
}

/// Mean number of routers that a packet passes, following the registers from router to router.
///
/// # Panics
/// If a path does not end at its destination, which cannot happen in generated networks.
pub fn routers_in_clos(topology: &FoldedClos, pairs: u32, rng: &mut Rng) -> f64 {
    let wiring = ClosWiring::new(topology);
    let mut routers = 0;
    for _ in 0..pairs {
        let (source, destination) = pair(rng, topology.processors.len() as u32);
        let number = topology.processors[destination as usize].number;
        let choose = |ports: PortSet| {
            let nth = rng.below(u64::from(ports.len().max(1))) as usize;
            ports.iter().nth(nth).unwrap_or(NO_PORT)
        };
        match topology.route(&wiring, source, number, 0, choose) {
            Ok(hops) => routers += hops.len(),
            Err(why) => panic!("{source} to {number}: {why}"),
        }
    }
    routers as f64 / f64::from(pairs)
}

/// Mean number of routers that a packet passes, including those of source and destination.
pub fn routers_in_torus(torus: Torus, pairs: u32, rng: &mut Rng) -> f64 {
    let mut routers = 0;
    for _ in 0..pairs {
        let (source, destination) = pair(rng, torus.nodes());
        routers += torus.route(source, destination).len() + 1;
    }
    routers as f64 / f64::from(pairs)
}

/// The zero-load estimate of BlackWidow sec. 7.3: the delay of every router, plus the packet length
/// once.
fn estimate_ns(routers: f64, port_gbps: f64) -> f64 {
    routers * stated::ROUTER_NS + stated::PACKET_BITS / port_gbps
}

/// Converts cycles of the chip to nanoseconds.
fn ns(cycles: f64) -> f64 {
    cycles * BlackWidow::CYCLE.as_ps() as f64 / 1_000.0
}

/// Latency without contention, with the chip's routers and links of `link_cycles` cycles: one link
/// before each router, and one after the last.
fn expected_ns(routers: f64, link_cycles: u32) -> f64 {
    let links = (routers + 1.0) * f64::from(link_cycles);
    routers * stated::PIPELINE_NS + ns(links + BEHIND_HEAD)
}

/// Simulates a network at a load with almost no contention.
fn run(topology: &FoldedClos, options: &BlackWidowOptions, seed: u64) -> Result<Report, String> {
    let config = Config {
        seed,
        traffic: Traffic {
            load: Load::from_millionths(QUIET).unwrap_or(Load::FULL),
            ..Traffic::default()
        },
        warmup: Warmup::Cycles(500),
        measure_cycles: 4_000,
        ..Config::default()
    };
    let simulation = Simulation::<BlackWidow>::new(topology, &config, options, 1);
    let mut simulation = simulation.map_err(|error| error.to_string())?;
    let report = simulation.run(&mut Serial, |_| {});
    match report.violations.first() {
        None => Ok(report),
        Some(violation) => Err(format!("{}: {violation:?}", topology.name)),
    }
}

/// Folded Clos of routers with all 64 ports, of which 32 are uplinks if there is a rank above.
fn clos_of_radix_64(nodes: u32) -> FoldedClos {
    let rank = if nodes <= 64 * 32 { "2" } else { "3" };
    generated(BlackWidowSpec {
        processors: nodes,
        rank: rank.parse().ok(),
        virtual_radix: 64,
        ..BlackWidowSpec::default()
    })
}

/// The BlackWidow network of that size: radix 32 above rank 1, with sidelinks where they suffice.
fn blackwidow(nodes: u32) -> FoldedClos {
    generated(BlackWidowSpec {
        processors: nodes,
        ..BlackWidowSpec::default()
    })
}

fn generated(spec: BlackWidowSpec) -> FoldedClos {
    let topology = spec.generate();
    topology.unwrap_or_else(|why| panic!("{} processors: {why}", spec.processors))
}

#[derive(Clone, Copy, Debug)]
struct Run {
    clos: fn(u32) -> FoldedClos,
    options: BlackWidowOptions,
    torus: [[u32; 3]; COLUMNS.len()],
    /// Number of columns to simulate.
    running: usize,
    seed: u64,
    pairs: u32,
}

impl Run {
    fn of_the_paper(seed: u64, pairs: u32) -> Self {
        Self {
            clos: clos_of_radix_64,
            options: BlackWidowOptions::default(),
            torus: COLUMNS.map(|column| column.torus),
            running: RUNNING,
            seed,
            pairs,
        }
    }
}

/// Measures the networks of the table and counts routers over `pairs` pairs of nodes each.
///
/// # Errors
/// If a network cannot be simulated, or a checker fails.
pub fn table(seed: u64, pairs: u32) -> Result<Table, String> {
    table_of(&Run::of_the_paper(seed, pairs))
}

fn table_of(asked: &Run) -> Result<Table, String> {
    let mut rng = Rng::new(asked.seed, 2);
    let mut rows = vec![one_router(asked)?];
    let mut also = Vec::new();
    let (mut clos_rows, mut torus_rows) = (Vec::new(), Vec::new());
    for (at, column) in COLUMNS.iter().enumerate() {
        let nodes = column.nodes;
        let fraction = 2.0 * f64::from(nodes).ln() / 64_f64.ln();
        rows.push(Row::new(
            Kind::Formula,
            Source::Paper,
            format!("Clos, {nodes} nodes: estimate for {fraction:.2} routers"),
            column.clos_ns,
            estimate_ns(fraction, stated::PORT_GBPS),
            PRINTED,
        ));
        let network = (asked.clos)(nodes);
        let routers = routers_in_clos(&network, asked.pairs, &mut rng);
        let label = format!("Clos, {nodes} nodes, {routers:.2} routers counted");
        also.push(Observation::new(
            Kind::Formula,
            format!("{label}, 20 ns each, without links"),
            column.clos_ns,
            estimate_ns(routers, stated::PORT_GBPS),
        ));
        let expected = expected_ns(routers, asked.options.link_cycles);
        if at < asked.running {
            let ours = ns(run(&network, &asked.options, asked.seed)?
                .latency_cycles
                .mean);
            let running = format!("{label}, running");
            also.push(Observation::new(
                Kind::Running,
                &running,
                column.clos_ns,
                ours,
            ));
            let (kind, source) = (Kind::Running, Source::Expected);
            clos_rows.push(Row::new(kind, source, running, expected, ours, SCATTER));
        } else {
            let label = format!("{label}, 31.25 ns each plus links of 25 ns");
            also.push(Observation::new(
                Kind::Formula,
                label,
                column.clos_ns,
                expected,
            ));
        }
        also.push(machines_own(column, asked, &mut rng));
        torus_rows.extend(torus_between(
            column,
            asked.torus[at],
            asked.pairs,
            &mut rng,
        ));
    }
    rows.extend(clos_rows.into_iter().chain(torus_rows));
    Ok(Table {
        title: "Zero-load latency under uniform traffic (BlackWidow table 2, sec. 7.3)".into(),
        unit: "ns",
        decimals: 1,
        rows,
        also,
        assumptions: assumptions(asked.pairs),
    })
}

/// The latency that a router adds: the latency between two processors of one YARC minus both links
/// and the packet length.
fn one_router(asked: &Run) -> Result<Row, String> {
    let spec = BlackWidowSpec {
        processors: 32,
        ..BlackWidowSpec::default()
    };
    let report = run(&generated(spec), &asked.options, asked.seed)?;
    let links = 2.0 * f64::from(asked.options.link_cycles);
    let ours = ns(report.latency_cycles.min as f64 - links - BEHIND_HEAD);
    let label = "one router, BlackWidow sec. 3: head in to head out";
    let exact = Tolerance::Absolute(1e-9);
    let (kind, source) = (Kind::Running, Source::Paper);
    Ok(Row::new(
        kind,
        source,
        label,
        stated::PIPELINE_NS,
        ours,
        exact,
    ))
}

/// BlackWidow's own network of that size, with the chip's routers and links.
fn machines_own(column: &Column, asked: &Run, rng: &mut Rng) -> Observation {
    let machine = blackwidow(column.nodes);
    let routers = routers_in_clos(&machine, asked.pairs, rng);
    let name = &machine.name;
    let label = format!("BlackWidow's own {name}, {routers:.2} routers counted, plus links");
    let ours = expected_ns(routers, asked.options.link_cycles);
    Observation::new(Kind::Formula, label, column.clos_ns, ours)
}

/// The text does not say whether a path includes the routers at both ends. Its value lies between
/// the results with one of them and with both.
fn torus_between(column: &Column, shape: [u32; 3], pairs: u32, rng: &mut Rng) -> [Row; 2] {
    let torus = Torus::new(shape);
    let routers = routers_in_torus(torus, pairs, rng);
    let port_gbps = stated::ROUTER_GBPS / 2.0 / TORUS_PORTS;
    let [x, y, z] = shape;
    let row = |what, routers, tolerance| {
        let label = format!(
            "torus {x}x{y}x{z}, {} nodes, {what}: {routers:.2}",
            torus.nodes()
        );
        let ours = estimate_ns(routers, port_gbps);
        let (kind, source) = (Kind::Formula, Source::Paper);
        Row::new(kind, source, label, column.torus_ns, ours, tolerance)
    };
    [
        row(
            "routers after the first",
            routers - 1.0,
            Tolerance::AtMost(0.0),
        ),
        row("all routers", routers, Tolerance::AtLeast),
    ]
}

fn assumptions(pairs: u32) -> Vec<String> {
    let (router, bits) = (stated::ROUTER_NS, stated::PACKET_BITS);
    vec![
        format!(
            "The paper's Clos row is an estimate, exact to the last digit: 2 log64(N) routers of \
             {router} ns, and {bits} bits on a port of {} Gb/s (footnote 3). It is computed here \
             with the same formula; no network is involved.",
            stated::PORT_GBPS
        ),
        format!(
            "Running: 1 % of uniform traffic in packets of 13 phits, in virtual time, through \
             generated networks of 576 and 2304 nodes. Expected: {} ns per router, 25 ns per link \
             (5 m), and 12 phits after the head; routers are counted over {pairs} random pairs, \
             using the generated registers.",
            stated::PIPELINE_NS
        ),
        "Running networks take two to three times the printed latency because each router takes \
         11.25 ns more than estimated before the chip existed, because the estimate omits links \
         (25 ns each, one more than routers), and because real networks have whole ranks instead \
         of fractions."
            .into(),
        "Clos of radix 64 without sidelinks: 32 processors and 32 uplinks per rank-1 router, two \
         ranks up to 2048 nodes, three above. BlackWidow's own networks have radix 32 above rank \
         1, and sidelinks."
            .into(),
        format!(
            "Torus: computed, since its router is not modelled. Routers are counted over {pairs} \
             random pairs in dimension order; {router} ns each and {bits} bits on one of \
             {TORUS_PORTS} ports that share {} Gb/s. The paper does not say whether the routers \
             at both ends count, so its value must lie between both readings.",
            stated::ROUTER_GBPS
        ),
        "The paper uses the XT3's configurations without printing their shapes. The shapes used \
         here have the printed numbers of nodes and, as far as we know, are Cray's for 6, 24, 96 \
         and 320 cabinets; no document was available."
            .into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of routers on a path in a Clos deviates by one, so its mean over 100,000 pairs
    /// deviates by 0.003 routers, or 0.07 % of the latency.
    const FEW: u32 = 100_000;

    /// Only the smallest network is simulated; the others are counted and computed.
    fn short() -> Run {
        Run {
            running: 1,
            ..Run::of_the_paper(1, FEW)
        }
    }

    fn outside(asked: &Run) -> Vec<String> {
        let table = table_of(asked).unwrap();
        let rows = table.rows.into_iter().filter(|row| !row.within());
        rows.map(|row| row.label).collect()
    }

    #[test]
    fn table_2_stands_already_with_few_pairs() {
        let table = table_of(&short()).unwrap();
        assert_eq!(table.rows.len(), 1 + COLUMNS.len() + 1 + 2 * COLUMNS.len());
        for row in &table.rows {
            assert!(row.within(), "{row:?}");
        }
        // Only the torus, the estimate and the single router have printed figures.
        let expected = table
            .rows
            .iter()
            .filter(|row| row.source == Source::Expected);
        assert_eq!(expected.count(), 1);
    }

    /// Canary: simulates a network other than the one whose routers were counted, with links one
    /// cycle longer than stated.
    #[test]
    fn other_routers_and_links_are_outside() {
        let network = clos_of_radix_64(576);
        let options = BlackWidowOptions::default();
        let routers = routers_in_clos(&network, FEW, &mut Rng::new(1, 1));
        let row = |network: &FoldedClos, link_cycles| {
            let options = BlackWidowOptions { link_cycles };
            let ours = ns(run(network, &options, 1).unwrap().latency_cycles.mean);
            let expected = expected_ns(routers, BlackWidowOptions::default().link_cycles);
            Row::new(Kind::Running, Source::Expected, "", expected, ours, SCATTER)
        };
        assert!(row(&network, options.link_cycles).within());
        assert!(!row(&network, options.link_cycles + 1).within());
        let single = BlackWidowSpec {
            processors: 32,
            ..BlackWidowSpec::default()
        };
        assert!(!row(&generated(single), options.link_cycles).within());
    }

    #[test]
    fn another_torus_is_outside() {
        let mut asked = short();
        asked.torus[0] = [4, 4, 36];
        let labels = outside(&asked);
        assert_eq!(labels.len(), 1, "{labels:?}");
        assert!(labels[0].starts_with("torus 4x4x36"), "{labels:?}");
    }

    /// The estimate needs 20 ns per router: with the chip's 31.25 ns every column is outside its
    /// tolerance.
    #[test]
    fn the_estimate_is_not_of_the_chip() {
        for column in COLUMNS {
            let routers = 2.0 * f64::from(column.nodes).ln() / 64_f64.ln();
            let more = routers * (stated::PIPELINE_NS - stated::ROUTER_NS);
            let ours = estimate_ns(routers, stated::PORT_GBPS) + more;
            assert!(ours > column.clos_ns + 20.0);
        }
    }

    #[test]
    fn averages_are_those_of_all_pairs() {
        // 18 leaf routers of 32 nodes: 31 of the 575 other nodes share the source's router, and the
        // rest are three routers away.
        let expected = (31.0 + 3.0 * 544.0) / 575.0;
        let seen = routers_in_clos(&clos_of_radix_64(576), FEW, &mut Rng::new(1, 1));
        let off = (seen - expected).abs();
        assert!(off < 0.02, "{seen} instead of {expected}");
        // In a ring of k the mean distance is k / 4, but a node never sends to itself.
        let expected = 1.0 + (6.0 + 12.0 + 8.0) / 4.0 * 576.0 / 575.0;
        let seen = routers_in_torus(Torus::new([6, 12, 8]), FEW, &mut Rng::new(1, 1));
        let off = (seen - expected).abs();
        assert!(off < 0.1, "{seen} instead of {expected}");
    }
}
