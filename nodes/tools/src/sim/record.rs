//! Recordings of simulations.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::path::Path;
use std::rc::Rc;

use phitwire::net::Network;
use phitwire::sim::direct::{ConfigError, EndSnapshot, Links, Run, Snapshot};

use crate::recording::{
    Clock, Encoder, EndField, EndMoment, Event, Header, Moment, NodeMoment, Source, Writer,
};

/// Snapshots per second of playback.
const PER_SECOND: u64 = 10;

/// The recorder of a run.
#[derive(Debug)]
pub struct Record {
    inner: Rc<RefCell<Inner>>,
    every: u64,
}

#[derive(Debug)]
struct Inner {
    writer: Option<Writer<File>>,
    encoder: Encoder,
    /// Last state of each link end: whether it was up.
    up: Vec<bool>,
    lines: u64,
    failed: Option<io::Error>,
}

impl Record {
    /// A recording of `network` in a file, with a moment every `every` cycles.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn create(
        file: &Path,
        network: &dyn Network,
        links: Links,
        every: u64,
    ) -> io::Result<Self> {
        let clock = Clock {
            unit: "cycles".to_owned(),
            per_second: (PER_SECOND * every) as f64,
            begin_ms: None,
        };
        let mut header = Header::new(network, network.name(), Source::Sim, clock);
        if links == Links::Direct {
            // A link carries one phit per cycle.
            "phits".clone_into(&mut header.carried);
            header.full = Some(1.0);
        }
        let inner = Inner {
            writer: Some(Writer::create(file, &header)?),
            up: vec![true; 2 * header.links.len()],
            encoder: Encoder::new(header),
            lines: 0,
            failed: None,
        };
        Ok(Self {
            inner: Rc::new(RefCell::new(inner)),
            every,
        })
    }

    /// Records `run` from now on.
    ///
    /// # Errors
    /// If the network belongs to another machine.
    pub fn watch(&self, run: &mut dyn Run, network: &dyn Network) -> Result<(), ConfigError> {
        let inner = Rc::clone(&self.inner);
        let record = move |shot| inner.borrow_mut().record(shot);
        run.watch(network, self.every, Box::new(record))
    }

    /// Ends the recording. Returns the number of moments.
    ///
    /// # Errors
    /// If the recording could not be written.
    pub fn finish(self) -> io::Result<u64> {
        let mut inner = self.inner.borrow_mut();
        if let Some(error) = inner.failed.take() {
            return Err(error);
        }
        if let Some(writer) = inner.writer.take() {
            writer.finish()?;
        }
        Ok(inner.lines)
    }
}

impl Inner {
    fn record(&mut self, shot: Snapshot) {
        let events = self.events(&shot);
        let mut moment = Moment {
            ends: Vec::with_capacity(shot.ends.len()),
            nodes: vec![NodeMoment::default(); self.encoder.header().nodes.len()],
        };
        for index in 0..shot.ends.len() {
            let end = shot.ends[index].as_ref();
            let other = shot.ends[index ^ 1].as_ref();
            moment.ends.push(end.map(|end| moment_of(end, other)));
        }
        for (chip, report) in shot.routers {
            // Routers are the first nodes, so their numbers are indices.
            if let Some(node) = moment.nodes.get_mut(chip as usize) {
                node.pipeline = Some(report);
            }
        }
        let line = self.encoder.line(shot.cycle, &moment, events);
        if let Some(writer) = &mut self.writer
            && let Err(error) = writer.line(&line)
        {
            self.failed.get_or_insert(error);
            self.writer = None;
        }
        self.lines += 1;
    }

    /// Events for links that have gone down or come back up.
    fn events(&mut self, shot: &Snapshot) -> Vec<Event> {
        let mut events = Vec::new();
        for (index, end) in shot.ends.iter().enumerate() {
            let Some(end) = end else {
                continue;
            };
            let was_up = std::mem::replace(&mut self.up[index], end.up);
            if was_up != end.up && index % 2 == 0 {
                let (kind, text) = match end.up {
                    true => ("link-up", "link up"),
                    false => ("link-down", "link down"),
                };
                events.push(Event {
                    kind: kind.to_owned(),
                    node: None,
                    link: Some(index as u32 / 2),
                    text: text.to_owned(),
                });
            }
        }
        events
    }
}

fn moment_of(end: &EndSnapshot, other: Option<&EndSnapshot>) -> EndMoment {
    let mut moment = EndMoment {
        state: match end.up {
            true => "active".to_owned(),
            false => "down".to_owned(),
        },
        ..EndMoment::default()
    };
    let mut set = |field: EndField, value: u64| moment.numbers[field as usize] = value as i64;
    set(EndField::Up, end.up.into());
    set(EndField::RxLanes, end.lanes[0].into());
    set(EndField::TxLanes, end.lanes[1].into());
    set(EndField::Carried, end.carried);
    // An end without a count of its own has received everything that the other end sent.
    let arrived = other.map_or(0, |other| other.carried);
    set(EndField::Received, end.received.unwrap_or(arrived));
    set(EndField::Sent, end.sent);
    set(EndField::Resent, end.resent);
    set(EndField::BadChecks, end.bad_checks);
    set(EndField::Window, end.window);
    let credits = EndField::Credits as usize;
    for (vc, (&left, &offer)) in end
        .credits
        .iter()
        .zip(&end.offers)
        .take(EndField::VCS)
        .enumerate()
    {
        moment.numbers[credits + vc] = left.into();
        moment.numbers[credits + EndField::VCS + vc] = offer.into();
    }
    moment
}
