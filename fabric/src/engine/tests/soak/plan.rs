//! The actions of the programs of a seed, and the faults of its network.

use super::extras::Extras;
use super::*;
use crate::engine::reach::Reach;
use crate::engine::shared::Open;
use crate::engine::tests::network::Dice;
use crate::memory::Arena;

/// The kind of fault that a seed's programs suffer, in addition to single losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// No further fault.
    Calm,
    /// Commands are lost, repeated, late.
    Faulty,
    /// Paths are cut, but not for longer than peers are waited for.
    ShortCuts,
    /// Paths are cut for longer.
    LongCuts,
    /// A program ends in the middle of the run.
    End,
    /// A NIC falls silent for ever.
    Silence,
    /// A program computes for minutes, and makes no progress.
    Busy,
    /// Puts time out and arrive late.
    LatePuts,
}

impl Shape {
    pub const ALL: [Self; 8] = [
        Self::Calm,
        Self::Faulty,
        Self::ShortCuts,
        Self::LongCuts,
        Self::End,
        Self::Silence,
        Self::Busy,
        Self::LatePuts,
    ];

    /// Whether peers may be declared lost.
    pub const fn loses(self) -> bool {
        matches!(self, Self::LongCuts | Self::End | Self::Silence)
    }
}

/// Which receives take which messages: all programs agree, so that none is left over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    Exact,
    Tag,
    Any,
}

#[derive(Clone, Debug)]
pub struct Message {
    pub from: usize,
    pub to: usize,
    pub tag: u64,
    pub bytes: Pieces,
    pub len: usize,
}

#[derive(Clone, Debug)]
pub struct Receive {
    pub at: usize,
    pub from: Option<usize>,
    pub tag: Option<u64>,
    pub into: Pieces,
}

/// A one-sided operation of a plan.
#[derive(Clone, Debug)]
pub struct Access {
    pub from: usize,
    pub to: usize,
    pub kind: Kind,
    pub memory: Pieces,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Writes to a slot that only this program writes, perhaps with data for the target's queue.
    Write {
        slot: usize,
        len: usize,
        with_data: bool,
    },
    /// Reads from the part that nobody changes.
    Read {
        at: usize,
        len: usize,
    },
    /// Reads from memory that is closed during the run; the next variant writes to it.
    BriefRead {
        brief: usize,
        at: usize,
        len: usize,
    },
    BriefWrite {
        brief: usize,
        at: usize,
        len: usize,
    },
    /// Adds 1 to the first counter, which NICs can do.
    Add,
    /// Multiplies the second by 3, which NICs cannot do.
    Triple,
}

/// An action of a program, or an event that affects it.
#[derive(Clone, Debug)]
pub enum Action {
    Send(usize),
    Receive(usize),
    Access(usize),
    /// A program computes for a while.
    Compute(usize, Duration),
    /// A path is cut for a while.
    Cut(usize, usize, Duration),
    End(usize),
    Silence(usize),
    CloseCompanion(usize),
    /// A program closes registered memory.
    Close(usize),
    Cancel(usize),
    Peek(usize),
    /// Bytes arrive that are not a message.
    Noise(usize, Vec<u8>),
}

/// Bytes of a slot for writes, and slots of each writer.
pub const SLOT_BYTES: usize = 20_480;
pub const SLOTS: usize = 3;
/// Offsets in the registered memory: counters, slots, and the part that is only read.
pub const ADDS: usize = 0;
pub const TRIPLES: usize = 8;
const SLOTS_AT: usize = 64;
const MOST_NODES: usize = 8;
pub const READ_AT: usize = SLOTS_AT + MOST_NODES * SLOTS * SLOT_BYTES;
pub const READ_BYTES: usize = 70_000;
pub const REGION: usize = READ_AT + READ_BYTES;

/// Contexts of operations: a kind, and the number in the plan.
pub const SEND: usize = 1 << 20;
pub const RECEIVE: usize = 2 << 20;
pub const ACCESS: usize = 3 << 20;
pub const PEEK: usize = 4 << 20;

pub const fn slot_at(writer: usize, slot: usize) -> usize {
    SLOTS_AT + (writer * SLOTS + slot) * SLOT_BYTES
}

/// The byte at an offset of the part that nobody changes.
pub const fn constant(at: usize) -> u8 {
    (at * 13 + at / 251) as u8
}

/// Everything that is drawn from a seed in advance.
pub struct Plan {
    pub shape: Shape,
    pub faults: Faults,
    pub matching: Match,
    pub reaches_own: bool,
    pub nodes: usize,
    pub messages: Vec<Message>,
    pub receives: Vec<Receive>,
    pub accesses: Vec<Access>,
    pub agenda: Vec<(Duration, Action)>,
    pub regions: Vec<Bytes>,
    pub keys: Vec<u64>,
    pub extras: Extras,
    arena: Arena,
    memories: Vec<Bytes>,
    ring: usize,
    most_receives: usize,
    /// Whether silent peers are given up.
    pub gives_up: bool,
}

impl Plan {
    pub fn draw(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let shape = dice.one_of(&Shape::ALL);
        let most_more = if dice.chance(200) { 7 } else { 3 };
        let mut plan = Self {
            shape,
            faults: faults(&mut dice, shape),
            matching: dice.one_of(&[Match::Exact, Match::Tag, Match::Any]),
            reaches_own: shape == Shape::LatePuts || dice.chance(500),
            nodes: 2 + dice.below(most_more) as usize,
            messages: Vec::new(),
            receives: Vec::new(),
            accesses: Vec::new(),
            agenda: Vec::new(),
            regions: Vec::new(),
            keys: Vec::new(),
            extras: Extras::default(),
            arena: Arena::default(),
            memories: Vec::new(),
            most_receives: 1024,
            gives_up: true,
            ring: match dice.below(3) {
                0 => 256 + 4 + dice.below(20) as usize,
                _ => 2048,
            },
        };
        if dice.chance(300) {
            plan.most_receives = 2 + dice.below(30) as usize;
        }
        // Dead peers are detected only with a limit of patience.
        plan.gives_up = plan.shape.loses() || dice.chance(800);
        let span = Duration::from_millis(dice.one_of(&[1, 50, 3_000, 20_000]));
        plan.draw_messages(&mut dice, span);
        plan.draw_accesses(&mut dice, span);
        plan.draw_misfortunes(&mut dice, span);
        for _ in 0..plan.nodes {
            let region = plan.lend(0, REGION);
            let read = region.part(READ_AT, READ_BYTES).expect("it is inside");
            read.with_mut(|bytes| {
                let all = bytes.iter_mut().enumerate();
                all.for_each(|(at, byte)| *byte = constant(at));
            });
            Pieces::One(region).fill(TRIPLES, &1_u64.to_le_bytes());
            plan.regions.push(region);
        }
        plan.draw_extras(&mut Dice::new(seed ^ 0x0e87_4a5e), span);
        plan.agenda.sort_by_key(|(time, _)| *time);
        plan
    }

    /// Whether peers may be declared lost.
    pub const fn loses(&self) -> bool {
        self.shape.loses()
    }

    /// Whether NICs have receives for all endpoints.
    pub const fn has_all_receives(&self) -> bool {
        self.most_receives >= 1024
    }

    pub fn lend(&mut self, skip: usize, len: usize) -> Bytes {
        let bytes = self.arena.bytes(skip, len);
        self.memories.push(bytes);
        bytes
    }

    /// Memory of a program, in one piece or in several.
    pub fn pieces(&mut self, dice: &mut Dice, len: usize) -> Pieces {
        if dice.chance(800) || len < 3 {
            return Pieces::One(self.lend(dice.below(3) as usize * 4, len));
        }
        let first = 1 + dice.below(len as u64 - 1) as usize;
        let skip = dice.below(8) as usize;
        Pieces::Many(vec![self.lend(skip, first), self.lend(0, len - first)])
    }

    fn draw_messages(&mut self, dice: &mut Dice, span: Duration) {
        let count = 1 + dice.below(dice_size(self.nodes));
        for number in 0..count as usize {
            let (from, to) = self.pair(dice, true);
            let tag = dice.below(3);
            let len = dice.one_of(&LENGTHS);
            let bytes = self.pieces(dice, len);
            bytes.fill(0, &pattern(len, number));
            let time = dice.between(Duration::ZERO, span);
            self.agenda.push((time, Action::Send(number)));
            self.messages.push(Message {
                from,
                to,
                tag,
                bytes,
                len,
            });
        }
        let longest = *LENGTHS.iter().max().expect("there are some");
        for number in 0..count as usize {
            let message = &self.messages[number];
            let (at, from, tag) = match self.matching {
                Match::Exact => (message.to, Some(message.from), Some(message.tag)),
                Match::Tag => (message.to, None, Some(message.tag)),
                Match::Any => (message.to, None, None),
            };
            let into = self.pieces(dice, longest);
            let time = dice.between(Duration::ZERO, span);
            self.agenda.push((time, Action::Receive(number)));
            self.receives.push(Receive {
                at,
                from,
                tag,
                into,
            });
        }
    }

    pub fn pair(&self, dice: &mut Dice, may_be_self: bool) -> (usize, usize) {
        loop {
            let (from, to) = (
                dice.below(self.nodes as u64) as usize,
                dice.below(self.nodes as u64) as usize,
            );
            if from != to || (may_be_self && dice.chance(300)) {
                return (from, to);
            }
        }
    }

    fn draw_accesses(&mut self, dice: &mut Dice, span: Duration) {
        for number in 0..dice.below(dice_size(self.nodes)) as usize {
            let (from, to) = self.pair(dice, false);
            let len = dice.one_of(&[1, 8, 64, 100, 129, 3_000, 4_096, 9_000, 20_000]);
            let drawn = match self.shape {
                Shape::LatePuts => 5,
                _ => dice.below(5),
            };
            let kind = match drawn {
                0 => Kind::Read {
                    at: dice.below(READ_BYTES as u64 - 20_000) as usize,
                    len: dice.one_of(&[4, 8, 60, 1_000, 20_000]),
                },
                1 => Kind::Add,
                2 => Kind::Triple,
                _ => Kind::Write {
                    slot: dice.below(SLOTS as u64) as usize,
                    len,
                    with_data: dice.chance(300),
                },
            };
            let memory = self.memory_of(dice, number, kind);
            let time = dice.between(Duration::ZERO, span);
            self.agenda.push((time, Action::Access(number)));
            self.accesses.push(Access {
                from,
                to,
                kind,
                memory,
            });
        }
    }

    /// The memory of an access, with the bytes that it writes.
    pub fn memory_of(&mut self, dice: &mut Dice, number: usize, kind: Kind) -> Pieces {
        match kind {
            Kind::Write { len, .. } | Kind::BriefWrite { len, .. } => {
                let memory = self.pieces(dice, len);
                memory.fill(0, &pattern(len, number + 77));
                memory
            }
            Kind::Read { len, .. } | Kind::BriefRead { len, .. } => self.pieces(dice, len),
            Kind::Add | Kind::Triple => {
                let memory = self.pieces(dice, 8);
                let operand: u64 = if kind == Kind::Add { 1 } else { 3 };
                memory.fill(0, &operand.to_le_bytes());
                memory
            }
        }
    }

    fn draw_misfortunes(&mut self, dice: &mut Dice, span: Duration) {
        let when = |dice: &mut Dice| dice.between(Duration::ZERO, span);
        for _ in 0..dice.below(3) {
            let at = dice.below(self.nodes as u64) as usize;
            let time = dice.between(Duration::ZERO, Duration::from_secs(3));
            self.agenda.push((when(dice), Action::Compute(at, time)));
        }
        let someone = dice.below(self.nodes as u64) as usize;
        match self.shape {
            Shape::Calm | Shape::Faulty | Shape::LatePuts => {}
            Shape::ShortCuts | Shape::LongCuts => {
                let (a, b) = self.pair(dice, false);
                let (least, most) = match self.shape {
                    Shape::ShortCuts => (100, 5_000),
                    _ => (9_000, 40_000),
                };
                let (least, most) = (Duration::from_millis(least), Duration::from_millis(most));
                let time = dice.between(least, most);
                self.agenda.push((when(dice), Action::Cut(a, b, time)));
            }
            Shape::End => self.agenda.push((when(dice), Action::End(someone))),
            Shape::Busy => {
                let time = Duration::from_secs(20 + dice.below(150));
                self.agenda
                    .push((when(dice), Action::Compute(someone, time)));
            }
            Shape::Silence => self.agenda.push((when(dice), Action::Silence(someone))),
        }
    }

    pub fn network(&self, seed: u64) -> Network {
        let mut processors: Vec<_> = (0..self.nodes as u16).collect();
        processors.extend(self.extras.companions.iter().map(|&at| at as u16));
        let mut net = Network::new(&processors, seed ^ 0x5eed, self.reaches_own);
        net.memories = self.memories.clone();
        net.most_receives = self.most_receives;
        net.most_handles = self.extras.handles.unwrap_or(net.most_handles);
        for (number, &at) in self.extras.companions.iter().enumerate() {
            net.nodes[self.nodes + number].domain = at;
        }
        for node in &mut net.nodes {
            node.ring = self.ring;
            if !self.gives_up {
                node.endpoint.wait_for(Duration::ZERO);
            }
        }
        net
    }

    /// Registers the memory that peers access.
    pub fn open_regions(&mut self, net: &mut Network) -> Result<(), String> {
        for at in 0..self.nodes {
            let key = self.open(net, at, self.regions[at], true)?;
            self.keys.push(key);
        }
        for number in 0..self.extras.briefs.len() {
            let brief = &self.extras.briefs[number];
            let key = self.open(net, brief.at, brief.bytes, brief.is_open)?;
            self.extras.briefs[number].key = key;
        }
        Ok(())
    }

    /// Registers memory of a program: at the NIC, if that is wanted and possible.
    fn open(
        &self,
        net: &mut Network,
        at: usize,
        bytes: Bytes,
        at_nic: bool,
    ) -> Result<u64, String> {
        let access = FI_REMOTE_READ | FI_REMOTE_WRITE;
        let by = self.companion(at).unwrap_or(at);
        let endpoint = &mut net.nodes[by].endpoint;
        let base = at_nic.then(|| endpoint.begin_opening(&bytes, access));
        let mut opened = None;
        if let Some(base) = base.flatten() {
            let end = net.now + Duration::from_secs(10);
            net.run(end, |net| {
                net.nodes[by].endpoint.ended_registration().is_some()
            });
            let ended = net.nodes[by].endpoint.ended_registration();
            let by = Some(net.nodes[by].endpoint.address());
            opened = match ended {
                Some((Status::Done, handle)) => {
                    let handle = handle as u16;
                    let reach = Reach { handle, base };
                    let key = net.nodes[at].shared.new_key_of(reach);
                    key.map(|key| (key, Open { reach, by }))
                }
                Some((Status::TooMany, _)) => None,
                _ => return Err(format!("a registration at {at} ended with {ended:?}")),
            };
        }
        let shared = &mut net.nodes[at].shared;
        let key = opened.map_or_else(|| shared.new_key(), |(key, _)| key);
        let region = Region {
            bytes,
            access,
            base: bytes.address(),
            open: opened.map(|(_, open)| open),
            counters: Vec::new(),
        };
        shared.regions.insert(key, region);
        Ok(key)
    }
}

/// Lengths of messages, the short ones more often: of one message, of a staged part, of several.
const LENGTHS: [usize; 16] = [
    0, 1, 64, 100, 8, 4_000, 8_096, 8, 200, 8_097, 20_000, 16, 262_144, 262_145, 600_000, 50,
];

const fn dice_size(nodes: usize) -> u64 {
    12 * nodes as u64
}

fn faults(dice: &mut Dice, shape: Shape) -> Faults {
    let latency = Duration::from_micros(dice.one_of(&[5, 50, 2_000]));
    let most = match shape {
        Shape::Calm => 0,
        _ => dice.one_of(&[1, 5, 12]),
    };
    let mut draw = || dice.below(most + 1);
    if shape == Shape::LatePuts {
        return Faults {
            late: 150,
            damaged: 50,
            refused: 50,
            latency,
            ..Faults::default()
        };
    }
    Faults {
        lost: draw(),
        unanswered: draw(),
        late: draw(),
        damaged: draw(),
        refused: draw(),
        latency,
    }
}
