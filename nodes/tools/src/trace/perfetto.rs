//! Traces in Chrome's trace format, which Perfetto (`ui.perfetto.dev`) opens.
//!
//! Each traced packet is a process, and each node on its path a thread. A slice is the time on a
//! link, in a stage, or in total. Times are microseconds since the packet was sent.

use serde_json::{Value, json};

use super::{PathReport, Trace};

/// The file of these traces.
pub fn render(traces: &[Trace]) -> Value {
    let mut events = Vec::new();
    for (number, trace) in traces.iter().enumerate() {
        Process::new(number + 1, trace).write_events(&mut events);
    }
    json!({
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": { "format": "phitwire trace", "version": super::VERSION },
    })
}

/// A packet as a process whose threads are nodes.
struct Process<'a> {
    pid: usize,
    trace: &'a Trace,
    nodes: Vec<&'a str>,
}

impl<'a> Process<'a> {
    fn new(pid: usize, trace: &'a Trace) -> Self {
        Self {
            pid,
            trace,
            nodes: Vec::new(),
        }
    }

    /// Converts a time of the trace to microseconds.
    fn us(&self, value: f64) -> f64 {
        value * self.trace.unit.ps as f64 / 1e6
    }

    /// The thread of a node. Writes its name on the first call.
    fn thread(&mut self, node: &'a str, events: &mut Vec<Value>) -> usize {
        if let Some(index) = self.nodes.iter().position(|own| *own == node) {
            return index + 1;
        }
        self.nodes.push(node);
        let tid = self.nodes.len();
        events.push(json!({
            "ph": "M", "name": "thread_name", "pid": self.pid, "tid": tid, "args": { "name": node },
        }));
        events.push(json!({
            "ph": "M", "name": "thread_sort_index", "pid": self.pid, "tid": tid,
            "args": { "sort_index": tid },
        }));
        tid
    }

    fn write_events(mut self, events: &mut Vec<Value>) {
        let trace = self.trace;
        let name = format!("{} {} -> {}", trace.operation, trace.from, trace.to);
        events.push(json!({
            "ph": "M", "name": "process_name", "pid": self.pid, "args": { "name": name },
        }));
        let source = self.thread(&trace.from, events);
        if let Some(ended) = trace.ended {
            let args = json!({ "outcome": trace.outcome, "identity": trace.identity });
            events.push(self.slice(source, &trace.operation, 0.0, ended, args));
        }
        for way in &trace.ways {
            self.write_path(way, events);
        }
    }

    fn write_path(&mut self, way: &'a PathReport, events: &mut Vec<Value>) {
        let mut before = way.began;
        for hop in &way.hops {
            let tid = self.thread(&hop.router, events);
            let by = json!({ "way": way.kind, "port": hop.in_port, "vc": hop.in_vc });
            if let (Some(from), Some(arrived)) = (before, hop.arrived) {
                events.push(self.slice(tid, "link", from, arrived - from, by));
            }
            for (index, stage) in hop.stages.iter().enumerate() {
                let mut args = json!({ "way": way.kind, "wait": stage.wait });
                if index == 0 {
                    args["choices"] = json!(hop.choices);
                }
                let time = stage.time.unwrap_or(0.0);
                events.push(self.slice(tid, &stage.stage, stage.left - time, time, args));
            }
            before = hop.stages.last().map(|stage| stage.left).or(hop.arrived);
        }
        let tid = self.thread(
            if way.delivered {
                &way.to
            } else {
                way.hops.last().map_or(&way.from, |hop| &hop.router)
            },
            events,
        );
        if let (true, Some(from), Some(came)) = (way.delivered, before, way.came) {
            events.push(self.slice(tid, "link", from, came - from, json!({ "way": way.kind })));
        } else if !way.delivered {
            let at = self.us(before.unwrap_or(0.0));
            events.push(json!({
                "ph": "i", "s": "p", "name": way.end, "cat": "end", "pid": self.pid, "tid": tid, "ts": at,
            }));
        }
    }

    fn slice(&self, tid: usize, name: &str, from: f64, time: f64, args: Value) -> Value {
        json!({
            "ph": "X", "name": name, "cat": "packet", "pid": self.pid, "tid": tid,
            "ts": self.us(from), "dur": self.us(time.max(0.0)), "args": args,
        })
    }
}
