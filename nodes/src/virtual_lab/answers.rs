//! Replies to requests on the control sockets of a virtual lab, and its summary.

use std::io;

use phitwire::time::Time;
use serde_json::{Map, Value, json};

use super::VirtualLab;
use crate::control::{LinkReport, Refusal, Request};
use crate::door::Door;

/// The state of a lab at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    pub time: Time,
    /// Frames that links have sent.
    pub frames: u64,
    /// Hash of every frame delivered.
    pub trace_hash: u64,
}

impl VirtualLab {
    /// What the network has done so far.
    pub fn ended(&self) -> Ended {
        let fabric = &self.world.fabric;
        Ended {
            time: fabric.now(),
            frames: fabric.wire_counters().sent,
            trace_hash: fabric.trace_hash(),
        }
    }

    pub(super) fn serve_control(&mut self, index: usize) -> io::Result<()> {
        let own = self.own();
        let Self {
            world,
            nodes,
            stop,
            lab,
            started,
            ..
        } = self;
        let node = &mut nodes[index];
        let (name, door) = (&node.name, node.door.as_ref());
        let device = world.fabric.node(node.id);
        node.server.serve(|_, request| match request {
            Request::Stats => {
                let mut all = Map::new();
                device.for_each_counter(&mut |name, value| {
                    all.insert(name.to_owned(), json!(value));
                });
                if let Some(door) = door {
                    door.for_each_counter(|name, value| {
                        all.insert(format!("door.{name}"), json!(value));
                    });
                }
                all.extend(
                    own.iter()
                        .map(|(name, value)| (format!("virtual.{name}"), value.clone())),
                );
                Ok::<Value, Refusal>(Value::Object(all))
            }
            Request::Info => {
                let mut info = Map::new();
                for (key, value) in [
                    ("node", json!(name)),
                    ("lab", json!(lab)),
                    ("kind", json!(device.kind().name())),
                    ("pid", json!(std::process::id())),
                    ("version", json!(env!("CARGO_PKG_VERSION"))),
                    ("link", json!("virtual")),
                    ("engine", json!("virtual time")),
                    ("uptime_ms", json!(started.elapsed().as_millis() as u64)),
                ] {
                    info.insert(key.to_owned(), value);
                }
                info.extend(device.describe());
                Ok(Value::Object(info))
            }
            Request::Links => {
                let links = device.links();
                let reports = links.map(|(port, link)| LinkReport::of(port, link));
                Ok(json!(reports.collect::<Vec<_>>()))
            }
            Request::Shutdown => {
                stop.request();
                Ok(json!({}))
            }
            _ => Err(Refusal::from(
                "virtual labs answer only stats, info, links and shutdown so far".to_owned(),
            )),
        })?;
        Ok(())
    }

    /// Virtual time, frames and counters of the lab.
    fn own(&self) -> Map<String, Value> {
        let mut own = Map::new();
        let Ended {
            time,
            frames,
            trace_hash,
        } = self.ended();
        own.insert("time_ns".to_owned(), json!(time.as_ns()));
        own.insert("frames".to_owned(), json!(frames));
        let hash = format!("{trace_hash:016x}");
        own.insert("trace_hash".to_owned(), json!(hash));
        self.counters.for_each(|name, value| {
            own.insert(name.to_owned(), json!(value));
        });
        own
    }

    /// What the lab has done.
    pub fn summary(&self) -> String {
        let mut doors: Map<String, Value> = Map::new();
        for door in self.nodes.iter().filter_map(|node| node.door.as_ref()) {
            Door::for_each_counter(door, |name, value| {
                let sum = doors.get(name).and_then(Value::as_u64).unwrap_or(0);
                doors.insert(name.to_owned(), json!(sum + value));
            });
        }
        let count = |name: &str| doors.get(name).and_then(Value::as_u64).unwrap_or(0);
        let Ended {
            time,
            frames,
            trace_hash,
        } = self.ended();
        let mut text = format!(
            "lab `{}` ran for {:.1} s\n  virtual time {:.3} us, {frames} frames, trace \
             {trace_hash:016x}\n  {} \
             programs, {} commands, {} completions\n",
            self.lab,
            self.started.elapsed().as_secs_f64(),
            time.as_ps() as f64 / 1e6,
            count("attached"),
            count("commands"),
            count("completions"),
        );
        self.counters.for_each(|name, value| {
            if value > 0 {
                text.push_str(&format!("  {name} {value}\n"));
            }
        });
        text
    }
}
