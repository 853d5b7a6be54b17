//! NICs and a network in virtual time, for endpoints in one thread: a seed determines everything
//! that happens.

mod delivery;
mod dice;
mod flight;
mod memory;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use phitwire_client::door::{Access, AtomicOp, Completion, Local, Remote, Status};

use crate::engine::core::Segment;
use crate::engine::endpoint::Endpoint;
use crate::engine::shared::Shared;
use crate::engine::slots::{RECEIVES, SEGMENT, STAGES, STAGES_AT};
use crate::engine::tests::program;
use crate::engine::wire::{Address, PART};
use crate::memory::Bytes;
pub use dice::Dice;
use flight::{Act, Fate, Flight, Source, Taken};

/// A NIC tries to deliver a message without a receive for this long.
const DELIVERY: Duration = Duration::from_secs(2);

/// Rates of faults, per mille of the commands that cross the network.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// The request is lost.
    pub lost: u64,
    /// The request is carried out, its reply is lost.
    pub unanswered: u64,
    /// The command times out, and its request is carried out later.
    pub late: u64,
    /// The request, or its reply, is damaged.
    pub damaged: u64,
    /// The target is busy, or the source gives up.
    pub refused: u64,
    /// Maximum latency of a request or a reply; the minimum is 1 us.
    pub latency: Duration,
}

/// Faults that no network may have. Canaries use them to show that the tests detect them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// Messages arrive with a changed byte.
    Flip,
    /// Messages are reported as delivered and are not.
    Swallow,
    /// Registered memory is accessible after its end.
    Zombie,
    /// Additions are carried out twice.
    Twice,
    /// No program is notified that it was given up.
    Discreet,
}

/// The memory of a segment.
#[derive(Clone, Debug)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Segment for Memory {
    fn read(&self, offset: u64, out: &mut [u8]) {
        let bytes = self.0.lock().expect("no test has failed with it");
        out.copy_from_slice(&bytes[offset as usize..][..out.len()]);
    }

    fn write(&self, offset: u64, data: &[u8]) {
        let mut bytes = self.0.lock().expect("no test has failed with it");
        bytes[offset as usize..][..data.len()].copy_from_slice(data);
    }
}

struct Domain {
    owner: usize,
    part: Local,
    access: Access,
    is_open: bool,
}

/// A program and its NIC.
pub struct Node {
    pub endpoint: Endpoint,
    pub shared: Shared,
    segment: Memory,
    receives: VecDeque<(u64, Local)>,
    /// Messages that wait for a receive.
    arrived: VecDeque<Flight>,
    completions: VecDeque<Completion>,
    /// Commands and receives whose completions have not been handled, and their maximum number.
    pub under_way: usize,
    pub ring: usize,
    /// The program makes no progress until then.
    pub computes_until: Duration,
    /// The NIC is cut off: its commands, and those to it, have no outcome.
    pub is_silent: bool,
    pub is_ended: bool,
    /// The program whose registered memory is also this one's: both are endpoints of one domain.
    pub domain: usize,
}

enum Event {
    Arrive(Flight),
    /// A message may have waited long enough for a receive.
    GiveUp(usize),
    /// A program does something, or a fault ends.
    Wake,
    /// A command completes, after these data are written to local memory.
    End(usize, Completion, Option<(Local, Vec<u8>)>),
}

/// Endpoints, their NICs, and the network between them.
pub struct Network {
    pub now: Duration,
    pub nodes: Vec<Node>,
    pub dice: Dice,
    pub faults: Faults,
    pub harm: Option<Harm>,
    /// Pairs of processors without a path, and when each cut ends.
    pub cuts: BTreeMap<(u16, u16), Duration>,
    /// Maximum number of receives that programs of one NIC have posted.
    pub most_receives: usize,
    /// Maximum number of handles of a program.
    pub most_handles: usize,
    /// Memory of programs that NICs reach.
    pub memories: Vec<Bytes>,
    /// Registered memory of all programs, by handle.
    domains: Vec<Domain>,
    events: BTreeMap<(Duration, u64), Event>,
    serial: u64,
    ordered: BTreeMap<(usize, u16), Duration>,
    unanswered: Vec<(usize, u64)>,
}

type Ended<T = u64> = Result<T, Status>;

impl Network {
    /// Programs of one job at these processors, each with a queue and an address vector of all.
    pub fn new(processors: &[u16], seed: u64, reaches_own: bool) -> Self {
        let mut network = Self {
            now: Duration::ZERO,
            nodes: Vec::new(),
            dice: Dice::new(seed),
            faults: Faults {
                latency: Duration::from_micros(20),
                ..Faults::default()
            },
            harm: None,
            cuts: BTreeMap::new(),
            most_receives: 1024,
            most_handles: 512,
            memories: Vec::new(),
            domains: Vec::new(),
            events: BTreeMap::new(),
            serial: 0,
            ordered: BTreeMap::new(),
            unanswered: Vec::new(),
        };
        for (number, &processor) in processors.iter().enumerate() {
            let here = processors[..number].iter();
            let address = Address {
                processor,
                member: here.filter(|&&p| p == processor).count() as u8,
                incarnation: (network.dice.below(1 << 16) as u32) << 16 | number as u32,
            };
            network.domains.push(Domain::stages(number));
            network.nodes.push(Node::new(address, reaches_own, number));
        }
        let addresses: Vec<_> = network.nodes.iter().map(|n| n.endpoint.address()).collect();
        let all = network.nodes.iter_mut().map(|node| &mut node.shared);
        program::introduce(all, &addresses);
        network
    }

    fn after(&mut self, time: Duration, event: Event) {
        self.serial += 1;
        self.events.insert((self.now + time, self.serial), event);
    }

    fn latency(&mut self) -> Duration {
        let most = self.faults.latency;
        self.dice.between(Duration::from_micros(1), most)
    }

    /// Makes the network run at this time, whatever else happens.
    pub fn wake_at(&mut self, time: Duration) {
        self.after(time.saturating_sub(self.now), Event::Wake);
    }

    /// Time of the next scheduled event.
    pub fn next_event(&self) -> Option<Duration> {
        self.events.keys().next().map(|key| key.0)
    }

    /// Carries out the events that are due.
    pub fn happen(&mut self) -> bool {
        let mut moved = false;
        while let Some(entry) = self.events.first_entry()
            && entry.key().0 <= self.now
        {
            match entry.remove() {
                Event::Arrive(flight) => self.arrive(flight),
                Event::GiveUp(to) => self.give_up(to),
                Event::Wake => {}
                Event::End(at, completion, data) => self.end(at, completion, data),
            }
            moved = true;
        }
        moved
    }

    fn end(&mut self, at: usize, completion: Completion, data: Option<(Local, Vec<u8>)>) {
        if self.nodes[at].is_ended {
            return;
        }
        if let Some((into, data)) = data {
            self.store(at, into, &data).expect("the memory is its own");
        }
        self.nodes[at].completions.push_back(completion);
    }

    /// One program handles its NIC's completions, and the NIC takes commands.
    pub fn turn(&mut self, at: usize) -> bool {
        let node = &self.nodes[at];
        if node.is_ended || self.now < node.computes_until {
            return false;
        }
        let moved = self.in_domain(at, Self::handle_all);
        moved | self.take_commands(at)
    }

    /// Calls `call` for an endpoint while it has the registered memory of its domain.
    pub fn in_domain<T>(&mut self, at: usize, call: impl FnOnce(&mut Self, usize) -> T) -> T {
        let domain = self.nodes[at].domain;
        let swap = |net: &mut Self| {
            if let Ok([one, other]) = net.nodes.get_disjoint_mut([at, domain]) {
                one.shared.swap_domain(&mut other.shared);
            }
        };
        swap(self);
        let done = call(self, at);
        swap(self);
        done
    }

    fn handle_all(&mut self, at: usize) -> bool {
        let (node, mut moved) = (&mut self.nodes[at], false);
        while let Some(completion) = node.completions.pop_front() {
            node.under_way -= 1;
            node.endpoint
                .handle_completion(&mut node.shared, &completion);
            moved = true;
        }
        moved |= node.endpoint.advance(&mut node.shared);
        node.endpoint.handle_timeout(&mut node.shared, self.now);
        node.endpoint.check();
        moved
    }

    fn take_commands(&mut self, at: usize) -> bool {
        let mut moved = false;
        while self.nodes[at].under_way < self.nodes[at].ring
            && let Some(command) = self.nodes[at].endpoint.poll_command()
        {
            let (name, taken) = Taken::of(&command);
            self.nodes[at].endpoint.command_taken();
            self.nodes[at].under_way += 1;
            self.depart(at, name, taken);
            moved = true;
        }
        moved
    }

    /// Runs all programs until nothing more happens before `until`, or `is_enough` is true.
    pub fn run(&mut self, until: Duration, mut is_enough: impl FnMut(&mut Self) -> bool) -> bool {
        loop {
            let mut moved = self.happen();
            for at in 0..self.nodes.len() {
                moved |= self.turn(at);
            }
            if is_enough(self) {
                return true;
            }
            if moved {
                continue;
            }
            let running = self.nodes.iter().filter(|node| !node.is_ended);
            let due = running.map(|node| node.endpoint.deadline().max(node.computes_until));
            let next = due.chain(self.next_event()).min();
            match next.filter(|&next| next <= until) {
                Some(next) => self.now = next.max(self.now),
                None => {
                    self.now = until;
                    return false;
                }
            }
        }
    }

    fn depart(&mut self, from: usize, name: u64, taken: Taken) {
        let (act, source) = match taken {
            Taken::Receive(into) => return self.post_receive(from, name, into),
            Taken::Other(act, source) => (act, source),
        };
        let data = match source {
            Source::Bytes(data) => data,
            Source::Local(local) => match self.load(from, local) {
                Ok(data) => data,
                Err(status) => return self.answer(from, name, Err(status), Duration::ZERO),
            },
        };
        let Some((target, is_ordered)) = act.target() else {
            let flight = self.flight(from, name, act, data, Fate::Fine);
            let soon = self.latency();
            return self.after(soon, Event::Arrive(flight));
        };
        let source = self.nodes[from].endpoint.address().processor;
        let is_silent = |node: &Node| {
            let processor = node.endpoint.address().processor;
            node.is_silent && (processor == source || processor == target)
        };
        if self.nodes.iter().any(is_silent) {
            return self.unanswered.push((from, name));
        }
        // Only a block transfer, or a message, is given up halfway.
        let is_block = matches!(act, Act::Message(..)) || data.len() > 64;
        let (fate, mut time) = self.draw((source, target), is_block);
        match fate {
            Fate::Refused(status) => {
                self.leave_behind((from, name), act, &data);
                return self.answer(from, name, Err(status), time);
            }
            Fate::Late => {
                self.answer(from, name, Err(Status::TimedOut), time);
                time += self.dice.between(Duration::ZERO, Duration::from_secs(4));
            }
            _ => {}
        }
        if matches!(fate, Fate::DamagedReply | Fate::Unanswered) {
            self.leave_behind((from, name), act, &data);
        }
        if is_ordered {
            let last = self.ordered.entry((from, target)).or_default();
            time = time.max(last.saturating_sub(self.now));
            *last = self.now + time;
        }
        let flight = self.flight(from, name, act, data, fate);
        self.after(time, Event::Arrive(flight));
    }

    /// A block that fails may leave a late part behind: its packets may have different outcomes,
    /// and the NIC reports the first failure.
    fn leave_behind(&mut self, (from, name): (usize, u64), act: Act, data: &[u8]) {
        let Act::Write(to) = act else {
            return;
        };
        if data.len() <= 64 || !self.dice.chance(500) {
            return;
        }
        let skip = 64 * self.dice.below((data.len() as u64 - 1) / 64 + 1);
        let offset = to.offset + skip;
        let rest = Act::Write(Remote { offset, ..to });
        let data = data[skip as usize..].to_vec();
        let flight = self.flight(from, name, rest, data, Fate::Late);
        let time = self.dice.between(Duration::ZERO, Duration::from_secs(4));
        self.after(time, Event::Arrive(flight));
    }

    fn flight(&self, from: usize, name: u64, act: Act, data: Vec<u8>, fate: Fate) -> Flight {
        Flight {
            from,
            name,
            act,
            data,
            fate,
            since: self.now,
        }
    }

    fn is_cut(&self, a: u16, b: u16) -> bool {
        let end = self.cuts.get(&(a.min(b), a.max(b)));
        end.is_some_and(|&end| self.now < end)
    }

    fn answer(&mut self, at: usize, name: u64, ended: Ended, time: Duration) {
        let (status, word) = match ended {
            Ok(word) => (Status::Done, word),
            Err(status) => (status, 0),
        };
        let end = Completion::End {
            name,
            status,
            word,
            bytes: 0,
        };
        self.after(time, Event::End(at, end, None));
    }

    fn arrive(&mut self, flight: Flight) {
        let source = self.nodes[flight.from].endpoint.address().processor;
        if let Some((target, _)) = flight.act.target()
            && self.is_cut(source, target)
        {
            if flight.fate != Fate::Late {
                self.answer(flight.from, flight.name, Err(Status::TimedOut), DELIVERY);
            }
            return;
        }
        let (from, name, fate) = (flight.from, flight.name, flight.fate);
        let mut data = None;
        let ended = match flight.act {
            Act::Message(processor, member) => match self.deliver(flight, processor, member) {
                Some(ended) => ended,
                None => return,
            },
            Act::Open(..) if self.open_handles(from).len() >= self.most_handles => {
                Err(Status::TooMany)
            }
            Act::Open(part, access) => {
                self.domains.push(Domain {
                    owner: from,
                    part,
                    access,
                    is_open: true,
                });
                Ok(self.domains.len() as u64 - 1)
            }
            Act::Close(handle) => self.close(from, handle),
            Act::Write(to) => {
                let target = self.there(to, flight.data.len() as u64, |access| access.put);
                target
                    .and_then(|(at, local)| self.store(at, local, &flight.data))
                    .map(|()| 0)
            }
            Act::Read(there, into) => {
                let source = self.there(there, into.bytes, |access| access.get);
                match source.and_then(|(at, local)| self.load(at, local)) {
                    Ok(bytes) => {
                        data = Some((into, bytes));
                        Ok(0)
                    }
                    Err(status) => Err(status),
                }
            }
            Act::Change(there, op, width, operands) => {
                if self.harm == Some(Harm::Twice) && op == AtomicOp::Add {
                    let _ = self.change(there, op, width, operands);
                }
                self.change(there, op, width, operands)
            }
        };
        let time = self.latency();
        let (status, word) = match (ended, fate) {
            (_, Fate::Late | Fate::Refused(_)) => return,
            (_, Fate::Unanswered) => {
                return self.answer(from, name, Err(Status::TimedOut), DELIVERY);
            }
            (_, Fate::DamagedReply) => {
                return self.answer(from, name, Err(Status::DamagedAnswer), time);
            }
            (Ok(word), Fate::Fine) => (Status::Done, word),
            (Err(status), Fate::Fine) => (status, 0),
        };
        let end = Completion::End {
            name,
            status,
            word,
            bytes: 0,
        };
        self.after(time, Event::End(from, end, data));
    }

    pub fn close(&mut self, at: usize, handle: u16) -> Ended {
        let is_zombie = self.harm == Some(Harm::Zombie);
        let domain = self.domains.get_mut(usize::from(handle));
        let domain = domain.filter(|domain| domain.is_open && domain.owner == at);
        let domain = domain.ok_or(Status::NotYours)?;
        domain.is_open = is_zombie;
        Ok(0)
    }

    /// The open handles of a program.
    pub fn open_handles(&self, at: usize) -> Vec<usize> {
        let all = self.domains.iter().enumerate();
        let open = all.filter(|(_, domain)| domain.is_open && domain.owner == at);
        open.map(|(handle, _)| handle).collect()
    }

    /// A program ends: its NIC forgets it.
    pub fn leave(&mut self, at: usize) {
        self.nodes[at].is_ended = true;
        self.nodes[at].receives.clear();
    }

    /// Ends the silence of all programs; the requests that it affected time out.
    pub fn rejoin(&mut self) {
        self.nodes
            .iter_mut()
            .for_each(|node| node.is_silent = false);
        for (at, name) in std::mem::take(&mut self.unanswered) {
            self.answer(at, name, Err(Status::TimedOut), Duration::ZERO);
        }
    }
}

impl Domain {
    fn stages(owner: usize) -> Self {
        Self {
            owner,
            part: Local {
                offset: STAGES_AT,
                bytes: (STAGES * PART) as u64,
            },
            access: Access {
                put: false,
                get: true,
                atomic: false,
            },
            is_open: true,
        }
    }
}

impl Node {
    fn new(address: Address, reaches_own: bool, domain: usize) -> Self {
        let segment = Memory(Arc::new(Mutex::new(vec![0; SEGMENT as usize])));
        let mut endpoint = Endpoint::new(address, RECEIVES, Box::new(segment.clone()), reaches_own);
        Self {
            shared: program::bind(&mut endpoint),
            endpoint,
            segment,
            receives: VecDeque::new(),
            arrived: VecDeque::new(),
            completions: VecDeque::new(),
            under_way: 0,
            ring: 2048,
            computes_until: Duration::ZERO,
            is_silent: false,
            is_ended: false,
            domain,
        }
    }
}
