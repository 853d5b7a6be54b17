//! Endpoints.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

use phitwire_client::door::{Access, Completion, Local, Status};
use phitwire_client::patience::Patience;
use phitwire_client::{AttachError, Error, Nic, Options};

use super::direct::Direct;
use super::liveness::{Lookout, TICK};
use super::matching::Receives;
use super::peers::{Parcel, Peers};
use super::reach::{Awaited, Ranges};
use super::requests::Request;
use super::shared::{Binds, Shared};
use super::slots::{self, FETCHES, RECEIVES, SEGMENT, SENDS, STAGES, STAGES_AT, Slab};
use super::transfers::{Fetch, Offer, Pull};
use super::transmit::Sending;
use super::wire::{Address, HEAD, Head, PART, SLOT};
use crate::abi::library;
use crate::place::Place;

/// Command names: a kind, and a slot.
const RECEIVE: u64 = 1 << 40;
const SEND: u64 = 2 << 40;
const FETCH: u64 = 3 << 40;
pub(super) const REGISTER: u64 = 4 << 40;
pub(super) const PROBE: u64 = 5 << 40;
pub(super) const DIRECT: u64 = 6 << 40;
pub(super) const DEREGISTER: u64 = 7 << 40;
pub(super) const KINDS: u64 = !0 << 40;

/// Time limit for messages in flight at closing.
const DRAIN: Duration = Duration::from_secs(5);
/// While closing, time until peers that messages have not reached are probed, and between
/// probes. A NIC tries for seconds to deliver to a program without receives, and ranks that end
/// together owe each other acknowledgements.
const ASK_AT_CLOSE: Duration = Duration::from_millis(50);
/// Maximum number of completions handled in one turn.
const TURN: usize = 256;
/// Calls between two reads of the clock.
const CLOCK_EVERY: u32 = 32;

/// A command deferred because the ring was full.
#[derive(Clone, Copy, Debug)]
pub enum Later {
    /// A receive, by slot.
    Receive(usize),
    /// A message, by slot.
    Send(usize),
    /// A fetch, by slot.
    Fetch(usize),
    /// A piece of a one-sided operation, by slot.
    Direct(usize),
}

/// An endpoint.
#[derive(Debug)]
pub struct Endpoint {
    pub(super) nic: Nic,
    /// Address of the endpoint.
    pub address: Address,
    /// The objects that it is bound to.
    pub binds: Binds,
    /// The requested capabilities.
    pub caps: u64,
    /// Default flags of operations: sends, receives.
    pub op_flags: [u64; 2],
    /// Bytes of room below which a multi-receive buffer is full.
    pub least_room: usize,
    pub(super) handle: u16,
    pub(super) is_gone: bool,
    pub(super) peers: Peers,
    /// Messages to itself.
    pub(super) to_self: VecDeque<Parcel>,
    pub(super) sends: Slab<Sending>,
    pub(super) waiting: Vec<usize>,
    /// Peers that may be owed an acknowledgement.
    pub(super) owed: Vec<usize>,
    pub(super) queued: usize,
    pub(super) window: u64,
    pub(super) receives: Receives,
    pub(super) stages: Slab<()>,
    pub(super) offers: HashMap<u64, Offer>,
    pub(super) hungry: VecDeque<u64>,
    pub(super) pulls: HashMap<(usize, u64), Pull>,
    pub(super) fetches: Slab<Fetch>,
    pub(super) unfetched: VecDeque<Fetch>,
    pub(super) requests: HashMap<u64, Request>,
    pub(super) next_id: u64,
    /// Whether the NIC reaches the program's own memory.
    pub(super) reaches_own: bool,
    pub(super) direct: Direct,
    /// Peers whose atomic request is being carried out, and their next ones.
    pub(super) serving: HashMap<usize, VecDeque<(Head, Vec<u8>)>>,
    pub(super) ranges: Ranges,
    pub(super) awaited: Awaited,
    /// Monitors the peers.
    pub lookout: Lookout,
    later: VecDeque<Later>,
    /// Slots of receives that the NIC rejected because other programs hold them all.
    refused: Vec<usize>,
    turns: u32,
    pub(super) looked: Instant,
}

impl Endpoint {
    /// Attaches to the NIC.
    ///
    /// # Errors
    /// See [`AttachError`].
    pub fn attach(place: &Place) -> Result<Self, AttachError> {
        let options = Options {
            job: place.job,
            member: None,
            data_bytes: SEGMENT,
        };
        let mut nic = Nic::attach(&place.door, &options)?;
        let unfit = |what| AttachError::Unfit {
            place: place.door.clone(),
            what,
        };
        let has = nic.operations();
        if !(has.blocks && has.messages) {
            return Err(unfit(
                "puts and gets only, where block transfers and messages are expected".into(),
            ));
        }
        let handle = register(&mut nic).map_err(unfit)?;
        let address = Address {
            processor: nic.processor(),
            member: nic.member(),
            incarnation: incarnation(handle),
        };
        let mut endpoint = Self {
            nic,
            address,
            binds: Binds::default(),
            caps: 0,
            op_flags: [0; 2],
            least_room: 64,
            handle,
            is_gone: false,
            peers: Peers::default(),
            to_self: VecDeque::new(),
            sends: Slab::new(SENDS),
            waiting: Vec::new(),
            owed: Vec::new(),
            queued: 0,
            window: 2,
            receives: Receives::default(),
            stages: Slab::new(STAGES),
            offers: HashMap::new(),
            hungry: VecDeque::new(),
            pulls: HashMap::new(),
            fetches: Slab::new(FETCHES),
            unfetched: VecDeque::new(),
            requests: HashMap::new(),
            next_id: 1,
            reaches_own: false,
            direct: Direct::default(),
            serving: HashMap::new(),
            ranges: Ranges::default(),
            awaited: Awaited::default(),
            lookout: Lookout::default(),
            later: VecDeque::new(),
            refused: Vec::new(),
            turns: 0,
            looked: Instant::now(),
        };
        for slot in 0..RECEIVES {
            endpoint.command(Later::Receive(slot));
        }
        endpoint.nic.flush();
        if place.reach {
            endpoint.look_for_reach(&mut Shared::default());
        }
        Ok(endpoint)
    }

    /// Posts a command, or defers it until the ring has room.
    pub(super) fn command(&mut self, later: Later) {
        let given = match later {
            Later::Receive(slot) => {
                let into = Local {
                    offset: slots::receive_at(slot),
                    bytes: SLOT as u64,
                };
                self.nic.receive(RECEIVE | slot as u64, into)
            }
            Later::Send(slot) => {
                let Some(sending) = self.sends.get(slot) else {
                    return;
                };
                let to = self.peers.all[sending.peer].address;
                let from = Local {
                    offset: slots::send_at(slot),
                    bytes: sending.bytes as u64,
                };
                let name = SEND | slot as u64;
                self.nic.send(name, to.processor, to.member, from)
            }
            Later::Fetch(slot) => {
                let Some(fetch) = self.fetches.get(slot) else {
                    return;
                };
                let into = fetch.into.unwrap_or(Local {
                    offset: slots::fetch_at(slot),
                    bytes: fetch.bytes as u64,
                });
                self.nic.block_get(FETCH | slot as u64, fetch.from, into)
            }
            Later::Direct(slot) => self.ask_directly(slot),
        };
        match given {
            Ok(()) => {}
            Err(Error::Full) => self.later.push_back(later),
            Err(_) => self.is_gone = true,
        }
    }

    /// Makes progress. Returns whether anything moved.
    pub fn progress(&mut self, shared: &mut Shared) -> bool {
        let (mut moved, mut is_all) = (false, false);
        for _ in 0..TURN {
            match self.nic.poll() {
                Ok(Some(completion)) => self.completed(shared, &completion),
                Ok(None) => {
                    is_all = true;
                    break;
                }
                Err(error) => {
                    self.lose_all(shared, &error);
                    return moved;
                }
            }
            moved = true;
        }
        while let Some(parcel) = self.to_self.pop_front() {
            let own = self.peers.number(self.address, self.address);
            self.take_in(shared, own, parcel.head, parcel.payload);
            moved = true;
        }
        for _ in 0..self.later.len() {
            if let Some(later) = self.later.pop_front() {
                self.command(later);
            }
        }
        self.send_waiting(shared);
        self.pay_owed();
        if moved {
            self.nic.flush();
        }
        self.turns = self.turns.wrapping_add(1);
        // Judge peers only when all their replies have been read.
        if is_all && self.turns.is_multiple_of(CLOCK_EVERY) && self.looked.elapsed() >= TICK {
            self.tick(shared);
        }
        moved
    }

    fn completed(&mut self, shared: &mut Shared, completion: &Completion) {
        match *completion {
            Completion::Received {
                name,
                status,
                bytes,
                ..
            } => {
                let slot = (name & !KINDS) as usize;
                if status == Status::Done {
                    self.arrived(shared, slot, bytes as usize);
                }
                self.command(Later::Receive(slot));
            }
            Completion::End {
                name, status, word, ..
            } => {
                let slot = (name & !KINDS) as usize;
                match name & KINDS {
                    SEND => self.sent(shared, slot, status),
                    FETCH => self.fetched(shared, slot, status),
                    PROBE => self.answered(shared, slot, status),
                    DIRECT => self.ended_directly(shared, slot, (status, word)),
                    REGISTER | DEREGISTER => self.registered(completion),
                    RECEIVE if status == Status::TooMany => self.refused.push(slot),
                    _ => {}
                }
            }
            Completion::Landed { .. } | Completion::Told { .. } => {}
        }
    }

    fn arrived(&mut self, shared: &mut Shared, slot: usize, bytes: usize) {
        let Some(len) = bytes.checked_sub(HEAD) else {
            return;
        };
        let at = slots::receive_at(slot);
        let mut head = [0; HEAD];
        let mut payload = vec![0; len.min(SLOT - HEAD)];
        let read = self.nic.read(at, &mut head);
        let read = read.and_then(|()| self.nic.read(at + HEAD as u64, &mut payload));
        if let (Ok(()), Some(head)) = (read, Head::parse(&head)) {
            self.message(shared, head, payload);
        }
    }

    /// Posts rejected receives again: other programs may have left.
    pub(super) fn post_refused(&mut self) {
        for slot in std::mem::take(&mut self.refused) {
            self.command(Later::Receive(slot));
        }
    }

    /// Prepares to sleep. Returns whether to sleep until a descriptor of [`Self::wakers`] is
    /// readable.
    pub fn arm(&mut self) -> bool {
        !self.is_gone && self.nic.arm()
    }

    /// Ends what [`Self::arm`] began, after sleep.
    pub fn disarm(&mut self) {
        self.nic.disarm();
    }

    /// The descriptors that wake it.
    pub fn wakers(&self) -> [RawFd; 2] {
        [self.nic.fd().as_raw_fd(), self.nic.socket().as_raw_fd()]
    }

    fn has_sent_all(&self) -> bool {
        let peers = &self.peers.all;
        let mut sends = self.sends.iter();
        sends.all(|sending| peers[sending.peer].failed.is_some())
    }

    /// Waits a few seconds at most until messages in flight have arrived; those to a program that
    /// has ended are not waited for.
    pub fn drain(&mut self, shared: &mut Shared) {
        let mut asks_at = Instant::now() + ASK_AT_CLOSE;
        let (mut patience, mut asleep) = (Patience::new(DRAIN), Duration::ZERO);
        while !self.is_gone
            && patience.left(asleep).is_some()
            && !(self.has_sent_all()
                && self.queued == 0
                && self.to_self.is_empty()
                && self.direct.wholes.is_empty())
        {
            asleep = Duration::ZERO;
            if !self.progress(shared) && self.nic.arm() {
                asleep = Duration::from_millis(5);
                library::poll(&self.wakers(), asleep);
                self.nic.disarm();
            }
            if Instant::now() >= asks_at {
                asks_at = Instant::now() + ASK_AT_CLOSE;
                self.ask_the_unreached();
            }
        }
    }
}

/// Opens the stages to peers and returns their handle.
fn register(nic: &mut Nic) -> Result<u16, String> {
    let part = Local {
        offset: STAGES_AT,
        bytes: (STAGES * PART) as u64,
    };
    let access = Access {
        put: false,
        get: true,
        atomic: false,
    };
    let said = |error: Error| format!("its memory cannot be registered: {error}");
    nic.register(REGISTER, part, access).map_err(said)?;
    match nic
        .wait(Some(phitwire_client::attach::PATIENCE))
        .map_err(said)?
    {
        Some(Completion::End {
            status: Status::Done,
            word,
            ..
        }) => u16::try_from(word).map_err(|_| format!("{word} is no handle")),
        other => Err(format!("it registered no memory, but answered {other:?}")),
    }
}

/// A number that the next program at this address will not have.
fn incarnation(handle: u16) -> u32 {
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = time.map_or(0, |time| time.as_nanos() as u64);
    let mixed = (nanos ^ u64::from(std::process::id()) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32 & !0xffff | u32::from(handle)
}
