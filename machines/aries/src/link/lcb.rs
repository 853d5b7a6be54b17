//! The Aries link control block (LCB): one end of a link.

use phitwire_framing::aries::flit::{Flit, MAX_PACKET_FLITS, VCS};
use phitwire_framing::aries::frame::{SetFrame, set_frame_len};
use phitwire_framing::carrier::frame::{Frame, FrameError};
use phitwire_framing::carrier::training::{TRAINING_BYTES, Training, find_cable};

use super::config::AriesLinkConfig;
use super::counters::SetCounters;
use super::injection::Injector;
use super::input::AriesInput;
use super::receive::{ReceiveTerms, Receiver};
use super::scrambler::Scrambler;
use super::transmit::{TransmitTerms, Transmitter};
use phitwire::link::ErrorInjection;
use phitwire::link::common::Common;
use phitwire::link::lanes::LaneWatch;
use phitwire::link::outgoing::Outgoing;
use phitwire::link::session::Session;
use phitwire::link::training::{Offer, Terms};
use phitwire::link::{EndStatus, LinkEvent};
use phitwire::time::{Duration, Time};

/// Smallest buffer of a frame, in bytes: a training frame, or a control set and a data set.
pub const MIN_SET_FRAME_BYTES: usize = TRAINING_BYTES;

const _: () = assert!(set_frame_len(2) <= MIN_SET_FRAME_BYTES);

/// One end of an Aries link (XC white paper, "Aries Router").
///
/// Call order: that of every [`LinkControlBlock`](phitwire::link::LinkControlBlock), and any number
/// of [`push`](Self::push). Every call must pass the same [`AriesInput`].
///
/// # Peer restarts
/// If the peer turns out to be another incarnation, every packet in the replay buffer is discarded
/// and counted; if it is merely silent, none is, and this end retries at growing intervals forever,
/// unless the profile's `give_up` limits that. The same holds for unusable frames.
#[derive(Debug)]
pub struct AriesLcb {
    pub(super) common: Common,
    pub(super) config: AriesLinkConfig,
    pub(super) tx: Transmitter,
    pub(super) rx: Receiver,
    pub(super) sets: SetCounters,
    pub(super) scrambler: [Scrambler; 2],
    pub(super) injector: Injector,
    pub(super) load: u8,
    pub(super) told_load: u8,
    pub(super) peer_load: u8,
    /// The peer's clock in emulated nanoseconds as last received, and when.
    pub(super) peer_clock: Option<(u64, Time)>,
    /// Emulated microsecond of the last pulse sent.
    pub(super) pulse: u64,
    /// The receive clock is lost until then.
    deaf_until: Option<Time>,
}

/// Index of the transmit scrambler.
pub(super) const OUT: usize = 0;
/// Index of the receive scrambler.
pub(super) const IN: usize = 1;

impl AriesLcb {
    /// A link end in training.
    pub fn new(config: AriesLinkConfig, now: Time) -> Self {
        let sets = config.sets();
        let terms = Terms {
            window: sets.window_sets,
            credits: [sets.input_flits(), sets.private_flits],
            max_packet: MAX_PACKET_FLITS as u8,
            least_packet: MAX_PACKET_FLITS as u8,
        };
        let common = Common::new(config.link().clone(), terms, now);
        let idle = ReceiveTerms {
            window: 0,
            debt: [0; VCS],
            lanes: 0,
        };
        let registers = *config.registers();
        Self {
            tx: Transmitter::new(&config, &common.profile, now),
            rx: Receiver::new(&config, idle, &common.profile),
            sets: SetCounters::default(),
            scrambler: [(); 2].map(|()| Scrambler::new(registers.scrambler_seeds, 7)),
            injector: Injector::new(registers.injection),
            load: 0,
            told_load: 0,
            peer_load: 0,
            peer_clock: None,
            pulse: 0,
            deaf_until: None,
            common,
            config,
        }
    }

    // Core side.

    /// Whether a packet of `flits` flits on `vc` may begin: the link is active, no packet is open,
    /// and credits and replay buffer have room for all of it (virtual cut-through).
    ///
    /// # Panics
    /// If there is no such virtual channel.
    #[inline]
    pub fn can_begin(&self, vc: usize, flits: usize) -> bool {
        self.is_active() && self.tx.can_begin(vc, flits)
    }

    /// Takes the next flit of a packet; its head says how many follow, one packet after the other.
    /// A packet once begun is accepted to its end. While the link is not active, packets are
    /// dropped and counted.
    ///
    /// # Panics
    /// If a packet begins with an invalid head or, on an active link, without [`Self::can_begin`].
    #[inline]
    pub fn push(&mut self, flit: Flit) {
        let active = self.is_active();
        let (counters, sets) = (&mut self.common.counters, &mut self.sets);
        if let Some(vc) = self.tx.push(flit, active, counters, sets) {
            self.common.report(LinkEvent::Poisoned { vc });
        }
    }

    /// Takes a whole packet, head first: like [`Self::push`] for each of its flits.
    ///
    /// # Panics
    /// Like [`Self::push`].
    // Measured: as calls, this and two others cost one to four percent of the message rate.
    #[inline(always)]
    pub fn push_packet(&mut self, packet: &[Flit]) {
        let active = self.is_active();
        let (counters, sets) = (&mut self.common.counters, &mut self.sets);
        if active && self.tx.push_packet(packet, counters, sets) {
            return;
        }
        for &flit in packet {
            self.push(flit);
        }
    }

    // Getters.

    /// Counters of sets and flits.
    pub fn set_counters(&self) -> &SetCounters {
        &self.sets
    }

    pub fn aries_config(&self) -> &AriesLinkConfig {
        &self.config
    }

    /// Near-end load: flits taken from the core but not sent.
    #[inline]
    pub fn backlog_flits(&self) -> u32 {
        self.tx.buffer().backlog()
    }

    /// Far-end estimate: flits in the peer's input buffer as far as known, that is, acknowledged
    /// but without returned credits. Flits in flight do not count as load, however long the cable.
    #[inline]
    pub fn far_flits(&self) -> u32 {
        let unacknowledged = self.tx.buffer().unacknowledged();
        self.tx.credits().far_flits(0, unacknowledged)
    }

    /// Flits sent on `vc` whose credits have not returned, including those in flight.
    #[inline]
    pub fn far_flits_of(&self, vc: usize) -> u32 {
        self.tx.credits().used(vc)
    }

    /// Downstream load: the 4 bits that the peer last sent.
    #[inline]
    pub fn peer_load(&self) -> u8 {
        self.peer_load
    }

    /// Sets the 4 bits of load that every set reports to the peer. A change leaves with the next
    /// frame, or shortly with a frame of its own.
    #[inline]
    pub fn set_load(&mut self, load: u8) {
        self.load = load & 0xf;
        if self.load != self.told_load && self.is_active() {
            self.rx.acks.suggest(self.common.now);
        }
    }

    /// The peer's global clock in emulated nanoseconds modulo 2^48, and when it arrived.
    pub fn peer_clock(&self) -> Option<(u64, Time)> {
        self.peer_clock
    }

    /// Flits that may be sent now on each virtual channel.
    pub fn credits(&self) -> [u32; VCS] {
        core::array::from_fn(|vc| self.tx.credits().available(vc))
    }

    /// Data sets sent but not acknowledged by the peer.
    pub fn unacknowledged_sets(&self) -> u64 {
        self.tx.buffer().next() - self.tx.buffer().acked()
    }

    // Commands.

    /// Replays everything unacknowledged.
    pub fn force_retry(&mut self, now: Time) {
        self.common.see(now);
        self.tx.force_retry(now, &mut self.sets);
    }

    /// Sends the next data set with a bad CRC.
    pub fn force_bad_crc(&mut self) {
        self.injector.force_bad_crc();
    }

    /// Reinitialises the lanes, as after a run of bad CRCs.
    pub fn force_reinit(&mut self, now: Time) {
        self.common.see(now);
        if self.is_active() {
            self.sets.rx_reinits += 1;
            self.reinitialise();
        }
    }

    /// Receives nothing for `span`: the receive clock is lost. Then reinitialises the lanes.
    pub fn lose_clock(&mut self, now: Time, span: Duration) {
        self.common.see(now);
        self.deaf_until = Some(now + span);
    }

    /// Injects errors from now on.
    pub fn inject(&mut self, injection: ErrorInjection) {
        self.injector = Injector::new(injection);
    }

    /// Marks the next packet as damaged inside this router: a soft error.
    pub fn soft_error_next(&mut self) {
        self.tx.poison_next();
    }

    /// Requests the peer's training pattern, which tests every lane.
    pub(super) fn reinitialise(&mut self) {
        self.common.doubt_lanes();
        self.common.report(LinkEvent::Reinitialised);
    }
}

impl EndStatus for AriesLcb {
    #[inline]
    fn parts(&self) -> (&Common, &Outgoing, &LaneWatch) {
        (&self.common, &self.tx.out, &self.rx.lanes)
    }

    /// Packets accepted whole and not wholly acknowledged.
    fn unacknowledged_packets(&self) -> u64 {
        self.tx.buffer().packets()
    }

    fn reorder_hold(&self) -> Duration {
        self.rx.reorder_hold()
    }
}

impl Session for AriesLcb {
    type Config = AriesLinkConfig;
    type Input = AriesInput;

    const MIN_FRAME_BYTES: usize = MIN_SET_FRAME_BYTES;

    fn made(config: AriesLinkConfig, now: Time) -> (Self, AriesInput) {
        let input = AriesInput::new(&config);
        (Self::new(config, now), input)
    }

    #[inline]
    fn parts_mut(&mut self) -> (&mut Common, &mut Outgoing, &mut LaneWatch) {
        (&mut self.common, &mut self.tx.out, &mut self.rx.lanes)
    }

    /// False while the receive clock is lost, after which the lanes are reinitialised.
    fn hears(&mut self, now: Time) -> bool {
        if let Some(until) = self.deaf_until {
            if now < until {
                self.sets.rx_clock_lost_frames += 1;
                return false;
            }
            self.deaf_until = None;
            self.force_reinit(now);
        }
        true
    }

    /// Flits of packets go up once their set's CRC is known to be good.
    fn on_frame(
        &mut self,
        now: Time,
        frame: &Frame<'_>,
        input: &mut AriesInput,
    ) -> Result<(), FrameError> {
        if frame.kind() != SetFrame::KIND {
            return Err(FrameError::BadKind);
        }
        self.on_sets(now, SetFrame::of(frame)?, input);
        Ok(())
    }

    fn receive_timers(&mut self, now: Time, _: &mut AriesInput) {
        self.rx.handle_timers(now, &mut self.sets);
    }

    fn transmit_timers(&mut self, now: Time) {
        self.tx.handle_timers(now, &mut self.sets);
    }

    #[inline]
    fn has_to_send(&self, now: Time) -> bool {
        self.tx.has_data(now) || self.wants_control_frame(now)
    }

    fn emit(&mut self, now: Time, buf: &mut [u8]) -> Option<(usize, bool)> {
        self.emit_frame(now, buf)
    }

    #[inline]
    fn freed(&mut self, vc: usize, flits: u32) {
        // Flits freed between sessions are counted when the next one begins.
        if self.is_active() {
            self.rx.acks.free(vc, flits, self.common.now);
        }
    }

    fn send_on(&mut self, lanes: u8, now: Time) {
        self.tx.set_lanes(lanes, now, &mut self.sets);
        // Send a control set, so that the peer sees the new lanes even without data.
        self.rx.acks.urge();
    }

    #[inline]
    fn own_deadline(&self) -> Time {
        let received = self.rx.deadline().min(self.rx.acks.due());
        received.min(self.tx.deadline())
    }

    fn max_degrades(&self) -> u32 {
        self.config.registers().max_degrades.into()
    }

    fn was_trained(&mut self, training: &Training) {
        // Determine the cable again: the clock may have been lost because it was replugged.
        if let Ok(cable) = find_cable(&training.pattern) {
            self.common.handshake.cable = cable;
        }
        self.rx.bad_run = 0;
    }

    fn lanes_changed(&mut self, _input: &mut AriesInput) {
        self.rx.lanes_changed();
    }

    fn begin(&mut self, offer: &Offer, now: Time, input: &mut AriesInput) {
        let window = offer.window.min(self.config.sets().window_sets);
        let [all, private] = offer.credits;
        let terms = TransmitTerms {
            window,
            private,
            common: all.saturating_sub(private.saturating_mul(VCS as u32)),
            lanes: offer.lanes,
        };
        self.tx.start(terms, now);
        let terms = ReceiveTerms {
            window,
            debt: input.restart(),
            lanes: self.common.handshake.lanes,
        };
        self.rx = Receiver::new(&self.config, terms, &self.common.profile);
        self.rx.lanes.told(self.common.handshake.told);
        self.peer_load = 0;
        self.told_load = 0;
        self.peer_clock = None;
    }

    fn end(&mut self, input: &mut AriesInput) -> u64 {
        let discarded = self.tx.stop(&mut self.common.counters);
        self.rx.abort(input, &mut self.sets);
        discarded
    }
}
