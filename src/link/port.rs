//! A port's link end together with its receive buffer: what routers and network interfaces own.

use core::fmt::Debug;

use super::event::LinkEvent;
use crate::time::{Duration, Time};

/// What a link did to a virtual channel of its receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// That many phits or flits were added, perhaps after others had been taken back.
    Arrived(u32),
    /// Nothing was added, but what was seen at the front was taken back or replaced.
    Front,
}

/// A port's receive buffer, whatever the link carries: written by the link control block, read by
/// the port's owner. Virtual channels are numbered from 0.
pub trait ReceiveBuffer: Debug + Send {
    /// Calls `tell` with what became of each virtual channel since the last call. One that does not
    /// want to know need not ask, and a buffer of whole packets need not say.
    fn take_changes(&mut self, tell: impl FnMut(usize, Change)) {
        let _ = tell;
    }

    /// Calls `tell` with the number of phits or flits that were read out of each virtual channel
    /// and whose space the peer may be told of, and has not been told of before.
    fn take_freed(&mut self, tell: impl FnMut(usize, u32));

    /// Phits or flits in the buffer, of all virtual channels.
    fn queued(&self) -> u64;

    /// Phits or flits of one virtual channel in the buffer.
    fn queued_of(&self, vc: usize) -> u64;
}

/// A link control block, whatever the link carries: what the owner of a port needs of it beyond
/// sending. The ends of the machines describe their calls and the order of them.
pub trait LinkControlBlock: Debug + Sized {
    /// What an end is made from.
    type Config;
    /// Where received packets go.
    type Input: ReceiveBuffer;

    /// One end in training and its empty receive buffer.
    fn new(config: Self::Config, now: Time) -> (Self, Self::Input);
    /// Takes in the bytes of one link frame, whatever they are. What it carries goes into `input`;
    /// what cannot be used is dropped and counted by reason.
    ///
    /// # Panics
    /// If `now` is earlier than in an earlier call.
    fn handle_frame(&mut self, now: Time, bytes: &[u8], input: &mut Self::Input);
    /// Whether another piece of the last frame can be taken in now that the owner has processed the
    /// pieces so far.
    #[inline]
    fn has_more(&self) -> bool {
        false
    }
    /// Takes in the next piece of the last frame.
    #[inline]
    fn take_more(&mut self, now: Time, input: &mut Self::Input) {
        let _ = (now, input);
    }
    /// Expires the deadlines that [`next_wakeup`](Self::next_wakeup) names. Calling it early does
    /// nothing.
    ///
    /// # Panics
    /// If `now` is earlier than in an earlier call.
    fn handle_timers(&mut self, now: Time, input: &mut Self::Input);
    /// The process stood still for `span`, which ended at `now` and is not contained in it. The
    /// peer may have stood still too, and may go on later.
    fn stood_still(&mut self, now: Time, span: Duration);
    /// When [`handle_timers`](Self::handle_timers) or [`poll_frame`](Self::poll_frame) should be
    /// called if nothing happens before; [`Time::NEVER`] if that is not needed. May lie in the past.
    fn next_wakeup(&self) -> Time;
    /// Whether [`poll_frame`](Self::poll_frame) has something to send.
    fn wants_to_send(&self, now: Time) -> bool;
    /// Writes the next frame into `buf`, whose length is the limit of the link, and returns its
    /// length. A buffer without room for the least frame gets nothing.
    ///
    /// # Panics
    /// If `now` is earlier than in an earlier call.
    fn poll_frame(&mut self, now: Time, buf: &mut [u8]) -> Option<usize>;
    /// The next event, oldest first.
    fn poll_event(&mut self) -> Option<LinkEvent>;
    /// `freed` phits or flits of `vc` have left the receive buffer.
    ///
    /// # Panics
    /// If more than was received, where the end counts that.
    fn vc_freed(&mut self, vc: usize, freed: u32);
    /// Takes the link down until [`link_up`](Self::link_up); the peer is told.
    fn link_down(&mut self, now: Time, input: &mut Self::Input);
    /// Brings a link up again that was taken down by command or lost its last lane: channel
    /// initialisation with all lanes, under a new epoch.
    fn link_up(&mut self, now: Time);
}

/// A link end and its receive buffer.
///
/// Call order: [`handle_frame`](Self::handle_frame), [`handle_timers`](Self::handle_timers) and
/// commands to both [`parts`](Self::parts_mut) as things happen, after each of which
/// [`take_changes`](Self::take_changes) says what came in; after reading from
/// [`input_mut`](Self::input_mut), [`give_back`](Self::give_back) lets the peer have the space;
/// then [`poll_frame`](Self::poll_frame) and [`poll_event`](Self::poll_event) until each answers
/// `None`.
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

    /// The receive buffer, to be read from.
    #[inline]
    pub fn input_mut(&mut self) -> &mut E::Input {
        &mut self.input
    }

    /// Takes in the bytes of one link frame, whatever they are.
    #[inline]
    pub fn handle_frame(&mut self, now: Time, bytes: &[u8]) {
        self.end.handle_frame(now, bytes, &mut self.input);
    }

    /// See [`LinkControlBlock::take_more`].
    #[inline]
    pub fn take_more(&mut self, now: Time) {
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

    /// The link control block and the receive buffer, for what acts on both: faults, for instance.
    #[inline]
    pub fn parts_mut(&mut self) -> (&mut E, &mut E::Input) {
        (&mut self.end, &mut self.input)
    }

    /// Calls `tell` with what the link has done to each virtual channel of the receive buffer since
    /// the last call. An owner that looks at the buffer itself need not ask.
    #[inline]
    pub fn take_changes(&mut self, tell: impl FnMut(usize, Change)) {
        self.input.take_changes(tell);
    }

    /// Gives the space of what was read from the receive buffer back to the peer.
    #[inline]
    pub fn give_back(&mut self) {
        let Self { end, input } = self;
        input.take_freed(|vc, freed| end.vc_freed(vc, freed));
    }

    /// When the link wants [`handle_timers`](Self::handle_timers) called; [`Time::NEVER`] if not.
    #[inline]
    pub fn next_wakeup(&self) -> Time {
        self.end.next_wakeup()
    }

    /// Whether [`poll_frame`](Self::poll_frame) has something to send.
    #[inline]
    pub fn wants_to_send(&self, now: Time) -> bool {
        self.end.wants_to_send(now)
    }

    /// Writes the next frame into `buf`, whose length is the limit of the link, and returns its
    /// length.
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
