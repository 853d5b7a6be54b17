//! A lab that is looked at.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::history::History;
use crate::recording::{Encoder, Event, Header, header_of, moment_of};
use crate::watch::{Chronicle, LabEvent, Sample, Sampler};

/// Nodes up to which all are asked for their stages each time.
const MOST_ASKED: usize = 80;
/// Otherwise one time out of so many.
const SELDOM: u64 = 5;

/// How long a signal may wait.
const TURN: Duration = Duration::from_millis(50);

/// The latest of a lab, as browsers are told it.
#[derive(Debug)]
pub struct Live {
    header: Header,
    history: Mutex<History>,
    /// What has been done and is not in the time line yet.
    done: Mutex<Vec<Event>>,
    over: Mutex<Option<String>>,
}

impl Live {
    /// The lab of a sampler, of which nothing is known yet.
    pub fn new(sampler: &Sampler, begin_ms: u64) -> Self {
        let header = header_of(sampler.network(), sampler.lab(), begin_ms);
        Self {
            history: Mutex::new(History::new(&header)),
            header,
            done: Mutex::default(),
            over: Mutex::default(),
        }
    }

    /// What there is.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What has happened from line `from` on: see [`History::since`].
    pub fn since(&self, from: u64) -> String {
        held(&self.history).since(from)
    }

    /// Why nothing more comes, if so.
    pub fn over(&self) -> Option<String> {
        held(&self.over).clone()
    }

    /// Puts something that was done into the time line.
    pub fn note(&self, event: Event) {
        held(&self.done).push(event);
    }

    /// Looks at the lab at that interval as long as `goes_on` says so and the lab is there.
    pub fn watch(&self, mut sampler: Sampler, interval: Duration, goes_on: impl Fn() -> bool) {
        let begin_ms = self.header.clock.begin_ms.unwrap_or(0);
        let mut encoder = Encoder::new(self.header.clone());
        let (mut before, mut chronicle): (Option<Sample>, _) = (None, Chronicle::default());
        let mut number = 0;
        while goes_on() {
            if !sampler.is_there() {
                *held(&self.over) = Some("the lab has been taken down".to_owned());
                return;
            }
            let begun = Instant::now();
            let is_small = self.header.nodes.len() <= MOST_ASKED;
            sampler.ask_for_pipelines(is_small || number % SELDOM == 0);
            let sample = sampler.sample();
            let mut told = std::mem::take(&mut *held(&self.done));
            if let Some(before) = &before {
                told.extend(chronicle.tell(before, &sample).into_iter().map(event_of));
            }
            let t = sample.at_ms.saturating_sub(begin_ms);
            let line = encoder.line(t, &moment_of(&self.header, &sample), told);
            held(&self.history).push(line);
            before = Some(sample);
            number += 1;
            // However long the interval, a signal is heard, and the lab's end seen, soon.
            while goes_on() && sampler.is_there() && begun.elapsed() < interval {
                std::thread::sleep(interval.saturating_sub(begun.elapsed()).min(TURN));
            }
        }
    }
}

/// An event of a lab as recordings have it.
pub fn event_of(event: LabEvent) -> Event {
    Event {
        kind: event.kind.name().to_owned(),
        node: Some(event.node),
        link: event.link.map(u32::from),
        text: event.text,
    }
}

fn held<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nobody leaves anything half done in there.
    what.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
