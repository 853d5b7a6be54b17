//! The live view of a lab.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::history::History;
use crate::recording::{Encoder, Event, Header, header_of, moment_of};
use crate::watch::{EventDetector, LabEvent, Sample, Sampler};

/// Number of nodes up to which a lab's pipeline stages are in every sample.
const MOST_ASKED: usize = 80;
/// Interval, in samples, at which pipeline stages of larger labs are sampled.
const SELDOM: u64 = 5;

/// Longest time until a signal is noticed.
const TURN: Duration = Duration::from_millis(50);

/// The latest state of a lab, for browsers.
#[derive(Debug)]
pub struct Live {
    header: Header,
    history: Mutex<History>,
    /// Actions that are not in the timeline yet.
    done: Mutex<Vec<Event>>,
    over: Mutex<Option<String>>,
}

impl Live {
    /// The view of a sampler's lab, before the first sample.
    pub fn new(sampler: &Sampler, begin_ms: u64) -> Self {
        let header = header_of(sampler.network(), sampler.lab(), begin_ms);
        Self {
            history: Mutex::new(History::new(&header)),
            header,
            done: Mutex::default(),
            over: Mutex::default(),
        }
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Lines from number `from` on: see [`History::since`].
    pub fn since(&self, from: u64) -> String {
        held(&self.history).since(from)
    }

    /// Why no more lines follow; `None` while the lab is watched.
    pub fn over(&self) -> Option<String> {
        held(&self.over).clone()
    }

    /// Adds an action to the timeline.
    pub fn note(&self, event: Event) {
        held(&self.done).push(event);
    }

    /// Samples the lab at this interval while `goes_on` returns true and the lab exists.
    pub fn watch(&self, mut sampler: Sampler, interval: Duration, goes_on: impl Fn() -> bool) {
        let begin_ms = self.header.clock.begin_ms.unwrap_or(0);
        let mut encoder = Encoder::new(self.header.clone());
        let (mut before, mut detector): (Option<Sample>, _) = (None, EventDetector::default());
        let mut number = 0;
        while goes_on() {
            if !sampler.is_there() {
                *held(&self.over) = Some(format!(
                    "the lab has been taken down; to watch a new one of this name, restart \
                     `phitwire view --lab {}`",
                    sampler.lab()
                ));
                return;
            }
            let begun = Instant::now();
            let is_small = self.header.nodes.len() <= MOST_ASKED;
            sampler.ask_for_pipelines(is_small || number % SELDOM == 0);
            let sample = sampler.sample();
            let mut events = std::mem::take(&mut *held(&self.done));
            if let Some(before) = &before {
                events.extend(detector.detect(before, &sample).into_iter().map(event_of));
            }
            let t = sample.at_ms.saturating_sub(begin_ms);
            let line = encoder.line(t, &moment_of(&self.header, &sample), events);
            held(&self.history).push(line);
            before = Some(sample);
            number += 1;
            // Poll, so that a signal or the end of the lab is noticed even during a long interval.
            while goes_on() && sampler.is_there() && begun.elapsed() < interval {
                std::thread::sleep(interval.saturating_sub(begun.elapsed()).min(TURN));
            }
        }
    }
}

/// Converts a lab's event for recordings.
pub fn event_of(event: LabEvent) -> Event {
    Event {
        kind: event.kind.name().to_owned(),
        node: Some(event.node),
        link: event.link.map(u32::from),
        text: event.text,
    }
}

fn held<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    // Ignore poisoning: no panic can interrupt an update.
    what.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
