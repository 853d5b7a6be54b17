//! Both ends of the two rings of a segment: commands one way, completions the other.
//!
//! Who fills a ring writes entries, and publishes them with its tail; who empties it copies
//! entries out, and gives their places back with its head. Each side keeps its own indices in
//! memory of its own and only ever writes them to the segment; those of the other side are
//! checked whenever they are read ([`Broken`]).
//!
//! # Room for completions
//! What was asked for always finds room for its end. The client has at most [`COMPLETIONS`]
//! commands and posted receives under way, where one counts until its end was polled; of receives
//! alone it posts [`COMMANDS`] fewer, so that they never keep it from asking for something else.
//! The network interface takes a command only when there is room for its completion beside those
//! of all it has taken, and keeps the place of a posted receive until a message has come. What
//! comes unasked (`Landed`, `Told`) gets the places that are left.
//!
//! # Sleep
//! Who wants to sleep says so in its flag ([`ClientEnd::sleeps`]), *then* looks once more
//! ([`ClientEnd::has_completions`]), and sleeps only if there is nothing. The other side
//! publishes, *then* reads the flag. A sequentially consistent fence stands between the two steps
//! on both sides, so at least one sees what the other wrote, and no wake-up is lost. The flag tells
//! what for: what is new, or also room, of which a side that has enough of it need not hear.

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

/// Most receives that a client has posted, as long as nothing else is under way.
pub const MOST_RECEIVES: u64 = COMPLETIONS - COMMANDS;

/// What the other side has done that it must not. Nothing that it says can be relied on any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// An index of its own is not where it can be.
    #[error("the other side's {what} is {is}, where {least} to {most} are possible")]
    Index {
        /// Which.
        what: &'static str,
        /// What it is.
        is: u64,
        /// The least that it can be.
        least: u64,
        /// The most that it can be.
        most: u64,
    },
    /// A completion that is none.
    #[error("a completion is none: {0}")]
    Entry(EntryError),
    /// More has ended than was asked for.
    #[error("a command has ended that was not under way")]
    Unasked,
}

/// Why a command was not posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// There is no room for it, or would be none for its completion: polling makes some.
    #[error("as many commands are under way as can be")]
    Full,
    /// It cannot be written.
    #[error("{0}")]
    Entry(EntryError),
    /// The other side is broken.
    #[error("{0}")]
    Broken(#[from] Broken),
}

/// A flag of sleep: awake, wants to hear what is new, wants to hear of room too.
const AWAKE: u64 = 0;
const FOR_NEWS: u64 = 1;
const FOR_ROOM: u64 = 2;

/// One of the two rings.
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

/// An index of the other side, if it is `least` to `most`.
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

/// The end that fills a ring. Indices are of 64 bits and never wrap.
#[derive(Debug)]
struct Filling {
    ring: Ring,
    tail: u64,
    published: u64,
    /// The other side's head, as it was last seen.
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

    /// Entries that fit, as far as is known.
    const fn known_room(&self) -> u64 {
        self.ring.length - (self.tail - self.head)
    }

    /// Entries that fit now.
    fn room(&mut self, mapping: &Mapping) -> Result<u64, Broken> {
        // The other side has read the places that it gives back before we write them anew.
        let head = mapping.word(self.ring.head_at).load(Acquire);
        self.head = checked(self.ring.head_name, head, self.head, self.published)?;
        Ok(self.known_room())
    }

    /// Whether the other side has given places back since [`room`](Self::room) looked.
    fn has_more_room(&self, mapping: &Mapping) -> bool {
        mapping.word(self.ring.head_at).load(Relaxed) != self.head
    }

    fn publish(&mut self, mapping: &Mapping) -> bool {
        let is_new = self.tail != self.published;
        if is_new {
            // The entries are there before the tail tells of them.
            mapping.word(self.ring.tail_at).store(self.tail, Release);
            self.published = self.tail;
        }
        is_new
    }
}

/// The end that empties a ring.
#[derive(Debug)]
struct Emptying {
    ring: Ring,
    head: u64,
    published: u64,
    /// The other side's tail, as it was last seen.
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
            // The other side has written the entries before it tells of them.
            let tail = mapping.word(self.ring.tail_at).load(Acquire);
            // It never gets ahead of what it was given back.
            let most = self.published + self.ring.length;
            self.tail = checked(self.ring.tail_name, tail, self.tail, most)?;
        }
        Ok(self.head != self.tail)
    }

    fn has_more(&self, mapping: &Mapping) -> bool {
        mapping.word(self.ring.tail_at).load(Relaxed) != self.head
    }

    fn taken(&mut self) {
        assert!(self.head < self.tail, "nothing was there to be taken");
        self.head += 1;
    }

    fn publish(&mut self, mapping: &Mapping) -> bool {
        let is_new = self.head != self.published;
        if is_new {
            // The entries are copied before their places are given back.
            mapping.word(self.ring.head_at).store(self.head, Release);
            self.published = self.head;
        }
        is_new
    }
}

/// Whether the side whose flag is at `flag_at` has to be woken, after something was published.
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

/// The end of the network interface, on a segment that no program has used.
///
/// Take commands by [`command`](Self::command) and [`taken`](Self::taken), complete them by
/// [`complete`](Self::complete) within [`room`](Self::room), and [`publish`](Self::publish) both
/// now and then, at the latest before sleep.
#[derive(Debug)]
pub struct NicEnd {
    mapping: Arc<Mapping>,
    commands: Emptying,
    completions: Filling,
}

impl NicEnd {
    /// The end on `mapping`.
    pub const fn new(mapping: Arc<Mapping>) -> Self {
        Self {
            mapping,
            commands: Emptying::new(COMMAND_RING),
            completions: Filling::new(COMPLETION_RING),
        }
    }

    /// The memory.
    pub fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// Copies the oldest command that was not taken into `room`; `false` if there is none.
    ///
    /// The next call copies it again, and may find something else there, as the program can still
    /// write to it: judge and use one and the same copy.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn command(&mut self, room: &mut [u8; COMMAND_BYTES]) -> Result<bool, Broken> {
        if !self.commands.has_entry(&self.mapping)? {
            return Ok(false);
        }
        let copied = self.mapping.read(command_at(self.commands.head), room);
        copied.expect("the rings are in every segment");
        Ok(true)
    }

    /// Takes the command that [`command`](Self::command) has copied.
    ///
    /// # Panics
    /// If there was none.
    pub fn taken(&mut self) {
        self.commands.taken();
    }

    /// Completions that fit now.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn room(&mut self) -> Result<u64, Broken> {
        self.completions.room(&self.mapping)
    }

    /// Writes a completion.
    ///
    /// # Panics
    /// If there is no room for it, as [`room`](Self::room) last told.
    pub fn complete(&mut self, completion: &Completion) {
        assert!(self.completions.known_room() > 0, "no room for completions");
        let mut entry = [0; COMPLETION_BYTES];
        completion.emit(&mut entry);
        let at = completion_at(self.completions.tail);
        let written = self.mapping.write(at, &entry);
        written.expect("the rings are in every segment");
        self.completions.tail += 1;
    }

    /// Shows the program what was completed and taken since the last call; answers whether it
    /// sleeps and has to be woken.
    #[must_use = "a program that is not woken sleeps on"]
    pub fn publish(&mut self) -> bool {
        let entries = self.completions.publish(&self.mapping);
        let room = self.commands.publish(&self.mapping);
        has_to_wake(&self.mapping, CLIENT_SLEEPS_AT, entries, room)
    }

    /// Says that the network interface wants to be woken by new commands, or (`false`) no longer.
    /// Publish first, and sleep only if then [`has_commands`](Self::has_commands) finds none.
    pub fn sleeps(&self, sleeps: bool) {
        let flag = if sleeps { FOR_NEWS } else { AWAKE };
        self.mapping.word(NIC_SLEEPS_AT).store(flag, Relaxed);
    }

    /// Says that the network interface wants to be woken also by room for completions: it has a
    /// command that it cannot take for want of it. Sleep only if then
    /// [`has_more_room`](Self::has_more_room) finds none.
    pub fn sleeps_until_room(&self) {
        self.mapping.word(NIC_SLEEPS_AT).store(FOR_ROOM, Relaxed);
    }

    /// Whether there are commands to take.
    pub fn has_commands(&self) -> bool {
        fence(SeqCst);
        self.commands.has_more(&self.mapping)
    }

    /// Whether the program has taken completions since [`room`](Self::room) looked.
    pub fn has_more_room(&self) -> bool {
        fence(SeqCst);
        self.completions.has_more_room(&self.mapping)
    }
}

/// The end of the program, on a segment that nobody has used.
///
/// Post commands by [`post`](Self::post), take completions by [`poll`](Self::poll), and
/// [`publish`](Self::publish) both now and then, at the latest before sleep.
#[derive(Debug)]
pub struct ClientEnd {
    mapping: Arc<Mapping>,
    commands: Filling,
    completions: Emptying,
    /// Commands and receives whose ends were not polled.
    under_way: u64,
    /// Names of the receives that are being taken back.
    taken_back: Vec<u64>,
    /// Whether a command found no room in its ring.
    wants_room: bool,
}

/// The bits of a name that count.
const NAME: u64 = (1 << Command::NAME_BITS) - 1;

impl ClientEnd {
    /// The end on `mapping`.
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

    /// The memory.
    pub fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// Commands and posted receives whose ends were not polled.
    pub const fn under_way(&self) -> u64 {
        self.under_way
    }

    /// Writes a command.
    ///
    /// # Errors
    /// See [`PostError`]; the command is not posted then.
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
        written.expect("the rings are in every segment");
        self.commands.tail += 1;
        self.under_way += 1;
        if command.request == Request::TakeBack {
            self.taken_back.push(command.name & NAME);
        }
        Ok(())
    }

    /// Takes the oldest completion, if there is one.
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
        copied.expect("the rings are in every segment");
        let completion = Completion::parse(&entry).map_err(Broken::Entry)?;
        let ended = self.ended(&completion);
        self.under_way = self.under_way.checked_sub(ended).ok_or(Broken::Unasked)?;
        self.completions.taken();
        Ok(Some(completion))
    }

    /// How many commands and receives a completion ends: a take-back that succeeds is the end of
    /// the receive as well.
    fn ended(&mut self, completion: &Completion) -> u64 {
        let (name, was_taken_back) = match *completion {
            Completion::End {
                name, status, word, ..
            } => (name, status == Status::Done && word == 1),
            Completion::Received { .. } => return 1,
            Completion::Landed { .. } | Completion::Told { .. } => return 0,
        };
        let mut names = self.taken_back.iter();
        let Some(at) = names.position(|&taken| taken == name & NAME) else {
            return 1;
        };
        self.taken_back.swap_remove(at);
        1 + u64::from(was_taken_back)
    }

    /// Completions that were taken and whose places are not given back.
    pub const fn unpublished(&self) -> u64 {
        self.completions.head - self.completions.published
    }

    /// Shows the network interface what was posted and taken since the last call; answers whether
    /// it sleeps and has to be woken.
    #[must_use = "a network interface that is not woken sleeps on"]
    pub fn publish(&mut self) -> bool {
        let entries = self.commands.publish(&self.mapping);
        let room = self.completions.publish(&self.mapping);
        has_to_wake(&self.mapping, NIC_SLEEPS_AT, entries, room)
    }

    /// Says that the program wants to be woken by new completions (and by room, if the last command
    /// found none in its ring), or (`false`) no longer. Publish first, and sleep only if then
    /// [`has_completions`](Self::has_completions) and [`has_more_room`](Self::has_more_room) find
    /// none.
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

    /// Whether there is room again after a command found none in its ring.
    pub fn has_more_room(&self) -> bool {
        fence(SeqCst);
        self.wants_room && self.commands.has_more_room(&self.mapping)
    }
}

#[cfg(test)]
mod tests;
