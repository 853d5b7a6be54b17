//! Virtual channel tables of a torus, for the commands that search for, show and load them.

use core::fmt::Write as _;
use std::collections::BTreeMap;

use phitwire_framing::t3e::direction::Direction;

use super::channels::ChannelTables;
use super::check;
use super::given::{DIMENSIONS, GivenTables, RingKind, digits, ranges};
use super::model::Torus;
use super::routes::Routes;
use crate::route::RouteRegisters;
use crate::vc::{Level, Ring, Tries, VcTables};
use phitwire::net::show::counted;
use phitwire::net::{
    ChannelReport, ChannelSearch, FoundChannels, Imbalance, LinkImbalance, NodeRef, Problems,
    RegisterValue, RingReport, Shown, TunableChannels,
};
use phitwire::text_table::TextTable;

/// Heading of the file of tables.
const ABOUT: &str = "\
# Virtual-channel tables: for each node, the channel (0 or 1) on which packets enter a ring.
# Digit n, from 0, is for ordinates n, n + 8, n + 16 and n + 24. A description includes this file
# with `vc_tables = \"FILE\"`; `phitwire manage channels FILE --lab LAB` loads it into a live lab.
";

impl Torus {
    fn routed(&self) -> Result<&Routes, String> {
        self.routes().map_err(|error| error.to_string())
    }

    /// A circular wait among channels, if each router has any one of these register sets.
    fn dependency_cycle_by(
        &self,
        registers: &[&[RouteRegisters]],
    ) -> Result<Option<String>, String> {
        let routes = self.routed()?.tables.routes();
        let entries = routes.map(|(from, _, entry)| (from, entry));
        Ok(check::dependency_cycle(self, registers, entries).map(|mistake| mistake.message))
    }

    /// Registers without tables, for a search of the rings in some dimensions. Rings without
    /// datelines are not searched.
    fn only(&self, is_wanted: &dyn Fn(usize) -> bool) -> Vec<RouteRegisters> {
        let wanted = Direction::ALL.iter();
        let wanted = wanted.filter(|direction| is_wanted(direction.dimension()));
        let datelines = wanted.fold(0, |bits, direction| bits | 1 << direction.index());
        let mut all: Vec<RouteRegisters> = (0..self.shape.nodes())
            .map(|node| self.shape.registers(node))
            .collect();
        for registers in &mut all {
            registers.datelines &= datelines;
        }
        all
    }

    /// The registers of the description with the given values applied.
    fn holding(&self, values: &[RegisterValue]) -> Result<Vec<RouteRegisters>, String> {
        let mut registers = self.routed()?.registers.clone();
        for RegisterValue {
            node,
            register,
            value,
        } in values
        {
            let direction = register.strip_prefix(REGISTER);
            let direction = direction.and_then(|number| number.parse::<usize>().ok());
            let table = match (node, direction) {
                (NodeRef::Chip(node), Some(direction)) => registers
                    .get_mut(*node as usize)
                    .and_then(|own| own.vc_tables.get_mut(direction)),
                _ => None,
            };
            let table =
                table.ok_or_else(|| format!("{register} is not a table register of a router"))?;
            *table = u8::try_from(*value)
                .map_err(|_| format!("{register}: {value:#x} is not a table"))?;
        }
        Ok(registers)
    }
}

/// Prefix of the names of table registers, before the number of the direction.
const REGISTER: &str = "vc_table.";

fn register((node, direction, table): (u32, Direction, u8)) -> RegisterValue {
    RegisterValue {
        node: NodeRef::Chip(node),
        register: format!("{REGISTER}{}", direction.index()),
        value: table.into(),
    }
}

/// The dimensions with the given names; each must have rings.
fn dimensions(
    words: &[String],
    kinds: &BTreeMap<RingKind, Vec<Vec<u32>>>,
) -> Result<Vec<usize>, String> {
    let has = |dimension: usize| kinds.keys().any(|kind| kind.dimension == dimension);
    let dimension = |word: &String| match DIMENSIONS.iter().find(|(name, _)| name == word) {
        Some(&(_, dimension)) if has(dimension) => Ok(dimension),
        Some(_) => Err(format!("the torus has no rings in {word}")),
        None => Err(format!(
            "unknown dimension `{}`: expected X, Y or Z",
            Shown(word)
        )),
    };
    words.iter().map(dimension).collect()
}

impl TunableChannels for Torus {
    fn search_channels(&self, wanted: &ChannelSearch) -> Result<FoundChannels, String> {
        let kinds = RingKind::all(&self.shape);
        let named = dimensions(&wanted.rings, &kinds)?;
        let is_wanted = |dimension: usize| named.is_empty() || named.contains(&dimension);
        if kinds.is_empty() {
            return Err(String::from(
                "a torus of one node has no rings and no tables",
            ));
        }
        let routes = self.routed()?;
        let tries = Tries {
            seed: wanted.seed,
            flips: wanted.steps,
        };
        let mut searched = self.only(&is_wanted);
        ChannelTables::by(tries).fill(&self.shape, &mut searched, &routes.tables);
        let tables =
            GivenTables::of_registers(&self.shape, &searched, |kind| is_wanted(kind.dimension));
        let mut registers = routes.registers.clone();
        tables.fill(&self.shape, &mut registers);
        let circle = self.dependency_cycle_by(&[&registers])?;
        let mut file = String::from(ABOUT);
        file.push('\n');
        // Writing to a String never fails.
        let _ = tables.write(&mut file);
        let sections = tables.sections().into_iter();
        let found = sections.map(|(dimensions, kind, datelines, entries)| {
            let rings = |&dimension: &usize| {
                let ordinates = kind.ordinates.clone();
                kinds[&RingKind {
                    dimension,
                    ordinates,
                }]
                    .len()
            };
            Ok(Found {
                rings: dimensions.iter().map(rings).sum(),
                dimensions,
                ..Found::of(kind, datelines, entries)?
            })
        });
        let found = found.collect::<Result<Vec<Found>, String>>()?;
        Ok(FoundChannels {
            text: text(self, &found, circle.as_deref()),
            report: ChannelReport {
                name: self.graph.name.clone(),
                seed: wanted.seed,
                steps: wanted.steps,
                rings: found.iter().map(Found::report).collect(),
                circle,
            },
            file,
        })
    }

    fn channel_tables(&self) -> Result<Vec<RegisterValue>, String> {
        let registers = &self.routed()?.registers;
        let tables = GivenTables::of_registers(&self.shape, registers, |_| true);
        Ok(tables
            .entries(&self.shape)
            .into_iter()
            .map(register)
            .collect())
    }

    fn read_channel_tables(
        &self,
        file: &str,
        bytes: &[u8],
    ) -> Result<Vec<RegisterValue>, Problems> {
        let tables = GivenTables::read_file(file, bytes, &self.shape)?;
        Ok(tables
            .entries(&self.shape)
            .into_iter()
            .map(register)
            .collect())
    }

    fn judge_channels(&self, now: &[RegisterValue], new: &[RegisterValue]) -> Result<(), String> {
        let before = self.holding(now)?;
        let all: Vec<RegisterValue> = now.iter().chain(new).cloned().collect();
        let after = self.holding(&all)?;
        if let Some(circle) = self.dependency_cycle_by(&[&after])? {
            return Err(circle);
        }
        // Tables that already permit a circular wait cannot be changed safely, only replaced.
        if self.dependency_cycle_by(&[&before])?.is_some() {
            return Ok(());
        }
        match self.dependency_cycle_by(&[&before, &after])? {
            None => Ok(()),
            Some(circle) => Err(format!(
                "while only some routers have the new tables: {circle}"
            )),
        }
    }
}

/// The tables of equivalent rings.
struct Found<'a> {
    dimensions: Vec<usize>,
    rings: usize,
    datelines: [u8; 2],
    /// Tables of + and of -, by ordinate.
    entries: &'a [[u8; 2]],
    /// The tables before the search: the time-of-crossing assignment.
    plain: VcTables,
    tables: VcTables,
}

impl<'a> Found<'a> {
    /// The tables of a kind of rings, without counting any ring yet.
    fn of(kind: &RingKind, datelines: [u8; 2], entries: &'a [[u8; 2]]) -> Result<Self, String> {
        let ring = Ring::new(&kind.ordinates, datelines);
        let ring =
            ring.map_err(|error| format!("cannot build tables for rings in {kind}: {error}"))?;
        let tables = VcTables::from_entries(ring.clone(), entries);
        Ok(Self {
            dimensions: Vec::new(),
            rings: 0,
            datelines,
            entries,
            plain: VcTables::time_of_crossing(ring),
            tables: tables.ok_or_else(|| format!("cannot build tables for rings in {kind}"))?,
        })
    }

    fn dimensions(&self) -> Vec<&'static str> {
        let names = self.dimensions.iter();
        names.map(|&dimension| DIMENSIONS[dimension].0).collect()
    }

    fn ordinates(&self) -> &[u8] {
        self.tables.ring().ordinates()
    }

    fn imbalances(&self) -> Vec<Imbalance> {
        let mut imbalances = Vec::new();
        for minus in [false, true] {
            for level in Level::of(self.ordinates().len()) {
                let of = |tables: &VcTables| {
                    let balance = tables.one_way(minus).balance(level);
                    LinkImbalance {
                        average: balance.average,
                        maximum: balance.maximum,
                    }
                };
                imbalances.push(Imbalance {
                    way: if minus { "-" } else { "+" },
                    nodes: level.nodes,
                    before: of(&self.plain),
                    after: of(&self.tables),
                });
            }
        }
        imbalances
    }

    fn report(&self) -> RingReport {
        let tables = |way: usize| {
            let tables = self.entries.iter().map(|table| digits(table[way]));
            tables.collect()
        };
        RingReport {
            dimensions: self.dimensions(),
            count: self.rings,
            ordinates: self.ordinates().to_vec(),
            datelines: self.datelines,
            plus: tables(0),
            minus: tables(1),
            imbalance: self.imbalances(),
        }
    }

    fn text(&self, out: &mut String) {
        let [plus, minus] = self.datelines;
        let _ = writeln!(
            out,
            "{} in {}, ordinates {}: dateline of + at {plus}, of - at {minus}\n",
            counted(self.rings, "ring"),
            self.dimensions().join(", "),
            ranges(self.ordinates()),
        );
        let mut tables = TextTable::new(&[
            "Node",
            "+ to 01234567",
            "register",
            "- to 01234567",
            "register",
        ])
        .figures(0..5);
        for (ordinate, [plus, minus]) in self.ordinates().iter().zip(self.entries) {
            tables.row([
                ordinate.to_string(),
                digits(*plus),
                format!("{plus:#04x}"),
                digits(*minus),
                format!("{minus:#04x}"),
            ]);
        }
        out.push_str(&tables.render());
        out.push('\n');
        let head = [
            "Imbalance",
            "of nodes",
            "average before",
            "after",
            "maximum before",
            "after",
        ];
        let mut table = TextTable::new(&head).figures(1..6);
        for imbalance in self.imbalances() {
            let (before, after) = (imbalance.before, imbalance.after);
            let figure = |number: f64| format!("{number:.3}");
            table.row([
                String::from(imbalance.way),
                imbalance.nodes.to_string(),
                figure(before.average),
                figure(after.average),
                figure(before.maximum),
                figure(after.maximum),
            ]);
        }
        out.push_str(&table.render());
    }
}

/// Tables and imbalances of all kinds of rings, and whether packets can deadlock.
fn text(torus: &Torus, kinds: &[Found<'_>], circle: Option<&str>) -> String {
    let mut out = format!("{}: virtual-channel tables\n", torus.graph.name);
    for kind in kinds {
        out.push('\n');
        kind.text(&mut out);
    }
    out.push('\n');
    out.push_str(&match circle {
        None => String::from("No deadlock: packets cannot wait for each other in a cycle.\n"),
        Some(circle) => format!("{circle}\n"),
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::TorusSpec;

    #[test]
    fn only_the_rings_that_are_wanted_are_searched() {
        let torus = TorusSpec::new("8x4x4".parse().expect("a shape")).torus();
        let routes = torus.routes().expect("tables");
        let mut searched = torus.only(&|dimension| dimension == 1);
        ChannelTables::default().fill(&torus.shape, &mut searched, &routes.tables);
        for (searched, all) in searched.iter().zip(&routes.registers) {
            let [_, plus, _, _, minus, _] = all.vc_tables;
            assert_eq!(searched.vc_tables, [0, plus, 0, 0, minus, 0]);
        }
        assert!(searched.iter().any(|registers| registers.vc_tables[1] != 0));
    }

    #[test]
    fn a_ring_that_cannot_be_searched_is_reported() {
        let kind = |nodes| RingKind {
            dimension: 2,
            ordinates: (0..nodes).collect(),
        };
        let refused = |nodes, datelines, entries: &[[u8; 2]]| {
            Found::of(&kind(nodes), datelines, entries).err()
        };
        assert_eq!(refused(4, [0, 3], &[[0; 2]; 4]), None);
        for (nodes, datelines, entries, expected) in [
            (
                33,
                [0, 32],
                33,
                "rings in Z of the ordinates 0 to 32: a ring of 33 nodes",
            ),
            (4, [0, 4], 4, "no node at dateline ordinate 4"),
            (
                4,
                [0, 3],
                3,
                "cannot build tables for rings in Z of the ordinates 0 to 3",
            ),
        ] {
            let why = refused(nodes, datelines, &vec![[0; 2]; entries]);
            assert!(
                why.as_ref().is_some_and(|why| why.contains(expected)),
                "{why:?}"
            );
        }
    }
}
