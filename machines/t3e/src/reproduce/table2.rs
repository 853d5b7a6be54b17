//! "Router fall-through latencies" (T3E table 2): "input pins of one chip to input pins of the next
//! chip".

use phitwire_framing::t3e::header::Command;

use super::harness::{Harness, Passage};
use super::sizes::torus;
use crate::router::PROCESSOR;
use phitwire::reproduce::{Kind, Row, Source, Table, Tolerance};

pub const CLOCK_NS: f64 = 40.0 / 3.0;

/// What a router does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Straight,
    Turn,
    Source,
    Destination,
}

/// The rows: action, clocks, nanoseconds.
const PAPER: [(Action, &str, f64, f64); 4] = [
    (Action::Straight, "straight through", 3.0, 40.0),
    (Action::Turn, "turn", 6.0, 80.0),
    (Action::Source, "end-point: source", 10.0, 133.0),
    (Action::Destination, "end-point: destination", 10.0, 133.0),
];

const COMMANDS: [Command; 4] = [Command::Get1, Command::Get8, Command::Put1, Command::Put8];

/// What the routers on a packet's path did with it, and their clocks.
fn actions(passages: &[Passage]) -> impl Iterator<Item = (Action, u64)> {
    passages.windows(2).map(|pair| {
        let action = match (pair[0].port, pair[1].port) {
            (Some(PROCESSOR), _) => Action::Source,
            (_, None) => Action::Destination,
            // Equal input ports at both routers mean that the packet went straight.
            (from, to) if from == to => Action::Straight,
            _ => Action::Turn,
        };
        (action, pair[1].cycle - pair[0].cycle)
    })
}

/// A network of the given size, in which the first node sends to all others in turn.
fn seen(size: &str) -> Result<Vec<(Action, u64)>, String> {
    let torus = torus(size)?;
    let registers = torus.registers().map_err(|error| error.to_string())?;
    let mut network = Harness::new(torus.shape(), registers);
    network.watch();
    let mut seen = Vec::new();
    for to in 1..torus.shape().nodes() {
        for command in COMMANDS {
            for ordered in [false, true] {
                network.ask(0, to, command, ordered);
                if !network.run_to_rest() {
                    return Err(format!("a packet to {to} did not arrive"));
                }
                // The request, followed by the response.
                let passages = network.watch();
                let ends = |passage: &Passage| passage.port.is_none();
                for packet in passages.split_inclusive(ends) {
                    seen.extend(actions(packet));
                }
            }
        }
    }
    Ok(seen)
}

/// Sends packets and measures their times.
///
/// # Errors
/// If a packet does not arrive.
pub fn table() -> Result<Table, String> {
    Ok(table_of(&seen("8x8x8")?))
}

fn table_of(seen: &[(Action, u64)]) -> Table {
    let mut rows = Vec::new();
    for (action, label, clocks, ns) in PAPER {
        let mut times = seen.iter().filter(|(did, _)| *did == action);
        let first = times.next().map(|(_, clocks)| *clocks);
        // Report NaN if times differ, because it is outside any tolerance.
        let alike = first.filter(|first| times.all(|(_, clocks)| clocks == first));
        let ours = alike.map_or(f64::NAN, |clocks| clocks as f64);
        let label = |unit| format!("{label}, {unit}");
        let row = |unit, paper, ours, most| {
            let (kind, within) = (Kind::Running, Tolerance::Absolute(most));
            Row::new(kind, Source::Paper, label(unit), paper, ours, within)
        };
        rows.push(row("clocks", clocks, ours, 0.0));
        rows.push(row("ns", ns, ours * CLOCK_NS, 0.5));
    }
    Table {
        title: "Router fall-through latencies (T3E table 2)".into(),
        unit: "",
        decimals: 1,
        rows,
        also: Vec::new(),
        assumptions: vec![
            format!(
                "Run: in an 8x8x8 torus, the first processor sends gets and puts of one and eight \
                 words to each other one, with and without adaptive routing; each transfer \
                 completes before the next one starts. {} times at routers, from pins to pins; a \
                 row shows the time common to all passages of its kind.",
                seen.len()
            ),
            "The paper prints 133 ns for 10 clocks of 13.33 ns, and says that end-points vary \
             \"somewhat with packet type\", but not how; here they do not vary."
                .into(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routers_take_the_paper_s_times() {
        let table = table_of(&seen("4x4x4").unwrap());
        assert!(table.within(), "{table:#?}");
    }

    #[test]
    fn a_router_that_differs_once_is_outside() {
        let mut seen = seen("4x2x2").unwrap();
        assert!(table_of(&seen).within());
        let turn = seen.iter().position(|(action, _)| *action == Action::Turn);
        seen[turn.unwrap()].1 += 1;
        let table = table_of(&seen);
        assert_eq!(table.rows.iter().filter(|row| !row.within()).count(), 2);
    }
}
