//! Tables 1, 2 and 3 of the Cray XC white paper, computed from generated dragonflies.

use crate::topology::{Dragonfly, DragonflySpec, DragonflySpecError, Generator, Inventory, Shape};
use phitwire::reproduce::{Kind, Observation, Row, Source, Table, Tolerance};

/// Number of links in an optical cable.
const CABLE_LINKS: u16 = 4;
/// Payload efficiency of 64-byte transfers (XC white paper, "Aries Performance").
const EFFICIENCY: f64 = 64.0 / 15.0 / 8.0 * 72.0 / 60.0;

/// Dimensions of the generated machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Chassis per group; six in the XC white paper.
    pub chassis: u8,
    /// Blades per chassis; 16 in the XC white paper.
    pub blades: u8,
    /// NICs per router; four in the XC white paper.
    pub nics: u8,
}

/// The machine of the XC white paper.
pub const CRAY_XC: Machine = Machine {
    chassis: Shape::MAX_CHASSIS,
    blades: Shape::MAX_BLADES,
    nics: Shape::MAX_NICS,
};

impl Machine {
    /// A network of `groups` groups with `cables` cables between each pair; `None` means as many as
    /// the ports allow.
    fn generate(self, groups: u16, cables: Option<u16>) -> Result<Dragonfly, DragonflySpecError> {
        let Self {
            chassis,
            blades,
            nics,
        } = self;
        let shape = Shape {
            groups,
            chassis,
            blades,
            nics,
        };
        let links = match cables {
            Some(cables) => cables * CABLE_LINKS,
            None => Generator::default_global_links(&shape),
        };
        DragonflySpec {
            shape,
            global_links: Some(links),
            ..DragonflySpec::default()
        }
        .generate()
    }

    fn inventory(self, groups: u16, cables: Option<u16>) -> Result<Inventory, DragonflySpecError> {
        Ok(self.generate(groups, cables)?.inventory())
    }
}

fn row(label: impl Into<String>, paper: f64, ours: f64) -> Row {
    // Allows an error of less than one of any counted component.
    let within = Tolerance::Relative(0.001);
    Row::new(Kind::Count, Source::Paper, label, paper, ours, within)
}

fn counted(label: impl Into<String>, paper: f64, ours: f64) -> Observation {
    Observation::new(Kind::Count, label, paper, ours)
}

/// Table 1: components of a system with full global bandwidth, per group and per node.
///
/// # Errors
/// If the machine cannot be generated.
pub fn table1(machine: Machine) -> Result<Table, DragonflySpecError> {
    let full = machine.inventory(Shape::MAX_GROUPS, None)?;
    let (groups, nodes) = (full.groups as f64, full.nodes as f64);
    let mut rows = Vec::new();
    for (what, count, per_group, per_node) in [
        ("Aries devices", full.devices, 96.0, 0.25),
        ("9X copper cables", full.copper_cables, 240.0, 0.625),
        (
            "12X active optical cables",
            full.optical_cables,
            120.0,
            0.3125,
        ),
    ] {
        rows.push(row(
            format!("{what} per group"),
            per_group,
            count as f64 / groups,
        ));
        rows.push(row(
            format!("{what} per node"),
            per_node,
            count as f64 / nodes,
        ));
    }
    let twice = |links: u64| 2.0 * links as f64 * full.link_gbytes;
    let global = full.global_gbytes_per_node();
    Ok(Table {
        title: "Component counts (Cray XC white paper, table 1)".into(),
        unit: "",
        decimals: 4,
        rows,
        also: vec![
            counted("nodes in total", 92_544.0, nodes),
            counted(
                "links across the middle of a group, \
                     green",
                384.0,
                full.green_bisection as f64,
            ),
            counted(
                "links across the middle of a group, \
                     black",
                432.0,
                full.black_bisection as f64,
            ),
            counted(
                "GB/s across the middle of a group, \
                     green",
                4032.0,
                twice(full.green_bisection),
            ),
            counted("global GB/s per node and direction", 11.7, global),
            counted(
                "global payload GB/s per node, 64-byte puts",
                7.5,
                global * EFFICIENCY,
            ),
        ],
        assumptions: vec![
            "Run: the links of 241 groups of 6 x 16 routers are generated and counted; three \
             black links between two routers share a copper cable, four links between two groups \
             share an optical one."
                .into(),
            "A cable between groups counts half for each group, as in the paper: (40 x 6) / \
             2."
            .into(),
        ],
    })
}

/// The XC white paper's two examples: number of groups, and of cables between each pair.
const PARTIAL: [(u16, u16); 2] = [(6, 12), (8, 12)];

/// Table 2: optical cables of the two partial networks.
///
/// # Errors
/// If the machine cannot be generated.
pub fn table2(machine: Machine) -> Result<Table, DragonflySpecError> {
    let mut rows = Vec::new();
    let mut seen = Vec::new();
    for ((groups, cables), paper) in PARTIAL.into_iter().zip([180.0, 336.0]) {
        let network = machine.generate(groups, Some(cables))?;
        let label = format!(
            "{} cabinets, {cables} cables per pair: total cables",
            2 * groups
        );
        rows.push(row(label, paper, network.inventory().optical_cables as f64));
        let rules = format!("{groups} groups: violated configuration rules");
        seen.push(counted(&rules, 0.0, network.advice().len() as f64));
    }
    Ok(Table {
        title: "Optical cables (Cray XC white paper, table 2)".into(),
        unit: "",
        decimals: 0,
        rows,
        also: seen,
        assumptions: vec![
            "Run: both networks are generated link by link, and the links between each pair of \
             groups are counted; four share a cable. A group is two cabinets."
                .into(),
        ],
    })
}

/// Table 3: cables and bandwidth across the worst bisection of the groups.
///
/// # Errors
/// If the machine cannot be generated.
pub fn table3(machine: Machine) -> Result<Table, DragonflySpecError> {
    // Per row: total cables, crossing cables and GB/s, for the partial and the full network.
    const PRINTED: [[[f64; 3]; 2]; 2] = [
        [[180.0, 108.0, 4050.0], [720.0, 432.0, 16_200.0]],
        [[336.0, 192.0, 7200.0], [952.0, 544.0, 20_400.0]],
    ];
    let mut rows = Vec::new();
    for ((groups, partial), printed) in PARTIAL.into_iter().zip(PRINTED) {
        for ((word, cables), paper) in [("partial", Some(partial)), ("full", None)]
            .into_iter()
            .zip(printed)
        {
            let found = machine.inventory(groups, cables)?;
            let label = |what: &str| format!("{} cabinets, {word}: {what}", 2 * groups);
            rows.push(row(
                label("total cables"),
                paper[0],
                found.optical_cables as f64,
            ));
            rows.push(row(
                label("cables across the bisection"),
                paper[1],
                found.bisection.cables as f64,
            ));
            rows.push(row(label("GB/s"), paper[2], found.bisection_gbytes()));
        }
    }
    Ok(Table {
        title: "Bisection (Cray XC white paper, table 3)".into(),
        unit: "",
        decimals: 0,
        rows,
        also: Vec::new(),
        assumptions: vec![
            "Run: the networks are generated link by link, and the cables across the worst split \
             of the groups into halves are counted. All bundles have the same size, so every \
             split is the worst."
                .into(),
            "A full network has FLOOR(240 / (groups - 1)) cables per pair: 48 and 34. A cable has \
             4 links of 3 lanes of 12.5 Gb/s; the paper's GB/s count both directions."
                .into(),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: [fn(Machine) -> Result<Table, DragonflySpecError>; 3] = [table1, table2, table3];

    #[test]
    fn the_papers_machine_has_the_papers_counts() {
        for table in TABLES {
            let table = table(CRAY_XC).expect("the machine of the paper fits");
            assert!(table.within(), "{table:#?}");
        }
        let table = table1(CRAY_XC).expect("the machine of the paper fits");
        for seen in table.also {
            let paper = seen.paper.expect("the paper has all rows");
            let off = (seen.ours - paper).abs() / paper;
            assert!(off < 0.005, "{} {}", seen.label, seen.ours);
        }
    }

    #[test]
    fn another_machine_is_outside() {
        // Five chassis per group, or two nodes per blade.
        let narrow = Machine {
            chassis: 5,
            ..CRAY_XC
        };
        let two = Machine { nics: 2, ..CRAY_XC };
        assert!(!table1(narrow).expect("the network fits").within());
        assert!(!table1(two).expect("the network fits").within());
        // The partial network fits this machine too, but the full one has fewer cables than in the
        // XC white paper.
        assert!(!table3(narrow).expect("the network fits").within());
    }

    #[test]
    fn a_missing_cable_is_outside() {
        let mut network = CRAY_XC.generate(6, Some(12)).expect("the network fits");
        // The four links of the last cable.
        network.links.truncate(network.links.len() - 4);
        let found = network.inventory();
        assert_eq!((found.optical_cables, found.bisection.cables), (179, 107));
        assert!(found.bisection.exact);
        assert_eq!(network.advice()[0], "all bundles must have the same size");
    }
}
