//! Measured sends between programs at the doors of NICs, each message verified by its content.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use phitwire_framing::door::{Command, Completion, Local, Request, Status};

use super::World;
use crate::device::{Device, DeviceError, capability};
use crate::net::Network;
use crate::nic::latency::LatencyRecorder;
use crate::nic::local::{Client, LocalPort, Taken};
use crate::nic::{Destinations, TrafficSpec, Window};
use crate::rng::Rng;
use crate::sim::check::Violation;
use crate::sim::fabric::NodeId;
use crate::time::{Duration, Time};

/// The job of the programs, which each are its member 0 at their NIC.
const JOB: u64 = 0x7365_6e64;
/// Maximum number and bytes of the receives that a program keeps posted: less than one for each
/// message on the way lets messages wait.
const MOST_RECEIVES: u64 = 256;
const MOST_RECEIVE_BYTES: u64 = 1 << 24;
/// Findings kept of a run; more say nothing new.
const MOST_FINDINGS: usize = 16;

/// What a run of sends showed.
pub(super) struct Sends {
    pub received: u64,
    /// NICs that sent.
    pub sources: usize,
    /// From the first send to the last receive or acknowledgement.
    pub elapsed: Duration,
    pub latency: LatencyRecorder,
    pub findings: Vec<Violation>,
    /// Whether every message was received and acknowledged.
    pub has_ended: bool,
}

/// Memory of a program, which its NIC shares.
#[derive(Clone, Debug)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Window for Shared {
    fn size(&self) -> u64 {
        self.bytes().len() as u64
    }

    fn read(&self, offset: u64, out: &mut [u8]) {
        out.copy_from_slice(&self.bytes()[offset as usize..][..out.len()]);
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        self.bytes()[offset as usize..][..data.len()].copy_from_slice(data);
    }

    fn update(&mut self, offset: u64, change: &dyn Fn(u64) -> u64) -> u64 {
        let mut word = [0; 8];
        self.read(offset, &mut word);
        let old = u64::from_le_bytes(word);
        self.write(offset, &change(old).to_le_bytes());
        old
    }
}

/// A program at a NIC. Its memory has a slot for each message that it may send at once, then one
/// for each receive; a command's name is its slot.
struct Program {
    nic: NodeId,
    number: u16,
    client: Client,
    memory: Shared,
    /// `None` if the program only receives.
    destinations: Option<Destinations>,
    /// A destination that the NIC had no room for.
    next: Option<u16>,
    free: Vec<u32>,
    sent: u64,
}

#[derive(Clone, Copy)]
struct Message {
    sequence: u64,
    posted: Time,
}

struct Run<'a> {
    spec: &'a TrafficSpec,
    begin: Time,
    programs: Vec<Program>,
    /// The program at each node.
    at: Vec<Option<usize>>,
    /// Messages that are not received yet, by source and target.
    under_way: BTreeMap<(u16, u16), Vec<Message>>,
    received: u64,
    /// Messages that are not acknowledged yet.
    open: u64,
    progress: Time,
    latency: LatencyRecorder,
    findings: Vec<Violation>,
}

impl<L: Network + ?Sized> World<L> {
    /// Whether the NIC supports sends.
    pub(super) fn has_sends(&mut self, nic: NodeId) -> bool {
        let mut has = false;
        self.fabric.attend(nic, |device, _| {
            let port = device.local_port();
            has = port.is_some_and(|port| port.operations().messages);
            false
        });
        has
    }

    /// Sends the messages of `spec` between programs; gives up when nothing has happened to any
    /// message for `patience`.
    pub(super) fn run_sends(
        &mut self,
        spec: &TrafficSpec,
        patience: Duration,
    ) -> Result<Sends, DeviceError> {
        let mut run = Run::new(self, spec)?;
        let programs = 0..run.programs.len();
        programs
            .clone()
            .for_each(|program| run.begin(self, program));
        while run.is_open(self.fabric.now()) && run.findings.is_empty() {
            let next = self.fabric.next_event_time();
            if next.is_none_or(|next| next > run.progress + patience) {
                break;
            }
            self.fabric.step();
            let ran: Vec<_> = self
                .fabric
                .ran()
                .filter_map(|node| run.at[node.0 as usize])
                .collect();
            for program in ran {
                run.turn(self, program);
            }
        }
        for program in programs {
            run.end(self, program);
        }
        Ok(Sends {
            received: run.received,
            sources: run
                .programs
                .iter()
                .filter(|program| program.sent > 0)
                .count(),
            elapsed: run.progress.since(run.begin),
            has_ended: !run.is_open(self.fabric.now()),
            latency: run.latency,
            findings: run.findings,
        })
    }
}

impl<'a> Run<'a> {
    /// Attaches a program to every NIC that sends or receives.
    fn new<L: Network + ?Sized>(
        world: &mut World<L>,
        spec: &'a TrafficSpec,
    ) -> Result<Self, DeviceError> {
        let begin = world.fabric.now();
        let mut run = Self {
            spec,
            begin,
            programs: Vec::new(),
            at: vec![None; world.fabric.nodes()],
            under_way: BTreeMap::new(),
            received: 0,
            open: 0,
            progress: begin,
            latency: LatencyRecorder::new(),
            findings: Vec::new(),
        };
        let mut takes_part: Vec<u16> = spec.processors.clone();
        for &number in &spec.processors {
            takes_part.extend(Destinations::new(spec, number)?.all());
        }
        takes_part.sort_unstable();
        takes_part.dedup();
        let numbered: Vec<_> = world
            .nics()
            .filter_map(|nic| Some((nic, world.number(nic)?)))
            .filter(|(_, number)| takes_part.binary_search(number).is_ok())
            .collect();
        for (nic, number) in numbered {
            let bytes = run.stride() * u64::from(run.sends() + run.receives());
            let memory = Shared(Arc::new(Mutex::new(vec![0; bytes as usize])));
            let window = Box::new(memory.clone());
            let mut client = None;
            let mut attached = Ok(());
            world.fabric.attend(nic, |device, _| {
                attached = device.need::<capability::Door>().map(|port| {
                    client = port.attach(JOB, 0, window).ok();
                });
                true
            });
            attached?;
            let Some((client, _)) = client else {
                run.find(format!("NIC {number} admitted no program"));
                continue;
            };
            run.at[nic.0 as usize] = Some(run.programs.len());
            let destinations = match spec.processors.contains(&number) {
                true => Some(Destinations::new(spec, number)?),
                false => None,
            };
            run.programs.push(Program {
                nic,
                number,
                client,
                memory,
                destinations,
                next: None,
                free: (0..run.sends()).rev().collect(),
                sent: 0,
            });
        }
        Ok(run)
    }

    fn find(&mut self, what: String) {
        if self.findings.len() < MOST_FINDINGS {
            self.findings.push(Violation::Messages(what));
        }
    }

    fn sends(&self) -> u32 {
        self.spec.window
    }

    fn receives(&self) -> u32 {
        let senders = self.spec.processors.len() as u64;
        let most = (MOST_RECEIVE_BYTES / self.stride()).clamp(2, MOST_RECEIVES);
        (senders * u64::from(self.spec.window)).clamp(2, most) as u32
    }

    /// Bytes from one slot to the next.
    fn stride(&self) -> u64 {
        u64::from(self.spec.size).next_multiple_of(64)
    }

    fn slot(&self, slot: u32) -> Local {
        Local {
            offset: u64::from(slot) * self.stride(),
            bytes: self.spec.size.into(),
        }
    }

    /// The content of a message.
    fn content(&self, (from, to): (u16, u16), sequence: u64) -> Vec<u8> {
        let pair = u64::from(from) << 16 | u64::from(to);
        let mut rng = Rng::new(pair << 32 | u64::from(self.spec.size), sequence);
        let mut content = vec![0; self.spec.size as usize];
        for chunk in content.chunks_mut(8) {
            chunk.copy_from_slice(&rng.next_u64().to_le_bytes()[..chunk.len()]);
        }
        content
    }

    /// Whether messages are missing, or more are to be sent.
    fn is_open(&self, now: Time) -> bool {
        let may_send = (self.programs.iter()).any(|program| self.is_sending(program, now));
        self.open > 0 || self.under_way.values().any(|messages| !messages.is_empty()) || may_send
    }

    fn is_sending(&self, program: &Program, now: Time) -> bool {
        let destinations = program.destinations.as_ref();
        if destinations.is_none_or(|destinations| destinations.all().is_empty()) {
            return false;
        }
        match (self.spec.count, self.spec.duration_ns) {
            (0, span) => now < self.begin + Duration::from_ns(span),
            (count, _) => program.sent < count,
        }
    }

    /// Posts a program's receives and first messages.
    fn begin<L: Network + ?Sized>(&mut self, world: &mut World<L>, program: usize) {
        let names = self.sends()..self.sends() + self.receives();
        with_port(world, self.programs[program].nic, |port, now| {
            for name in names {
                self.receive(port, now, program, name);
            }
            self.send_all(port, now, program);
        });
    }

    fn receive(&mut self, port: &mut dyn LocalPort, now: Time, program: usize, name: u32) {
        let into = self.slot(name);
        let command = Command {
            name: name.into(),
            request: Request::Receive { into },
        };
        let Program { client, number, .. } = self.programs[program];
        let taken = port.command(now, client, &command);
        if taken != Taken::UnderWay {
            self.find(format!("NIC {number} refused a receive: {taken:?}"));
        }
    }

    /// Sends as many messages as the window and the NIC allow.
    fn send_all(&mut self, port: &mut dyn LocalPort, now: Time, program: usize) {
        while self.is_sending(&self.programs[program], now)
            && let Some(&slot) = self.programs[program].free.last()
        {
            let of = &mut self.programs[program];
            let next = of.next.take();
            let drawn = next.or_else(|| of.destinations.as_mut().and_then(Iterator::next));
            let Some(to) = drawn else {
                return;
            };
            let (number, sequence, client) = (of.number, of.sent, of.client);
            let content = self.content((number, to), sequence);
            let from = self.slot(slot);
            let memory = &mut self.programs[program].memory;
            memory.write(from.offset, &content);
            let command = Command {
                name: slot.into(),
                request: Request::Send {
                    processor: to,
                    member: 0,
                    from,
                },
            };
            let of = &mut self.programs[program];
            match port.command(now, client, &command) {
                Taken::UnderWay => {
                    of.free.pop();
                    of.sent += 1;
                    let message = Message {
                        sequence,
                        posted: now,
                    };
                    self.open += 1;
                    self.under_way
                        .entry((number, to))
                        .or_default()
                        .push(message);
                }
                Taken::Later => {
                    of.next = Some(to);
                    return;
                }
                Taken::Ended(status, _) => {
                    let why = status.name();
                    return self.find(format!("NIC {number} refused a send to {to}: {why}"));
                }
            }
        }
    }

    /// Takes the completions that a program sees now, and sends on.
    fn turn<L: Network + ?Sized>(&mut self, world: &mut World<L>, program: usize) {
        let mut completions = Vec::new();
        let nic = self.programs[program].nic;
        world.fabric.attend(nic, |device, _| {
            if let Some(port) = device.local_port() {
                port.flush();
                completions.extend(core::iter::from_fn(|| port.next_completion()));
            }
            false
        });
        if completions.is_empty() && self.programs[program].next.is_none() {
            return;
        }
        with_port(world, nic, |port, now| {
            for (_, completion) in completions {
                self.progress = now;
                self.completed(port, now, program, &completion);
            }
            self.send_all(port, now, program);
        });
    }

    fn completed(
        &mut self,
        port: &mut dyn LocalPort,
        now: Time,
        program: usize,
        completion: &Completion,
    ) {
        let number = self.programs[program].number;
        match *completion {
            Completion::End { name, status, .. } => {
                self.open = self.open.saturating_sub(1);
                self.programs[program].free.push(name as u32);
                if status != Status::Done {
                    self.find(format!("a send of NIC {number} ended as {}", status.name()));
                }
            }
            Completion::Received {
                name,
                status,
                processor,
                bytes,
            } => {
                self.verify(now, program, (name as u32, status, processor, bytes));
                self.receive(port, now, program, name as u32);
            }
            ref other => self.find(format!("NIC {number} got {other:?}")),
        }
    }

    /// Compares a received message with those that its source has under way.
    fn verify(
        &mut self,
        now: Time,
        program: usize,
        (name, status, from, bytes): (u32, Status, u16, u64),
    ) {
        let (number, slot) = (self.programs[program].number, self.slot(name));
        if status != Status::Done {
            let why = status.name();
            return self.find(format!("a receive of NIC {number} ended as {why}"));
        }
        let mut found = vec![0; slot.bytes as usize];
        self.programs[program].memory.read(slot.offset, &mut found);
        let pair = (from, number);
        let sent = self.under_way.get(&pair).map_or(&[][..], Vec::as_slice);
        let is_it = |message: &Message| self.content(pair, message.sequence) == found;
        let at = sent.iter().position(is_it).filter(|_| bytes == slot.bytes);
        let message = at.and_then(|at| Some(self.under_way.get_mut(&pair)?.remove(at)));
        match message {
            Some(message) => {
                self.received += 1;
                self.latency.record_span(message.posted, now);
            }
            None => self.find(format!(
                "NIC {number} received {bytes} bytes from {from} that it did not send"
            )),
        }
    }

    /// Removes a program from its NIC.
    fn end<L: Network + ?Sized>(&mut self, world: &mut World<L>, program: usize) {
        let Program { nic, client, .. } = self.programs[program];
        with_port(world, nic, |port, now| port.detach(now, client));
    }
}

/// Gives `act` the door of a NIC that has one.
fn with_port<L: Network + ?Sized>(
    world: &mut World<L>,
    nic: NodeId,
    act: impl FnOnce(&mut dyn LocalPort, Time),
) {
    world
        .fabric
        .attend(nic, |device: &mut Box<dyn Device>, now| {
            if let Some(port) = device.local_port() {
                act(port, now);
            }
            true
        });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(spec: &TrafficSpec) -> Run<'_> {
        Run {
            spec,
            begin: Time::ZERO,
            programs: vec![Program {
                nic: NodeId(0),
                number: 2,
                client: Client(1),
                memory: Shared(Arc::new(Mutex::new(vec![0; 1 << 16]))),
                destinations: None,
                next: None,
                free: Vec::new(),
                sent: 0,
            }],
            at: vec![Some(0)],
            under_way: BTreeMap::new(),
            received: 0,
            open: 0,
            progress: Time::ZERO,
            latency: LatencyRecorder::new(),
            findings: Vec::new(),
        }
    }

    /// Lets messages 0 and 1 of NIC 1 arrive at NIC 2 in the other order, after `change`.
    fn receive(change: impl Fn(u64, &mut Vec<u8>)) -> (u64, usize) {
        let spec = TrafficSpec {
            size: 100,
            processors: vec![1],
            ..TrafficSpec::default()
        };
        let mut run = run(&spec);
        let posted = Time::ZERO;
        let both = [0, 1].map(|sequence| Message { sequence, posted });
        run.under_way.insert((1, 2), both.to_vec());
        for sequence in [1, 0] {
            let mut content = run.content((1, 2), sequence);
            change(sequence, &mut content);
            let at = run.slot(5).offset;
            run.programs[0].memory.write(at, &content);
            run.verify(
                Time::from_ns(7),
                0,
                (5, Status::Done, 1, content.len() as u64),
            );
        }
        (run.received, run.findings.len())
    }

    #[test]
    fn damaged_repeated_and_shortened_messages_are_found() {
        assert_eq!(receive(|_, _| ()), (2, 0), "in any order");
        assert_eq!(
            receive(|sequence, content| content[99] ^= sequence as u8),
            (1, 1)
        );
        let spec = TrafficSpec {
            size: 100,
            ..TrafficSpec::default()
        };
        let first = run(&spec).content((1, 2), 1);
        assert_eq!(
            receive(|_, content| content.clone_from(&first)),
            (1, 1),
            "twice"
        );
        assert_eq!(
            receive(|sequence, content| content.truncate(100 - sequence as usize)),
            (1, 1)
        );
    }
}
