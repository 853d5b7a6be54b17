//! Results of runs of network interfaces, as text and JSON.

use phitwire::nic::LatencyCounts;
use phitwire::text_table::TextTable;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// The result of `phitwire sim --op`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Printed {
    #[serde(flatten)]
    pub about: About,
    /// One row for each size, or each number of network interfaces.
    pub rows: Vec<Row>,
    /// Violations that the checkers found: none in a correct run.
    pub violations: Vec<String>,
}

/// The run and its duration.
#[derive(Debug, Serialize, JsonSchema)]
pub struct About {
    /// The options that define the run, for `phitwire sim --config`.
    pub options: Map<String, Value>,
    /// Name of the network.
    pub topology: String,
    /// The operation.
    pub operation: &'static str,
    /// Source and target, pattern of traffic, or participants.
    pub between: String,
    /// Outstanding messages of each source; null for collective operations.
    pub window: Option<u32>,
    /// Whether hosts took the times that the description gives.
    pub hosts: bool,
    /// Processes that issued messages at each network interface, if not those of the description.
    pub processes: Option<u32>,
    /// Seed of the run.
    pub seed: u64,
    /// Hash of every frame delivered: the same for the same seed and options.
    pub trace_hash: String,
    /// Machine time in microseconds, including the training of links.
    pub machine_us: f64,
    /// Frames that links sent.
    pub frames: u64,
    /// Wall time of the run.
    pub wall_seconds: f64,
}

/// A run, in the machine's time.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Row {
    /// Bytes of each message; null for collective operations.
    pub bytes: Option<u32>,
    /// Network interfaces that sent messages, or took part in a collective operation.
    pub nics: usize,
    /// Messages answered, or collective operations completed.
    pub completed: u64,
    /// Nanoseconds from the first message to the last answer.
    pub elapsed_ns: u64,
    /// Nanoseconds from issue to answer, or from joining an operation to its result, accurate to 1
    /// %.
    pub latency_ns: LatencyNs,
    /// Messages per second of each source, or collective operations per second.
    pub per_second: f64,
    /// Message bytes per second and source, in GB/s; null for collective operations.
    pub gbytes_per_second: Option<f64>,
}

/// Quantiles in nanoseconds.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LatencyNs {
    /// Median.
    p50: u64,
    /// 99th percentile.
    p99: u64,
    /// The highest.
    max: u64,
}

impl From<&LatencyCounts> for LatencyNs {
    fn from(counts: &LatencyCounts) -> Self {
        Self {
            p50: counts.quantile(500),
            p99: counts.quantile(990),
            max: counts.max_ns,
        }
    }
}

/// The result as text.
pub fn table(printed: &Printed) -> String {
    let Printed { about, rows, .. } = printed;
    let window = about.window.map(|window| format!(", window {window}"));
    let mut text = format!(
        "{}: {}, {}{}; {}\n",
        about.topology,
        about.operation,
        about.between,
        window.unwrap_or_default(),
        match (about.hosts, about.processes) {
            (false, _) => "the host takes no time".to_owned(),
            (true, None) => "hosts as described".to_owned(),
            (true, Some(processes)) => format!("{processes} processes on each host"),
        }
    );
    let is_collective = about.window.is_none();
    let head: &[&str] = match is_collective {
        true => &[
            "NICs",
            "operations",
            "p50 ns",
            "p99 ns",
            "max ns",
            "ns each",
        ],
        false => &[
            "bytes",
            "messages",
            "p50 ns",
            "p99 ns",
            "max ns",
            "k messages/s",
            "GB/s",
        ],
    };
    let mut table = TextTable::new(head).figures(0..head.len());
    for row in rows {
        let LatencyNs { p50, p99, max } = row.latency_ns;
        let mut cells = vec![
            row.bytes.map_or(row.nics as u64, u64::from).to_string(),
            row.completed.to_string(),
            p50.to_string(),
            p99.to_string(),
            max.to_string(),
        ];
        match row.gbytes_per_second {
            Some(rate) => {
                cells.extend([format!("{:.1}", row.per_second / 1e3), format!("{rate:.3}")]);
            }
            None => {
                let each = row.elapsed_ns as f64 / row.completed.max(1) as f64;
                cells.push(format!("{each:.1}"));
            }
        }
        table.row(cells);
    }
    text.push_str(&table.render());
    let About {
        trace_hash,
        seed,
        machine_us,
        frames,
        wall_seconds,
        ..
    } = about;
    text.push_str(&format!(
        "trace {trace_hash}, seed {seed}, {machine_us:.1} us of the machine's time, {frames} frames \
         in {wall_seconds:.2} s\n"
    ));
    text
}
