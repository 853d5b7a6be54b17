//! The Aries link control block (LCB): one end of a link.

use phitwire_framing::aries::flit::{Flit, MAX_PACKET_FLITS, VCS};
use phitwire_framing::aries::frame::{SetFrame, set_frame_len};
use phitwire_framing::aries::set::LANES;
use phitwire_framing::carrier::frame::{Frame, FrameError};
use phitwire_framing::carrier::lane_layout::LaneLayout;
use phitwire_framing::carrier::training::{TRAINING_BYTES, Training};

use super::VC_NAMES;
use super::config::AriesLinkConfig;
use super::counters::SetCounters;
use super::frames::on_sets;
use super::injection::Injector;
use super::input::AriesInput;
use super::receive::{ReceiveTerms, Receiver};
use super::scrambler::Scrambler;
use super::transmit::{TransmitTerms, Transmitter};
use phitwire::link::common::Common;
use phitwire::link::training::{Offer, Terms};
use phitwire::link::{EndAccount, LinkEnd, LinkEvent, LinkFault, Units, Wire};
use phitwire::time::{Duration, Time};

/// Smallest buffer of a frame, in bytes: a training frame, or a control set and a data set.
pub const MIN_SET_FRAME_BYTES: usize = TRAINING_BYTES;

const _: () = assert!(set_frame_len(2) <= MIN_SET_FRAME_BYTES);

/// One end of an Aries link (XC white paper, "Aries Router").
///
/// # Peer restarts
/// If the peer turns out to be another incarnation, every packet in the replay buffer is discarded
/// and counted. If it is only silent, or its frames are unusable, no packet is discarded, and this
/// end retries at growing intervals, forever unless the profile's `give_up` sets a limit.
pub type AriesLcb = LinkEnd<SetWire>;

/// The protocol of a link of sets.
#[derive(Debug)]
pub struct SetWire {
    pub(super) config: AriesLinkConfig,
    pub(super) tx: Transmitter,
    pub(super) rx: Receiver,
    pub(super) sets: SetCounters,
    pub(super) scrambler: [Scrambler; 2],
    pub(super) injector: Injector,
    pub(super) load: u8,
    pub(super) reported_load: u8,
    pub(super) peer_load: u8,
    /// The peer's clock in emulated nanoseconds as last received, and the time of receipt.
    pub(super) peer_clock: Option<(u64, Time)>,
    /// Emulated microsecond of the last pulse sent.
    pub(super) pulse: u64,
    /// Until when the receive clock is lost.
    deaf_until: Option<Time>,
}

/// Index of the transmit scrambler.
pub(super) const OUT: usize = 0;
/// Index of the receive scrambler.
pub(super) const IN: usize = 1;

impl SetWire {
    /// Whether a packet of `flits` flits on `vc` may begin: the link is active, no packet is open,
    /// and credits and replay buffer have room for all of it (virtual cut-through).
    ///
    /// # Panics
    /// If there is no such virtual channel.
    #[inline]
    pub fn can_begin(&self, vc: usize, flits: usize) -> bool {
        self.tx.can_begin(vc, flits)
    }

    pub fn set_counters(&self) -> &SetCounters {
        &self.sets
    }

    pub fn config(&self) -> &AriesLinkConfig {
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
    pub fn set_load(&mut self, link: &Common, load: u8) {
        self.load = load & 0xf;
        if self.load != self.reported_load && link.is_active() {
            self.rx.acks.suggest(link.now);
        }
    }

    /// The peer's global clock in emulated nanoseconds modulo 2^48, and when it arrived.
    pub fn peer_clock(&self) -> Option<(u64, Time)> {
        self.peer_clock
    }

    /// Flits that may be sent now on each virtual channel.
    pub fn credits(&self) -> [u32; VCS] {
        core::array::from_fn(|vc| self.credits_of(vc))
    }

    /// Flits for which a virtual channel has credits.
    #[inline]
    pub fn credits_of(&self, vc: usize) -> u32 {
        self.tx.credits().available(vc)
    }

    /// Data sets sent but not acknowledged by the peer.
    pub fn unacknowledged_sets(&self) -> u64 {
        self.tx.buffer().next() - self.tx.buffer().acked()
    }

    /// Reinitialises the lanes of an active link, as after a run of bad CRCs.
    fn force_reinit(&mut self, link: &mut Common) {
        if link.is_active() {
            self.sets.rx_reinits += 1;
            reinitialise(link);
        }
    }
}

/// Requests the peer's training pattern, which tests every lane.
pub(super) fn reinitialise(link: &mut Common) {
    link.doubt_lanes();
    link.report(LinkEvent::Reinitialised);
}

impl Wire for SetWire {
    type Config = AriesLinkConfig;
    type Input = AriesInput;
    type Unit = Flit;

    const LINK: &'static str = "Aries";
    const VC_NAMES: &'static [&'static str] = &VC_NAMES;
    const LAYOUT: LaneLayout = SetFrame::LAYOUT;
    const MIN_FRAME_BYTES: usize = MIN_SET_FRAME_BYTES;
    /// Measured: Aries packets take few of a node's instructions, so with shorter turns the system
    /// calls dominate.
    const BYTES_PER_TURN: usize = 16_000;

    fn made(config: AriesLinkConfig, now: Time) -> (Common, Self, AriesInput) {
        let input = AriesInput::new(&config);
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
        };
        let registers = *config.registers();
        let wire = Self {
            tx: Transmitter::new(&config),
            rx: Receiver::new(&config, idle, &common.profile),
            sets: SetCounters::default(),
            scrambler: [(); 2].map(|()| Scrambler::new(registers.scrambler_seeds, 7)),
            injector: Injector::new(registers.injection),
            load: 0,
            reported_load: 0,
            peer_load: 0,
            peer_clock: None,
            pulse: 0,
            deaf_until: None,
            config,
        };
        (common, wire, input)
    }

    fn begin(&mut self, link: &mut Common, offer: &Offer, _: Time, input: &mut AriesInput) {
        let window = offer.window.min(self.config.sets().window_sets);
        let [all, private] = offer.credits;
        self.tx.start(TransmitTerms {
            window,
            private,
            common: all.saturating_sub(private.saturating_mul(VCS as u32)),
            lanes: offer.lanes,
        });
        let terms = ReceiveTerms {
            window,
            debt: input.restart(),
        };
        self.rx = Receiver::new(&self.config, terms, &link.profile);
        self.peer_load = 0;
        self.reported_load = 0;
        self.peer_clock = None;
    }

    fn end(&mut self, link: &mut Common, input: &mut AriesInput) -> u64 {
        let discarded = self.tx.stop(&mut link.counters);
        debug_assert_eq!(self.unacknowledged_sets(), 0, "nothing is left to replay");
        self.rx.abort(input, &mut self.sets);
        discarded
    }

    fn send_on(&mut self, link: &mut Common, lanes: u8, now: Time) {
        self.tx.set_lanes(lanes, now, &mut link.out, &mut self.sets);
        // Send a control set, so that the peer sees the new lanes even without data.
        self.rx.acks.urge();
    }

    fn lanes_changed(&mut self, _: &mut Common, _: &mut AriesInput) {
        self.rx.lanes_changed();
    }

    fn was_trained(&mut self, link: &mut Common, training: &Training) {
        // Determine the cable again: the clock may have been lost because it was replugged.
        if let Ok(cable) = LANES.find_cable(&training.pattern) {
            link.handshake.cable = cable;
        }
        self.rx.bad_run = 0;
    }

    fn max_degrades(&self) -> u32 {
        self.config.registers().max_degrades.into()
    }

    /// Returns false while the receive clock is lost, after which the lanes are reinitialised.
    #[inline]
    fn can_receive(&mut self, link: &mut Common, now: Time) -> bool {
        if let Some(until) = self.deaf_until {
            if now < until {
                self.sets.rx_clock_lost_frames += 1;
                return false;
            }
            self.deaf_until = None;
            self.force_reinit(link);
        }
        true
    }

    /// Flits of packets are handed up once their set's CRC is known to be good.
    fn on_frame(end: &mut AriesLcb, now: Time, frame: &Frame<'_>) -> Result<(), FrameError> {
        if frame.kind() != SetFrame::KIND {
            return Err(FrameError::BadKind);
        }
        on_sets(end, now, &SetFrame::of(frame)?);
        Ok(())
    }

    fn receive_timers(&mut self, _: &mut Common, now: Time, _: &mut AriesInput) {
        self.rx.handle_timers(now, &mut self.sets);
    }

    #[inline]
    fn freed(&mut self, link: &mut Common, vc: usize, flits: u32) {
        // Flits freed between sessions are counted when the next one begins.
        if link.is_active() {
            self.rx.acks.free(vc, flits, link.now);
        }
    }

    /// Takes the next flit of a packet, whose head gives the number of flits. Packets follow one
    /// another; one that has begun is accepted to its end.
    ///
    /// # Panics
    /// If a packet begins with an invalid head or, on an active link, without [`Self::can_begin`].
    #[inline]
    fn push(&mut self, link: &mut Common, flit: Flit) {
        let active = link.is_active();
        let (counters, sets) = (&mut link.counters, &mut self.sets);
        if let Some(vc) = self.tx.push(flit, active, counters, sets) {
            link.report(LinkEvent::Poisoned { vc });
        }
    }

    // Measured: without inlining, this and two other functions cost one to four percent of the
    // message rate.
    #[inline(always)]
    fn push_packet(&mut self, link: &mut Common, packet: &[Flit]) {
        let active = link.is_active();
        let (counters, sets) = (&mut link.counters, &mut self.sets);
        if active && self.tx.push_packet(packet, counters, sets) {
            return;
        }
        for &flit in packet {
            self.push(link, flit);
        }
    }

    fn transmit_timers(&mut self, link: &mut Common, now: Time) {
        self.tx.handle_timers(now, &mut link.out, &mut self.sets);
    }

    #[inline]
    fn has_to_send(&self, link: &Common, now: Time) -> bool {
        self.tx.has_data(&link.out, now) || self.wants_control_frame(link, now)
    }

    fn emit(&mut self, link: &mut Common, now: Time, buf: &mut [u8]) -> Option<(usize, bool)> {
        self.emit_frame(link, now, buf)
    }

    #[inline]
    fn deadline(&self, link: &Common) -> Time {
        let received = self.rx.deadline().min(self.rx.acks.due());
        received.min(self.tx.deadline(&link.out))
    }

    fn resend(&mut self, link: &mut Common, now: Time) {
        self.tx.force_retry(now, &mut link.out, &mut self.sets);
    }

    fn apply_fault(&mut self, link: &mut Common, now: Time, fault: LinkFault) -> bool {
        match fault {
            // Marks the next packet as damaged inside this router.
            LinkFault::SoftError => self.tx.poison_next(),
            LinkFault::BadCrc => self.injector.force_bad_crc(),
            LinkFault::Reinit => {
                link.see(now);
                self.force_reinit(link);
            }
            LinkFault::LoseClock(span) => {
                link.see(now);
                self.deaf_until = Some(now + span);
            }
            LinkFault::Inject(injection) => self.injector = Injector::new(injection),
            _ => return false,
        }
        true
    }

    /// Packets accepted completely but not acknowledged completely.
    fn unacknowledged_packets(&self) -> u64 {
        self.tx.buffer().packets()
    }

    fn account(&self, link: &Common) -> EndAccount {
        let sets = self.config.sets();
        // Discards are counted in packets, whose flits are unknown.
        let discarded = link.counters.tx_discarded_packets;
        EndAccount {
            units: Units {
                credits: "flits",
                unacknowledged: "sets",
                conserved: "flits",
            },
            active: link.is_active(),
            credits: self.credits().to_vec(),
            offers: vec![sets.private_flits + sets.common_flits; VCS],
            unacknowledged: self.unacknowledged_sets(),
            unsent: self.backlog_flits().into(),
            taken: self.sets.tx_flits,
            given_up: (discarded == 0).then_some(0),
            accepted: self.sets.rx_flits,
        }
    }

    fn reorder_hold(&self) -> Duration {
        self.rx.reorder_hold()
    }

    fn for_each_counter(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.sets.for_each(visit);
    }

    fn sent(&self, _: &Common) -> u64 {
        self.sets.tx_sets - self.sets.tx_replayed_sets
    }

    fn resent(&self, _: &Common) -> u64 {
        self.sets.tx_replayed_sets
    }

    fn bad_checks(&self, _: &Common) -> u64 {
        self.sets.rx_bad_crcs
    }
}
