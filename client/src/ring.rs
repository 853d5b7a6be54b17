//! Both ends of a segment's two rings: commands in one direction, completions in the other.
//!
//! The producer writes entries and publishes them by advancing the tail. The consumer copies them
//! out and returns their slots by advancing the head. Each side keeps its indices in private memory
//! and only writes them to the segment; it checks those of the other side at every read
//! ([`Broken`]).
//!
//! # Room for completions
//! Every command finds room for its completion. The client has at most [`COMPLETIONS`] commands and
//! posted receives in flight, each counted until its completion was polled. It posts at most
//! [`COMMANDS`] fewer receives, so that receives never block other commands. The NIC takes a
//! command only when there is room for its completion besides those of all commands already taken,
//! and reserves a slot for each posted receive until its message has arrived. Unsolicited
//! completions (`PutEvent`, `BlockEvent`) get the remaining slots.
//!
//! # Sleep
//! Before it sleeps, a side sets its flag ([`ClientEnd::sleeps`]), *then* checks once more
//! ([`ClientEnd::has_completions`]), and sleeps only if there is nothing. The other side publishes,
//! *then* reads the flag. A sequentially consistent fence separates the two steps on both sides, so
//! at least one side sees the other's write, and no wake is lost. The flag gives the reason to
//! wake: new entries only or, for a side that lacks room, room as well.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::fence;

use phitwire_framing::door::segment::{
    CLIENT_SLEEPS_AT, COMMANDS, COMMANDS_HEAD_AT, COMMANDS_TAIL_AT, COMPLETIONS,
    COMPLETIONS_HEAD_AT, COMPLETIONS_TAIL_AT, NIC_SLEEPS_AT, command_at, completion_at,
};
use phitwire_framing::door::{
    COMMAND_BYTES, COMPLETION_BYTES, Command, Completion, EntryError, Request, Status,
};

use crate::Mapping;

/// Maximum number of receives that a client posts while nothing else is in flight.
pub const MOST_RECEIVES: u64 = COMPLETIONS - COMMANDS;

/// A violation of the protocol by the other side. Nothing from that side can be relied on any
/// longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// An index of the other side is out of range.
    #[error("invalid {what} {is} from the other side: expected {least} to {most}")]
    Index {
        /// Name of the index.
        what: &'static str,
        /// Value of the index.
        is: u64,
        /// Smallest valid value.
        least: u64,
        /// Largest valid value.
        most: u64,
    },
    /// Not a valid completion.
    #[error("invalid completion: {0}")]
    Entry(EntryError),
    /// There were more completions than commands.
    #[error("completion of a command that was not in flight")]
    Unasked,
}

/// Why a command was not posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// No room for the command, or for its completion: polling makes room.
    #[error("too many commands in flight")]
    Full,
    /// The command cannot be encoded.
    #[error("{0}")]
    Entry(EntryError),
    /// The other side is broken.
    #[error("{0}")]
    Broken(#[from] Broken),
}

/// Values of a sleep flag: awake, wake for new entries, wake for room too.
const AWAKE: u64 = 0;
const FOR_NEWS: u64 = 1;
const FOR_ROOM: u64 = 2;

/// The layout of one of the two rings.
#[derive(Debug)]
struct Ring {
    length: u64,
    tail_at: usize,
    tail_name: &'static str,
    head_at: usize,
    head_name: &'static str,
}

const COMMAND_RING: Ring = Ring {
    length: COMMANDS,
    tail_at: COMMANDS_TAIL_AT,
    tail_name: "tail of commands",
    head_at: COMMANDS_HEAD_AT,
    head_name: "head of commands",
};

const COMPLETION_RING: Ring = Ring {
    length: COMPLETIONS,
    tail_at: COMPLETIONS_TAIL_AT,
    tail_name: "tail of completions",
    head_at: COMPLETIONS_HEAD_AT,
    head_name: "head of completions",
};

/// An index of the other side, which must be in `least..=most`.
fn checked(what: &'static str, is: u64, least: u64, most: u64) -> Result<u64, Broken> {
    match (least..=most).contains(&is) {
        true => Ok(is),
        false => Err(Broken::Index {
            what,
            is,
            least,
            most,
        }),
    }
}

/// The producer's end of a ring. Indices have 64 bits and never wrap.
#[derive(Debug)]
struct Filling {
    ring: Ring,
    tail: u64,
    published: u64,
    /// The other side's head as last read.
    head: u64,
}

impl Filling {
    const fn new(ring: Ring) -> Self {
        Self {
            ring,
            tail: 0,
            published: 0,
            head: 0,
        }
    }

    /// Free slots, as of the last read.
    const fn known_room(&self) -> u64 {
        self.ring.length - (self.tail - self.head)
    }

    /// Number of free slots, according to the other side's head.
    fn room(&mut self, mapping: &Mapping) -> Result<u64, Broken> {
        // Acquire: the other side has read the slots that it returns before we overwrite them.
        let head = mapping.word(self.ring.head_at).load(Acquire);
        self.head = checked(self.ring.head_name, head, self.head, self.published)?;
        Ok(self.known_room())
    }

    /// Whether the other side has returned slots since the last [`room`](Self::room).
    fn has_more_room(&self, mapping: &Mapping) -> bool {
        mapping.word(self.ring.head_at).load(Relaxed) != self.head
    }

    fn publish(&mut self, mapping: &Mapping) -> bool {
        let is_new = self.tail != self.published;
        if is_new {
            // Release: the entries are visible before the tail.
            mapping.word(self.ring.tail_at).store(self.tail, Release);
            self.published = self.tail;
        }
        is_new
    }
}

/// The consumer's end of a ring.
#[derive(Debug)]
struct Emptying {
    ring: Ring,
    head: u64,
    published: u64,
    /// The other side's tail as last read.
    tail: u64,
}

impl Emptying {
    const fn new(ring: Ring) -> Self {
        Self {
            ring,
            head: 0,
            published: 0,
            tail: 0,
        }
    }

    /// Whether there is an entry to take.
    fn has_entry(&mut self, mapping: &Mapping) -> Result<bool, Broken> {
        if self.head == self.tail {
            // Acquire: the other side has written the entries before the tail.
            let tail = mapping.word(self.ring.tail_at).load(Acquire);
            // The tail never passes the slots that were returned to the producer.
            let most = self.published + self.ring.length;
            self.tail = checked(self.ring.tail_name, tail, self.tail, most)?;
        }
        Ok(self.head != self.tail)
    }

    fn has_more(&self, mapping: &Mapping) -> bool {
        mapping.word(self.ring.tail_at).load(Relaxed) != self.head
    }

    fn taken(&mut self) {
        assert!(self.head < self.tail, "no entry to take");
        self.head += 1;
    }

    fn publish(&mut self, mapping: &Mapping) -> bool {
        let is_new = self.head != self.published;
        if is_new {
            // Release: the entries are copied before their slots are returned.
            mapping.word(self.ring.head_at).store(self.head, Release);
            self.published = self.head;
        }
        is_new
    }
}

/// Whether to wake the side whose flag is at `flag_at`, after publishing entries or room.
fn has_to_wake(mapping: &Mapping, flag_at: usize, entries: bool, room: bool) -> bool {
    if !entries && !room {
        return false;
    }
    fence(SeqCst);
    match mapping.word(flag_at).load(Relaxed) {
        AWAKE => false,
        FOR_NEWS => entries,
        _ => true,
    }
}

/// The NIC's end, on a segment that no program has used.
///
/// Take commands with [`command`](Self::command) and [`taken`](Self::taken), and complete them with
/// [`complete`](Self::complete) within [`room`](Self::room). [`publish`](Self::publish) both
/// regularly, at the latest before sleep.
#[derive(Debug)]
pub struct NicEnd {
    mapping: Arc<Mapping>,
    commands: Emptying,
    completions: Filling,
}

impl NicEnd {
    /// The end on an unused `mapping`.
    pub const fn new(mapping: Arc<Mapping>) -> Self {
        Self {
            mapping,
            commands: Emptying::new(COMMAND_RING),
            completions: Filling::new(COMPLETION_RING),
        }
    }

    /// The shared memory.
    pub fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// Copies the oldest command not yet taken into `room`; `false` if there is none.
    ///
    /// The next call copies it again, and may find different bytes, since the program can still
    /// write to it: validate and use the same copy.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn command(&mut self, room: &mut [u8; COMMAND_BYTES]) -> Result<bool, Broken> {
        if !self.commands.has_entry(&self.mapping)? {
            return Ok(false);
        }
        let copied = self.mapping.read(command_at(self.commands.head), room);
        copied.expect("every segment contains the rings");
        Ok(true)
    }

    /// Takes the command that [`command`](Self::command) copied.
    ///
    /// # Panics
    /// If it copied none.
    pub fn taken(&mut self) {
        self.commands.taken();
    }

    /// Free slots for completions.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn room(&mut self) -> Result<u64, Broken> {
        self.completions.room(&self.mapping)
    }

    /// Writes a completion.
    ///
    /// # Panics
    /// If the last [`room`](Self::room) left no slot for it.
    pub fn complete(&mut self, completion: &Completion) {
        assert!(self.completions.known_room() > 0, "no room for completions");
        let mut entry = [0; COMPLETION_BYTES];
        completion.emit(&mut entry);
        let at = completion_at(self.completions.tail);
        let written = self.mapping.write(at, &entry);
        written.expect("every segment contains the rings");
        self.completions.tail += 1;
    }

    /// Makes completions and taken commands visible to the program. Returns whether the program
    /// sleeps and must be woken.
    #[must_use = "a sleeping program must be woken"]
    pub fn publish(&mut self) -> bool {
        let entries = self.completions.publish(&self.mapping);
        let room = self.commands.publish(&self.mapping);
        has_to_wake(&self.mapping, CLIENT_SLEEPS_AT, entries, room)
    }

    /// Requests a wake for new commands or, with `false`, cancels the request. Publish before, and
    /// sleep only if [`has_commands`](Self::has_commands) then finds none.
    pub fn sleeps(&self, sleeps: bool) {
        let flag = if sleeps { FOR_NEWS } else { AWAKE };
        self.mapping.word(NIC_SLEEPS_AT).store(flag, Relaxed);
    }

    /// Requests a wake for room as well, when the NIC lacks room to take a command. Sleep only if
    /// [`has_more_room`](Self::has_more_room) then finds none.
    pub fn sleeps_until_room(&self) {
        self.mapping.word(NIC_SLEEPS_AT).store(FOR_ROOM, Relaxed);
    }

    /// Whether there are commands to take.
    pub fn has_commands(&self) -> bool {
        fence(SeqCst);
        self.commands.has_more(&self.mapping)
    }

    /// Whether the program has taken completions since the last [`room`](Self::room).
    pub fn has_more_room(&self) -> bool {
        fence(SeqCst);
        self.completions.has_more_room(&self.mapping)
    }
}

/// The program's end, on a segment that has not been used.
///
/// Post commands with [`post`](Self::post) and take completions with [`poll`](Self::poll).
/// [`publish`](Self::publish) both regularly, at the latest before sleep.
#[derive(Debug)]
pub struct ClientEnd {
    mapping: Arc<Mapping>,
    commands: Filling,
    completions: Emptying,
    /// Number of commands and receives whose completions were not polled.
    under_way: u64,
    /// Names of receives with a take-back in flight.
    taken_back: Vec<u64>,
    /// Whether the last command found no room in its ring.
    wants_room: bool,
}

/// The significant bits of a name.
const NAME: u64 = (1 << Command::NAME_BITS) - 1;

impl ClientEnd {
    /// The end on an unused `mapping`.
    pub const fn new(mapping: Arc<Mapping>) -> Self {
        Self {
            mapping,
            commands: Filling::new(COMMAND_RING),
            completions: Emptying::new(COMPLETION_RING),
            under_way: 0,
            taken_back: Vec::new(),
            wants_room: false,
        }
    }

    /// The shared memory.
    pub fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// Number of commands and posted receives whose completions were not polled.
    pub const fn under_way(&self) -> u64 {
        self.under_way
    }

    /// Writes a command.
    ///
    /// # Errors
    /// See [`PostError`]; the command is then not posted.
    pub fn post(&mut self, command: &Command<'_>) -> Result<(), PostError> {
        let mut entry = [0; COMMAND_BYTES];
        command.emit(&mut entry).map_err(PostError::Entry)?;
        let most = match command.request {
            Request::Receive { .. } => MOST_RECEIVES,
            _ => COMPLETIONS,
        };
        if self.under_way >= most {
            return Err(PostError::Full);
        }
        self.wants_room =
            self.commands.known_room() == 0 && self.commands.room(&self.mapping)? == 0;
        if self.wants_room {
            return Err(PostError::Full);
        }
        let written = self.mapping.write(command_at(self.commands.tail), &entry);
        written.expect("every segment contains the rings");
        self.commands.tail += 1;
        self.under_way += 1;
        if command.request == Request::CancelReceive {
            self.taken_back.push(command.name & NAME);
        }
        Ok(())
    }

    /// Takes the oldest completion, if any.
    ///
    /// # Errors
    /// See [`Broken`]; so does every later call.
    pub fn poll(&mut self) -> Result<Option<Completion>, Broken> {
        if !self.completions.has_entry(&self.mapping)? {
            return Ok(None);
        }
        let mut entry = [0; COMPLETION_BYTES];
        let at = completion_at(self.completions.head);
        let copied = self.mapping.read(at, &mut entry);
        copied.expect("every segment contains the rings");
        let completion = Completion::parse(&entry).map_err(Broken::Entry)?;
        let ended = self.ended(&completion);
        self.under_way = self.under_way.checked_sub(ended).ok_or(Broken::Unasked)?;
        self.completions.taken();
        Ok(Some(completion))
    }

    /// Number of commands and receives that a completion ends. A successful take-back also ends its
    /// receive.
    fn ended(&mut self, completion: &Completion) -> u64 {
        let (name, was_taken_back) = match *completion {
            Completion::End {
                name, status, word, ..
            } => (name, status == Status::Done && word == 1),
            Completion::Received { .. } => return 1,
            Completion::PutEvent { .. } | Completion::BlockEvent { .. } => return 0,
        };
        let mut names = self.taken_back.iter();
        let Some(at) = names.position(|&taken| taken == name & NAME) else {
            return 1;
        };
        self.taken_back.swap_remove(at);
        1 + u64::from(was_taken_back)
    }

    /// Completions taken whose slots are not yet returned.
    pub const fn unpublished(&self) -> u64 {
        self.completions.head - self.completions.published
    }

    /// Makes commands and taken completions visible to the NIC. Returns whether the NIC sleeps and
    /// must be woken.
    #[must_use = "a sleeping NIC must be woken"]
    pub fn publish(&mut self) -> bool {
        let entries = self.commands.publish(&self.mapping);
        let room = self.completions.publish(&self.mapping);
        has_to_wake(&self.mapping, NIC_SLEEPS_AT, entries, room)
    }

    /// Requests a wake for new completions (and for room, if the last command found none in its
    /// ring) or, with `false`, cancels the request. Publish before, and sleep only if
    /// [`has_completions`](Self::has_completions) and [`has_more_room`](Self::has_more_room) then
    /// find none.
    pub fn sleeps(&self, sleeps: bool) {
        let flag = match (sleeps, self.wants_room) {
            (false, _) => AWAKE,
            (true, false) => FOR_NEWS,
            (true, true) => FOR_ROOM,
        };
        self.mapping.word(CLIENT_SLEEPS_AT).store(flag, Relaxed);
    }

    /// Whether there are completions to take.
    pub fn has_completions(&self) -> bool {
        fence(SeqCst);
        self.completions.has_more(&self.mapping)
    }

    /// Whether the ring of commands has room again, after a command found none.
    pub fn has_more_room(&self) -> bool {
        fence(SeqCst);
        self.wants_room && self.commands.has_more_room(&self.mapping)
    }
}

#[cfg(test)]
mod tests;
