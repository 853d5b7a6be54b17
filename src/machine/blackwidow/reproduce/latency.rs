//! Table 2: zero-load latency of a folded Clos and of a 3-D torus (paper, section 7.3).

use super::stated;
use super::torus::Torus;
use crate::machine::blackwidow::route::registers::NO_PORT;
use crate::machine::blackwidow::topology::{BlackWidowSpec, ClosWiring, FoldedClos};
use crate::net::PortSet;
use crate::reproduce::{Observation, Row, Table, Tolerance};
use crate::rng::Rng;

/// A column of the paper's table.
#[derive(Clone, Copy, Debug)]
struct Column {
    nodes: u32,
    /// Shape of the torus. The paper names the Cray XT3's, but does not print them.
    torus: [u32; 3],
    /// Printed, in nanoseconds.
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

/// Pairs of nodes whose way is measured, per network. Their average is within 0.2 % of
/// that of all pairs.
pub const PAIRS: u32 = 200_000;
const TOLERANCE: Tolerance = Tolerance::Relative(0.1);
/// Ports of a torus router: two in each dimension and the processor's.
const TORUS_PORTS: f64 = 7.0;

/// Two different nodes, every pair alike.
fn pair(rng: &mut Rng, nodes: u32) -> (u32, u32) {
    let source = rng.below(u64::from(nodes)) as u32;
    let step = 1 + rng.below(u64::from(nodes) - 1) as u32;
    (source, (source + step) % nodes)
}

/// Routers that a packet passes on average, by following the registers from router to router.
///
/// # Panics
/// If a way does not end at its destination: the networks are generated ones.
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

/// Routers that a packet passes on average: those of its source and its destination included.
pub fn routers_in_torus(torus: Torus, pairs: u32, rng: &mut Rng) -> f64 {
    let mut routers = 0;
    for _ in 0..pairs {
        let (source, destination) = pair(rng, torus.nodes());
        routers += torus.route(source, destination).len() + 1;
    }
    routers as f64 / f64::from(pairs)
}

/// Latency of a packet that meets nobody: the delay of every router and, once, its own length.
fn latency_ns(routers: f64, router_ns: f64, port_gbps: f64) -> f64 {
    routers * router_ns + stated::PACKET_BITS / port_gbps
}

/// Folded Clos of routers with all their 64 ports, 32 of them up where there is a rank above.
fn clos_of_radix_64(nodes: u32) -> FoldedClos {
    let rank = if nodes <= 64 * 32 { "2" } else { "3" };
    generated(BlackWidowSpec {
        processors: nodes,
        rank: rank.parse().ok(),
        virtual_radix: 64,
        ..BlackWidowSpec::default()
    })
}

/// The BlackWidow network of that size: radix 32 above rank 1, sidelinks where they do.
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

/// Measures all networks of the table over `pairs` pairs of nodes each.
pub fn table(seed: u64, pairs: u32) -> Table {
    table_of(clos_of_radix_64, seed, pairs)
}

fn table_of(clos: impl Fn(u32) -> FoldedClos, seed: u64, pairs: u32) -> Table {
    let mut rng = Rng::new(seed, 2);
    let (mut clos_rows, mut torus_rows, mut also) = (Vec::new(), Vec::new(), Vec::new());
    let torus_port_gbps = stated::ROUTER_GBPS / 2.0 / TORUS_PORTS;
    for column in COLUMNS {
        let nodes = column.nodes;
        let routers = routers_in_clos(&clos(nodes), pairs, &mut rng);
        clos_rows.push(Row {
            label: format!("Clos, {nodes} nodes, {routers:.2} routers"),
            paper: column.clos_ns,
            ours: latency_ns(routers, stated::ROUTER_NS, stated::PORT_GBPS),
            tolerance: TOLERANCE,
        });
        let machine = blackwidow(nodes);
        let routers = routers_in_clos(&machine, pairs, &mut rng);
        also.push(Observation {
            label: format!(
                "BlackWidow's own network {}, {routers:.2} routers",
                machine.name
            ),
            paper: Some(column.clos_ns),
            ours: latency_ns(routers, stated::ROUTER_NS, stated::PORT_GBPS),
        });
        let torus = Torus::new(column.torus);
        assert_eq!(torus.nodes(), nodes, "the shape has as many nodes");
        let routers = routers_in_torus(torus, pairs, &mut rng);
        let [x, y, z] = column.torus;
        torus_rows.push(Row {
            label: format!("torus {x}x{y}x{z}, {nodes} nodes, {routers:.2} routers"),
            paper: column.torus_ns,
            ours: latency_ns(routers, stated::ROUTER_NS, torus_port_gbps),
            tolerance: TOLERANCE,
        });
    }
    Table {
        title: "Zero-load latency under uniform traffic (table 2, section 7.3)".into(),
        unit: "ns",
        decimals: 1,
        rows: clos_rows.into_iter().chain(torus_rows).collect(),
        also,
        assumptions: assumptions(pairs, torus_port_gbps),
    }
}

fn assumptions(pairs: u32, torus_port_gbps: f64) -> Vec<String> {
    let (router, bits, port) = (stated::ROUTER_NS, stated::PACKET_BITS, stated::PORT_GBPS);
    vec![
        format!(
            "Run: {pairs} random pairs of different nodes per network, each followed from router to \
             router through the generated registers (Clos) or in dimension order (torus)."
        ),
        format!(
            "Latency = routers passed x {router} ns + {bits} bits on one port, both from footnote 3 of \
             the paper. {port} Gb/s per port in the Clos; cables take no time."
        ),
        format!(
            "The torus router has the same {} Gb/s on {TORUS_PORTS} ports: {torus_port_gbps:.0} Gb/s \
             per port and direction.",
            stated::ROUTER_GBPS
        ),
        "Clos of radix 64 without sidelinks: 32 processors and 32 uplinks to a rank-1 router, two ranks \
         up to 2048 nodes, else three."
            .into(),
        "The paper does not say how it counted hops. Its Clos row is, to its last digit, 2 log64(N) \
         routers, a fraction of a rank; networks that exist have whole ranks, hence up to a tenth more."
            .into(),
        "The paper names the XT3's configurations and does not print their shapes. Those used have these \
         numbers of nodes and are Cray's for 6, 24, 96 and 320 cabinets as far as we know; no document \
         was at hand."
            .into(),
        "Besides: BlackWidow's own networks, with radix 32 above rank 1 and sidelinks.".into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of routers in a Clos scatters by one, so the average of 100,000 pairs by 0.003
    /// routers or 0.07 % of the latency. The row nearest to its bound is 9.7 % off.
    const FEW: u32 = 100_000;

    #[test]
    fn table_2_stands_already_with_few_pairs() {
        let table = table(1, FEW);
        assert_eq!(table.rows.len(), 2 * COLUMNS.len());
        for row in table.rows {
            assert!(row.within(), "{row:?}");
        }
    }

    /// R3.5 is a rank and a half taller than the paper's estimate.
    #[test]
    fn another_network_is_told() {
        let table = table_of(blackwidow, 1, FEW);
        assert!(!table.within());
        let outside: Vec<_> = table.rows.iter().filter(|row| !row.within()).collect();
        assert_eq!(outside.len(), 1);
        assert!(outside[0].label.contains("30720"));
    }

    #[test]
    fn averages_are_those_of_all_pairs() {
        // 18 leaf routers of 32: 31 of the 575 others are on the same one, the rest three routers
        // away.
        let expected = (31.0 + 3.0 * 544.0) / 575.0;
        let seen = routers_in_clos(&clos_of_radix_64(576), FEW, &mut Rng::new(1, 1));
        let off = (seen - expected).abs();
        assert!(off < 0.02, "{seen} instead of {expected}");
        // A ring of k has its nodes k / 4 away on average, and one of all is not another.
        let expected = 1.0 + (6.0 + 12.0 + 8.0) / 4.0 * 576.0 / 575.0;
        let seen = routers_in_torus(Torus::new([6, 12, 8]), FEW, &mut Rng::new(1, 1));
        let off = (seen - expected).abs();
        assert!(off < 0.1, "{seen} instead of {expected}");
    }
}
