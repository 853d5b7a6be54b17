//! Runs the attack, with one thread per link end, and reports the results.

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use phitwire::rng::Rng;
use serde_json::{Value, json};

use crate::forge::Forge;
use crate::options::{Form, Options};
use crate::plan::{End, ends};
use crate::wire::{Hearing, MAX_MESSAGE_BYTES, Sender, Wire};

const MOST_RECORDED_BYTES: usize = 64 << 20;
/// Listens to whole messages, for attacks that must not miss many frames.
const ALL: Hearing = Hearing {
    patience: Duration::from_millis(1),
    backlog: 32 << 20,
    message: MAX_MESSAGE_BYTES,
};
/// Listens to the first frames of each message, for attacks that need only recent frames.
const NEW: Hearing = Hearing {
    patience: Duration::ZERO,
    backlog: 256 << 10,
    message: 4 << 10,
};
/// Maximum number of frames sent without listening in between.
const BURST: u64 = 512;
/// Sleep of a sender that has nothing due.
const NAP: Duration = Duration::from_micros(500);
const PROVOCATION_INTERVAL: Duration = Duration::from_millis(10);

/// Frames to resend, each with its due time.
type Waiting = VecDeque<(Instant, Vec<u8>)>;

/// Results of one end.
#[derive(Debug, Default)]
struct Sent {
    heard: u64,
    frames: u64,
    /// Frames that the kernel rejected.
    refused: u64,
    by: BTreeMap<&'static str, u64>,
}

/// Results of all ends.
#[derive(Debug)]
pub struct Report {
    ends: Vec<(End, Sent)>,
    took: Duration,
}

impl Report {
    /// Whether every end sent all its frames.
    pub fn is_whole(&self, options: &Options) -> bool {
        self.ends
            .iter()
            .all(|(_, sent)| sent.frames >= options.count)
    }

    pub fn json(&self, options: &Options) -> Value {
        let total = |of: fn(&Sent) -> u64| self.ends.iter().map(|(_, sent)| of(sent)).sum::<u64>();
        let ends: Vec<Value> = self
            .ends
            .iter()
            .map(|(end, sent)| {
                json!({
                    "link": end.link,
                    "from": end.node, "from_port": end.port, "to": end.peer, "to_port": end.peer_port,
                    "heard": sent.heard, "sent": sent.frames, "refused": sent.refused, "by": sent.by,
                })
            })
            .collect();
        json!({
            "form": options.form.name(), "delay_ms": options.delay_ms,
            "sent": total(|sent| sent.frames), "refused": total(|sent| sent.refused),
            "seconds": self.took.as_secs_f64(), "ends": ends,
        })
    }
}

/// Attacks all ends at once.
///
/// # Errors
/// When the lab or one of its interfaces does not exist, or a packet socket cannot be opened.
pub fn run(options: &Options) -> Result<Report, Box<dyn Error>> {
    let ends = ends(&options.lab, &options.links)?;
    let begin = Instant::now();
    let others = &Others {
        unready: AtomicUsize::new(ends.len()),
        failed: AtomicBool::new(false),
    };
    let sent = thread::scope(|scope| {
        let threads: Vec<_> = ends
            .iter()
            .enumerate()
            .map(|(stream, end)| {
                let rng = Rng::new(options.seed, stream as u64);
                scope.spawn(move || {
                    Attack::open(end, options, rng, others)
                        .and_then(Attack::run)
                        .inspect_err(|_| others.failed.store(true, Ordering::Relaxed))
                        .map_err(|error| error.to_string())
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err("a thread panicked".to_owned()))
            })
            .collect::<Result<Vec<_>, _>>()
    })?;
    Ok(Report {
        ends: ends.into_iter().zip(sent).collect(),
        took: begin.elapsed(),
    })
}

/// State shared by the attacks from all ends.
struct Others {
    /// Number of ends that have not yet seen the frames to forge from.
    unready: AtomicUsize,
    /// Whether an attack has ended with an error.
    failed: AtomicBool,
}

/// The attack from one end of a link.
struct Attack<'a> {
    options: &'a Options,
    wire: Wire,
    rng: Rng,
    sent: Sent,
    begin: Instant,
    deadline: Instant,
    others: &'a Others,
}

impl<'a> Attack<'a> {
    fn open(
        end: &End,
        options: &'a Options,
        rng: Rng,
        others: &'a Others,
    ) -> Result<Self, Box<dyn Error>> {
        let records = matches!(options.form, Form::Copies | Form::Replay);
        let begin = Instant::now();
        Ok(Self {
            options,
            wire: Wire::open(end, if records { &ALL } else { &NEW })?,
            rng,
            sent: Sent::default(),
            begin,
            deadline: begin + Duration::from_secs(options.seconds),
            others,
        })
    }

    fn run(mut self) -> Result<Sent, Box<dyn Error>> {
        match self.options.form {
            Form::Copies => self.copies()?,
            Form::Replay => self.replay()?,
            _ => self.forge()?,
        }
        Ok(self.sent)
    }

    fn is_over(&self) -> bool {
        self.sent.frames >= self.options.count
            || Instant::now() >= self.deadline
            || self.others.failed.load(Ordering::Relaxed)
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        match self.wire.send(frame) {
            Ok(()) => self.sent.frames += 1,
            // The interface's queue is full: skip one frame.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EAGAIN)) => {
                self.sent.refused += 1
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Number of frames that the rate allows now. If there are none, sleeps first, which takes some
    /// 20 ms on a machine with a busy lab.
    fn due(&self) -> u64 {
        let left = self.options.count - self.sent.frames.min(self.options.count);
        if self.options.rate == 0 {
            return left.min(BURST);
        }
        let by_now = (self.begin.elapsed().as_secs_f64() * self.options.rate as f64) as u64;
        let due = by_now
            .saturating_sub(self.sent.frames + self.sent.refused)
            .min(left)
            .min(BURST);
        if due == 0 {
            thread::sleep(NAP);
        }
        due
    }

    /// Resends frames of the node, each at its due time.
    fn copies(&mut self) -> Result<(), Box<dyn Error>> {
        // One queue per delay keeps each queue in the order of due times.
        let delays = self
            .options
            .delay_ms
            .iter()
            .copied()
            .map(Duration::from_millis);
        let mut queues: Vec<(Duration, Waiting)> =
            delays.map(|delay| (delay, VecDeque::new())).collect();
        let mut left = self.options.count.div_ceil(self.options.times);
        while !self.is_over() {
            let now = Instant::now();
            for (_, waiting) in &mut queues {
                while waiting.front().is_some_and(|(due, _)| *due <= now)
                    && let Some((_, frame)) = waiting.pop_front()
                {
                    for _ in 0..self.options.times {
                        self.send(&frame)?;
                    }
                }
            }
            if left == 0 {
                thread::sleep(NAP);
                continue;
            }
            let (rng, heard, share) = (&mut self.rng, &mut self.sent.heard, self.options.share);
            self.wire.listen(|sender, frame| {
                if sender != Sender::Own {
                    return;
                }
                *heard += 1;
                if left > 0 && rng.chance(share, 100) {
                    let which = rng.below(queues.len() as u64) as usize;
                    let (delay, waiting) = &mut queues[which];
                    waiting.push_back((now + *delay, frame.to_vec()));
                    left -= 1;
                }
            })?;
        }
        Ok(())
    }

    fn replay(&mut self) -> Result<(), Box<dyn Error>> {
        let mut record: Vec<Vec<u8>> = Vec::new();
        let mut bytes = 0;
        let mut end = None;
        while end.is_none_or(|end| Instant::now() < end) && Instant::now() < self.deadline {
            let heard = &mut self.sent.heard;
            self.wire.listen(|sender, frame| {
                if sender == Sender::Own {
                    *heard += 1;
                    if bytes < MOST_RECORDED_BYTES {
                        bytes += frame.len();
                        record.push(frame.to_vec());
                    }
                }
            })?;
            if end.is_none() && !record.is_empty() {
                end = Some(Instant::now() + Duration::from_millis(self.options.record_ms));
            }
        }
        if record.is_empty() {
            return Ok(());
        }
        let age = self.options.delay_ms.first().copied().unwrap_or(0);
        thread::sleep(Duration::from_millis(age));
        self.begin = Instant::now();
        let mut frames = record.iter().cycle();
        while !self.is_over() {
            for _ in 0..self.due() {
                if let Some(frame) = frames.next() {
                    self.send(frame)?;
                }
            }
        }
        Ok(())
    }

    /// Sends forged frames. If these may end the session, no end starts before all ends have seen
    /// the frames to forge from: once a link is down, no such frames pass on it.
    fn forge(&mut self) -> Result<(), Box<dyn Error>> {
        let mut forge = Forge::new(self.options.form, self.rng.clone());
        let (mut provoked, mut ready) = (None, false);
        let mut begun = !forge.needs_training();
        while !self.is_over() {
            let known = self.wire.is_known();
            let due = if known && begun { self.due() } else { 0 };
            // Listen once per frame to send, or for a whole burst before the attack has begun.
            for _ in 0..=if begun { due } else { BURST } {
                let heard = &mut self.sent.heard;
                let more = self.wire.listen(|sender, frame| {
                    *heard += u64::from(sender == Sender::Own);
                    forge.heard(sender, frame);
                })?;
                if !more {
                    break;
                }
            }
            if !known {
                thread::sleep(Duration::from_micros(200));
                continue;
            }
            if !ready && forge.is_ready() {
                ready = true;
                self.others.unready.fetch_sub(1, Ordering::Relaxed);
            }
            if !begun && self.others.unready.load(Ordering::Relaxed) == 0 {
                begun = true;
                self.begin = Instant::now();
            }
            forge.set_udp(self.wire.is_udp());
            let before = self.sent.frames;
            for _ in 0..due {
                let Some(frame) = forge.make() else { break };
                self.send(frame)?;
            }
            if self.sent.frames == before {
                // Leave the processor to the nodes that send the awaited frames.
                thread::sleep(NAP);
            }
            let rested = provoked.is_none_or(|at: Instant| at.elapsed() >= PROVOCATION_INTERVAL);
            if rested && let Some(frame) = forge.provocation() {
                self.wire.send(frame)?;
                provoked = Some(Instant::now());
            }
        }
        self.sent.by = forge.made;
        Ok(())
    }
}
