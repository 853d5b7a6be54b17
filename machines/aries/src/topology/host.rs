//! The `[host]` section of a description: times of hosts in the machine's time.

use core::fmt::{self, Write as _};
use core::ops::RangeInclusive;

use crate::nic::HostTimes;
use phitwire::net::{Fields, Section};

/// A key, its field and its valid values.
type Key = (
    &'static str,
    fn(&mut HostTimes) -> &mut u64,
    RangeInclusive<u64>,
);

/// Times up to a millisecond, so that nothing times out.
const NS: RangeInclusive<u64> = 0..=1_000_000;

const KEYS: [Key; 10] = [
    (
        "issue_per_s",
        |host| &mut host.issue_per_s,
        1_000..=1_000_000_000,
    ),
    ("crossing_ns", |host| &mut host.crossing_ns, NS),
    ("read_ns", |host| &mut host.read_ns, NS),
    (
        "pcie_mbytes_per_s",
        |host| &mut host.pcie_mbytes_per_s,
        10..=1_000_000,
    ),
    (
        "pcie_overhead_bytes",
        |host| &mut host.pcie_overhead_bytes,
        0..=4_096,
    ),
    ("line_cycles", |host| &mut host.line_cycles, 0..=1_000),
    ("fma_bytes", |host| &mut host.fma_bytes, 0..=1 << 32),
    ("amo_hit_cycles", |host| &mut host.amo_hit_cycles, 0..=1_000),
    ("amo_miss_ns", |host| &mut host.amo_miss_ns, 0..=10_000),
    (
        "engine_step_ns",
        |host| &mut host.engine_step_ns,
        0..=100_000,
    ),
];

pub(super) fn read(fields: &mut Fields, mut section: Section<'_, '_>) -> HostTimes {
    let mut host = HostTimes::PAPER;
    let processes = fields.number(&mut section, "processes", 1..=MAX_PROCESSES.into());
    host.processes = processes.map_or(host.processes, |number| number as u32);
    for (key, field, range) in KEYS {
        if let Some(number) = fields.number(&mut section, key, range) {
            *field(&mut host) = number;
        }
    }
    fields.finish(section);
    host
}

/// Maximum number of processes that issue messages at one NIC.
const MAX_PROCESSES: u32 = 1_024;

/// Writes the values that differ from the paper's.
pub(super) fn write(out: &mut String, host: &HostTimes) -> fmt::Result {
    let (mut own, mut paper) = (*host, HostTimes::PAPER);
    if own == paper {
        return Ok(());
    }
    writeln!(out, "\n[host]")?;
    if own.processes != paper.processes {
        writeln!(out, "processes = {}", own.processes)?;
    }
    for (key, field, _) in KEYS {
        let value = *field(&mut own);
        if value != *field(&mut paper) {
            writeln!(out, "{key} = {value}")?;
        }
    }
    Ok(())
}
