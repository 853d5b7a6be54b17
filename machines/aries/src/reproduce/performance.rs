//! Performance of simulated routers and links (XC white paper, "Aries Performance"): "For a quiet
//! network, each router-to-router hop adds approximately 100ns of latency, a maximum of 500ns for
//! minimally routed packets", and "Peak global bandwidth is 11.7 GB/s per node for a full network.
//! With the payload efficiency of 64 percent this equates to 7.5 GB/s per direction".
//!
//! Latencies are those of packets without contention. Bandwidth is that of saturated blue links,
//! which are encoded at the lane rates of the description.

use super::stated;
use crate::cycle::{Aries, AriesOptions};
use crate::topology::{Dragonfly, DragonflySpec, Shape};
use phitwire::reproduce::{Kind, Observation, Row, Source, Table, Tolerance};
use phitwire::sim::direct::{
    Config, CycleModel as _, Load, Pattern, Report, Serial, Simulation, Traffic, Warmup,
};
use phitwire_framing::aries::flit::Routing;
use phitwire_framing::aries::set::{DATA_FLITS, FLIT_BYTES, SET_FLITS};

const PUT_BYTES: u8 = 64;
/// The XC white paper says "approximately".
const ABOUT: Tolerance = Tolerance::Relative(0.05);
/// Number of blue links between the two groups of the bandwidth run.
const FILLED: u16 = 4;
/// Number of routers of such a group, and of NICs per router.
const ROUTERS: u8 = 2;
const NICS: u8 = 4;

#[derive(Clone, Copy, Debug)]
pub struct Cycles {
    /// A network without contention.
    pub quiet: u64,
    /// A saturated network.
    pub full: u64,
}

pub const CYCLES: Cycles = Cycles {
    quiet: 200_000,
    full: 20_000,
};

fn dragonfly(shape: Shape, global_links: Option<u16>) -> Result<Dragonfly, String> {
    let spec = DragonflySpec {
        shape,
        global_links,
        ..DragonflySpec::default()
    };
    spec.generate().map_err(|error| error.to_string())
}

fn config(load: u32, cycles: u64, seed: u64) -> Config {
    Config {
        seed,
        traffic: Traffic {
            load: Load::from_millionths(load).unwrap_or(Load::FULL),
            message_bytes: PUT_BYTES,
            ..Traffic::default()
        },
        warmup: Warmup::Cycles(cycles / 4),
        measure_cycles: cycles,
        ..Config::default()
    }
}

fn finished(simulation: &mut Simulation<Aries>) -> Result<Report, String> {
    let report = simulation.run(&mut Serial, |_| {});
    match report.violations.first() {
        None => Ok(report),
        Some(violation) => Err(format!("{violation:?}")),
    }
}

fn ns(cycles: f64) -> f64 {
    cycles * Aries::CYCLE.as_ps() as f64 / 1_000.0
}

/// Smallest and largest latency of puts without contention, with cables of these lengths in metres.
fn quiet(shape: Shape, metres: [u32; 3], cycles: u64, seed: u64) -> Result<[f64; 2], String> {
    let topology = dragonfly(shape, (shape.groups > 1).then_some(1))?;
    let options = AriesOptions::with_metres(Routing::Minimal, metres);
    let simulation = Simulation::<Aries>::new(&topology, &config(2_000, cycles, seed), &options, 1);
    let mut simulation = simulation.map_err(|error| error.to_string())?;
    let latency = finished(&mut simulation)?.latency_cycles;
    Ok([latency.min, latency.max].map(|cycles| ns(cycles as f64)))
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Seen {
    /// Added latency of a hop over a green link of one metre.
    hop_ns: f64,
    /// Added latency of the hops of the longest minimal path, with cables of one metre.
    hops_ns: f64,
    /// Added latency of these hops with the default cables.
    hops_and_cables_ns: f64,
    blue_flits: f64,
    /// Mean payload bytes per cycle of a saturated blue link in each direction, for puts with
    /// responses.
    blue_payload: f64,
}

fn seen(full: &Dragonfly, cycles: Cycles, seed: u64) -> Result<Seen, String> {
    let shape = |groups, chassis, blades, nics| Shape {
        groups,
        chassis,
        blades,
        nics,
    };
    let metre = [1; 3];
    let quiet = |shape, metres| quiet(shape, metres, cycles.quiet, seed);
    let [one_router, _] = quiet(shape(1, 1, 1, 2), metre)?;
    // Each NIC has its own router, so that every packet crosses both routers.
    let [two_routers, _] = quiet(shape(1, 1, 2, 1), metre)?;
    let [_, far] = quiet(shape(2, 2, 2, 1), metre)?;
    let [_, cabled] = quiet(shape(2, 2, 2, 1), AriesOptions::METRES)?;
    let (blue_flits, blue_payload) = filled(full, cycles.full, seed)?;
    Ok(Seen {
        hop_ns: two_routers - one_router,
        hops_ns: far - one_router,
        hops_and_cables_ns: cabled - one_router,
        blue_flits,
        blue_payload,
    })
}

fn two_groups() -> Result<Dragonfly, String> {
    let shape = Shape {
        groups: 2,
        chassis: 1,
        blades: ROUTERS,
        nics: NICS,
    };
    dragonfly(shape, Some(FILLED))
}

/// Every NIC sends as many puts as possible to the other group, and receives the responses. Returns
/// the flits and payload bytes per cycle of a blue link in each direction.
fn filled(topology: &Dragonfly, cycles: u64, seed: u64) -> Result<(f64, f64), String> {
    let mut config = config(Load::UNIT, cycles, seed);
    config.traffic.request_reply = true;
    let pattern = "group-adversarial".parse::<Pattern>();
    config.traffic.pattern = pattern.map_err(|error| error.to_string())?;
    let options = AriesOptions {
        routing: Routing::Minimal,
        ..AriesOptions::default()
    };
    let simulation =
        Simulation::<Aries>::with_encoded_links(topology, &config, &options, None, 1, &mut Serial);
    let report = finished(&mut simulation.map_err(|error| error.to_string())?)?;
    let blue = report.links.iter().find(|(kind, _)| *kind == "blue");
    let (_, blue) = blue.ok_or("the network has no blue links")?;
    // Latencies are recorded for the puts whose responses arrived during the measurement.
    let puts = report.latency_cycles.count as f64 / report.measure_cycles as f64;
    let payload = puts * f64::from(PUT_BYTES) / (2.0 * f64::from(FILLED));
    Ok((blue.mean, payload))
}

/// Simulates the networks and compares them with the XC white paper.
///
/// # Errors
/// If a network cannot be simulated, or a checker fails.
pub fn table(seed: u64, cycles: Cycles) -> Result<Table, String> {
    let full = two_groups()?;
    Ok(table_of(&full, &seen(&full, cycles, seed)?))
}

fn table_of(full: &Dragonfly, seen: &Seen) -> Table {
    let row = |source, label: &str, reference, ours, within| {
        Row::new(Kind::Running, source, label, reference, ours, within)
    };
    let paper = |label, reference, ours| row(Source::Paper, label, reference, ours, ABOUT);
    // A link's rate is an upper limit: slots without a flit to send are lost.
    let rate = |label, expected, ours| {
        row(
            Source::Expected,
            label,
            expected,
            ours,
            Tolerance::Relative(0.02),
        )
    };
    let inventory = full.inventory();
    // Raw bandwidth includes the tenth flit of a set.
    let raw = gbytes_per_second(seen.blue_flits * FLIT_BYTES as f64) * SET_FLITS as f64
        / DATA_FLITS as f64;
    let payload = gbytes_per_second(seen.blue_payload);
    let per_node = stated::GLOBAL_TILES / stated::NODES_PER_ROUTER;
    Table {
        title: "Quiet latency and global bandwidth (Cray XC white paper, Aries Performance)".into(),
        unit: "",
        decimals: 2,
        rows: vec![
            paper("one router-to-router hop, ns", stated::HOP_NS, seen.hop_ns),
            paper(
                "hops of the longest minimal path, ns",
                stated::HOPS_NS,
                seen.hops_ns,
            ),
            rate(
                "one blue link as described, GB/s",
                inventory.global_link_gbytes,
                raw,
            ),
            paper(
                "global bandwidth per node, raw, GB/s",
                stated::GLOBAL_GBYTES,
                per_node * raw,
            ),
            paper(
                "global payload bandwidth per node, 64-byte puts, GB/s",
                stated::PAYLOAD_GBYTES,
                per_node * payload,
            ),
        ],
        also: vec![Observation::new(
            Kind::Running,
            "hops of this path with cables of 3 m and 20 m, ns",
            None,
            seen.hops_and_cables_ns,
        )],
        assumptions: assumptions(),
    }
}

fn gbytes_per_second(bytes_per_cycle: f64) -> f64 {
    bytes_per_cycle / ns(1.0)
}

fn assumptions() -> Vec<String> {
    vec![
        "Run, latency: single puts of 64 bytes with minimal routing, in virtual time, over direct \
         links. The hop is the difference between two routers and one; the hops of the longest \
         path are those of the farthest pair in two groups of 2 x 2 routers with one link between \
         them: green, black, blue, green, black. All cables are one metre long, as in the paper's \
         arithmetic (5 x 100 ns)."
            .into(),
        format!(
            "Run, bandwidth: {ROUTERS} routers of {NICS} NICs in each of two groups, {FILLED} \
             links between them; every NIC sends as many puts to the other group as it can and \
             receives responses. Links are encoded: sets, CRC, acknowledgements, and lanes at the \
             rates of the description, 12.5 Gb/s between groups."
        ),
        "A node has a quarter of the ten global links of its router; the row multiplies the \
         measured bandwidth of one link accordingly. The run does not show that uniform traffic \
         can fill all ten at once."
            .into(),
        "With real cables, the longest path exceeds the paper's 500 ns: 20 m of optical cable \
         take 95 ns more than a metre. The \"less than 2 us\" between any pair, the 0.8 and \
         1.6 us of puts and gets, and figures 11 to 15 include hosts: see the targets xc-hop and \
         xc-figure11 to xc-figure15."
            .into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flits of a put and of its response (XC white paper, "Aries Performance").
    const PUT_FLITS: f64 = 14.0 + 1.0;
    const SHORT: Cycles = Cycles {
        quiet: 200_000,
        full: 8_000,
    };

    fn outside(table: &Table) -> Vec<&str> {
        let rows = table.rows.iter().filter(|row| !row.within());
        rows.map(|row| &row.label[..]).collect()
    }

    #[test]
    fn routers_and_links_match_the_white_paper() {
        let table = table(1, SHORT).unwrap();
        assert_eq!(outside(&table), [""; 0], "{table:#?}");
        assert!(table.rows.iter().all(|row| row.kind == Kind::Running));
    }

    /// Canary: links between groups at the rate of links within a group.
    #[test]
    fn another_rate_of_blue_links_is_outside() {
        let mut fast = two_groups().unwrap();
        fast.settings.own.global_rate = fast.settings.own.rate;
        let (blue_flits, blue_payload) = filled(&fast, SHORT.full, 1).unwrap();
        let seen = Seen {
            hop_ns: stated::HOP_NS,
            hops_ns: stated::HOPS_NS,
            hops_and_cables_ns: stated::HOPS_NS,
            blue_flits,
            blue_payload,
        };
        let table = table_of(&two_groups().unwrap(), &seen);
        let labels = outside(&table);
        assert_eq!(labels.len(), 3, "{table:#?}");
    }

    /// Canary: cables of ten metres.
    #[test]
    fn longer_hops_are_outside() {
        let full = two_groups().unwrap();
        let shape = |blades, nics| Shape {
            groups: 1,
            chassis: 1,
            blades,
            nics,
        };
        let [one, _] = quiet(shape(1, 2), [1; 3], SHORT.quiet, 1).unwrap();
        let [two, _] = quiet(shape(2, 1), [10, 1, 1], SHORT.quiet, 1).unwrap();
        let seen = Seen {
            hop_ns: two - one,
            hops_ns: stated::HOPS_NS,
            hops_and_cables_ns: stated::HOPS_NS,
            blue_flits: 0.9 * 12.5 / 14.0,
            blue_payload: 0.9 * 12.5 / 14.0 / PUT_FLITS * f64::from(PUT_BYTES),
        };
        assert_eq!(
            outside(&table_of(&full, &seen)),
            ["one router-to-router hop, ns"]
        );
    }
}
