//! A port's link end with its receive buffer, as routers and NICs own it.

use core::fmt::Debug;

use super::event::LinkEvent;
use crate::time::{Duration, Time};

/// A change to a virtual channel of a receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// This many phits or flits were added, perhaps after others had been withdrawn.
    Arrived(u32),
    /// Only the front was withdrawn or replaced.
    Front,
}

/// A port's receive buffer: written by the link control block, read by the port's owner. Virtual
/// channels are numbered from 0.
pub trait ReceiveBuffer: Debug + Send {
    /// Calls `tell` with the changes of each virtual channel since the last call. Owners need not
    /// call it, and buffers of whole packets need not implement it.
    fn take_changes(&mut self, tell: impl FnMut(usize, Change)) {
        let _ = tell;
    }

    /// Calls `tell` with the number of phits or flits read from each virtual channel since the last
    /// call, as far as their space may be returned to the peer.
    fn take_freed(&mut self, tell: impl FnMut(usize, u32));

    /// Phits or flits in the buffer, of all virtual channels.
    fn queued(&self) -> u64;

    /// Phits or flits of one virtual channel in the buffer.
    fn queued_of(&self, vc: usize) -> u64;
}

/// A link control block as the owner of a port uses it, sending aside. Each machine's end documents
/// its calls and their order.
pub trait LinkControlBlock: Debug + Sized {
    /// Configuration of an end.
    type Config;
    /// Buffer for received packets.
    type Input: ReceiveBuffer;

    /// One end in training and its empty receive buffer.
    fn new(config: Self::Config, now: Time) -> (Self, Self::Input);
    /// Takes the bytes of one link frame, valid or not. Its payload goes into `input`; an unusable
    /// frame is dropped and counted by reason.
    ///
    /// # Panics
    /// If `now` is earlier than in an earlier call.
    fn handle_frame(&mut self, now: Time, bytes: &[u8], input: &mut Self::Input);
    /// Whether the last frame has another piece, to be taken once the owner has processed the
    /// pieces so far.
    #[inline]
    fn has_more(&self) -> bool {
        false
    }
    /// Takes the next piece of the last frame.
    #[inline]
    fn take_more(&mut self, now: Time, input: &mut Self::Input) {
        let _ = (now, input);
    }
    /// Expires the deadlines that [`next_wakeup`](Self::next_wakeup) names. An early call does
    /// nothing.
    ///
    /// # Panics
    /// If `now` is earlier than in an earlier call.
    fn handle_timers(&mut self, now: Time, input: &mut Self::Input);
    /// The process was suspended for `span`, which ended at `now` but is not counted in it. The
    /// peer may have been suspended too, and may resume later.
    fn stood_still(&mut self, now: Time, span: Duration);
    /// When to call [`handle_timers`](Self::handle_timers) or [`poll_frame`](Self::poll_frame) if
    /// nothing happens before; [`Time::NEVER`] if never. May be in the past.
    fn next_wakeup(&self) -> Time;
    /// Whether [`poll_frame`](Self::poll_frame) has something to send.
    fn wants_to_send(&self, now: Time) -> bool;
    /// Writes the next frame into `buf`, whose length is the link's limit, and returns its length.
    /// A buffer too small for any frame gets nothing.
    ///
    /// # Panics
    /// If `now` is earlier than in an earlier call.
    fn poll_frame(&mut self, now: Time, buf: &mut [u8]) -> Option<usize>;
    /// The next event, oldest first.
    fn poll_event(&mut self) -> Option<LinkEvent>;
    /// `freed` phits or flits of `vc` left the receive buffer.
    ///
    /// # Panics
    /// If more than was received, where the end counts that.
    fn vc_freed(&mut self, vc: usize, freed: u32);
    /// Takes the link down until [`link_up`](Self::link_up) and notifies the peer.
    fn link_down(&mut self, now: Time, input: &mut Self::Input);
    /// Brings up a link that was taken down by command or lost its last lane: channel
    /// initialisation with all lanes, under a new epoch.
    fn link_up(&mut self, now: Time);
}

/// A link end and its receive buffer.
///
/// Call order: [`handle_frame`](Self::handle_frame), [`handle_timers`](Self::handle_timers) and
/// commands to both [`parts`](Self::parts_mut) as things happen, each followed by
/// [`take_changes`](Self::take_changes) for what arrived; after reading from
/// [`input_mut`](Self::input_mut), [`give_back`](Self::give_back) to return the space; then
/// [`poll_frame`](Self::poll_frame) and [`poll_event`](Self::poll_event) until each returns `None`.
#[derive(Debug)]
pub struct LinkPort<E: LinkControlBlock> {
    end: E,
    input: E::Input,
}

impl<E: LinkControlBlock> LinkPort<E> {
    /// A link end in training, with an empty receive buffer.
    pub fn new(config: E::Config, now: Time) -> Self {
        let (end, input) = E::new(config, now);
        Self { end, input }
    }

    /// The link control block.
    #[inline]
    pub fn end(&self) -> &E {
        &self.end
    }

    /// The link control block, for the sending side.
    #[inline]
    pub fn end_mut(&mut self) -> &mut E {
        &mut self.end
    }

    /// The receive buffer.
    #[inline]
    pub fn input(&self) -> &E::Input {
        &self.input
    }

    /// The receive buffer, for reading.
    #[inline]
    pub fn input_mut(&mut self) -> &mut E::Input {
        &mut self.input
    }

    /// Takes the bytes of one link frame, valid or not.
    #[inline]
    pub fn handle_frame(&mut self, now: Time, bytes: &[u8]) {
        self.end.handle_frame(now, bytes, &mut self.input);
    }

    /// See [`LinkControlBlock::take_more`].
    #[inline]
    pub(crate) fn take_more(&mut self, now: Time) {
        self.end.take_more(now, &mut self.input);
    }

    /// Expires the deadlines of the link.
    #[inline]
    pub fn handle_timers(&mut self, now: Time) {
        self.end.handle_timers(now, &mut self.input);
    }

    /// See [`LinkControlBlock::stood_still`].
    pub fn stood_still(&mut self, now: Time, span: Duration) {
        self.end.stood_still(now, span);
    }

    /// The link control block and the receive buffer, for calls that act on both, such as faults.
    #[inline]
    pub fn parts_mut(&mut self) -> (&mut E, &mut E::Input) {
        (&mut self.end, &mut self.input)
    }

    /// Calls `tell` with the changes of each virtual channel of the receive buffer since the last
    /// call. An owner that inspects the buffer need not call it.
    #[inline]
    pub(crate) fn take_changes(&mut self, tell: impl FnMut(usize, Change)) {
        self.input.take_changes(tell);
    }

    /// Returns the space of what was read from the receive buffer to the peer.
    #[inline]
    pub fn give_back(&mut self) {
        let Self { end, input } = self;
        input.take_freed(|vc, freed| end.vc_freed(vc, freed));
    }

    /// When to call [`handle_timers`](Self::handle_timers); [`Time::NEVER`] if never.
    #[inline]
    pub fn next_wakeup(&self) -> Time {
        self.end.next_wakeup()
    }

    /// Whether [`poll_frame`](Self::poll_frame) has something to send.
    #[inline]
    pub fn wants_to_send(&self, now: Time) -> bool {
        self.end.wants_to_send(now)
    }

    /// Writes the next frame into `buf`, whose length is the link's limit, and returns its length.
    #[inline]
    pub fn poll_frame(&mut self, now: Time, buf: &mut [u8]) -> Option<usize> {
        self.end.poll_frame(now, buf)
    }

    /// The next event of the link, oldest first.
    #[inline]
    pub fn poll_event(&mut self) -> Option<LinkEvent> {
        self.end.poll_event()
    }
}
