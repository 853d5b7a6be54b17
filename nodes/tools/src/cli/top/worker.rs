//! The thread that samples the lab, so that a stalled node does not block the screen or the keys.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use miette::{IntoDiagnostic, WrapErr};
use phitwire_nodes::control::Request;

use crate::watch::{EventDetector, LabEvent, Rates, Sample, Sampler};

/// A sample of the lab, and the changes since the previous one.
#[derive(Clone, Debug)]
pub struct LabUpdate {
    pub sample: Arc<Sample>,
    /// Rates since the previous sample.
    pub rates: Rates,
    /// Events since the previous sample.
    pub events: Vec<LabEvent>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// Send a command to a node.
    Order(Order),
    /// Whether to sample pipeline stages: only while they are shown.
    Pipelines(bool),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    pub node: String,
    pub request: Request,
    /// Description of the command.
    pub what: String,
}

#[derive(Debug)]
pub enum News {
    LabUpdate(Box<LabUpdate>),
    /// The result of a command.
    Done {
        text: String,
        /// Whether the command succeeded.
        done: bool,
    },
    /// The lab has been taken down.
    Gone,
    /// Another lab of the same name is sampled from now on. The text is its network in one line.
    Another(String),
}

/// The channels of the thread.
pub struct Worker {
    pub tasks: Sender<Task>,
    /// Results of the thread.
    pub news: Receiver<News>,
}

impl Worker {
    /// Samples the lab of this name every `interval` until the task channel is closed. Also returns
    /// the lab's network in one line.
    ///
    /// # Errors
    /// If the lab does not exist, or the thread cannot be started.
    pub fn start(lab: String, interval: Duration) -> miette::Result<(Self, String)> {
        let (tasks, taken) = channel();
        let (sender, news) = channel();
        let (opened, is_open) = channel();
        let work = move || match Sampler::open(&lab) {
            Ok(sampler) => {
                let _ = opened.send(Ok(sampler.network().summary()));
                work(&lab, sampler, interval, &taken, &sender);
            }
            Err(report) => {
                let _ = opened.send(Err(report));
            }
        };
        let thread = thread::Builder::new().name("sampler".to_owned());
        let thread = thread.spawn(work).into_diagnostic();
        thread.wrap_err("cannot start a thread")?;
        let summary = is_open.recv().into_diagnostic()??;
        Ok((Self { tasks, news }, summary))
    }
}

/// Runs until the screen closes its channels.
fn work(
    lab: &str,
    mut sampler: Sampler,
    interval: Duration,
    tasks: &Receiver<Task>,
    news: &Sender<News>,
) {
    let mut before: Option<Arc<Sample>> = None;
    let mut detector = EventDetector::default();
    let (mut was_there, mut pipelines) = (true, false);
    loop {
        let next = Instant::now() + interval;
        let sent = if sampler.is_there() {
            sampler.ask_for_pipelines(pipelines);
            let sample = Arc::new(sampler.sample());
            let look = look(&sampler, &mut detector, before.as_deref(), &sample);
            before = Some(sample);
            was_there = true;
            news.send(News::LabUpdate(Box::new(look)))
        } else if let Ok(another) = Sampler::open(lab) {
            (sampler, before, detector) = (another, None, EventDetector::default());
            was_there = true;
            news.send(News::Another(sampler.network().summary()))
        } else if std::mem::take(&mut was_there) {
            news.send(News::Gone)
        } else {
            Ok(())
        };
        if sent.is_err() {
            return;
        }
        loop {
            match tasks.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(Task::Pipelines(wanted)) => {
                    pipelines = wanted;
                    break;
                }
                Ok(Task::Order(order)) => {
                    let outcome = obey(&mut sampler, &order);
                    if news.send(outcome).is_err() {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

fn look(
    sampler: &Sampler,
    detector: &mut EventDetector,
    before: Option<&Sample>,
    sample: &Arc<Sample>,
) -> LabUpdate {
    let earlier = before.unwrap_or(sample);
    LabUpdate {
        rates: Rates::between(sampler.network(), earlier, sample),
        events: detector.detect(earlier, sample),
        sample: sample.clone(),
    }
}

fn obey(sampler: &mut Sampler, order: &Order) -> News {
    match sampler.ask(&order.node, &order.request) {
        Ok(_) => News::Done {
            text: format!("done: {}", order.what),
            done: true,
        },
        Err(report) => News::Done {
            text: format!("failed: {report}"),
            done: false,
        },
    }
}
