//! A chip of any machine between link ends, over wires that lose frames.

use std::collections::VecDeque;
use std::fmt::Debug;

use phitwire_framing::carrier::frame::LinkEnd;

use super::{Chip, ChipConfig, ChipCore, RouterClock};
use crate::link::testing::rig::{Link, name};
use crate::link::{LinkClock, LinkConfig, LinkConfigBuilder, LinkProfile, LinkView, NodeLink};
use crate::node::{Node, PortId};
use crate::rng::Rng;
use crate::time::{Duration, Time};

pub const FRAME: usize = 1_200;

/// The links of a machine as used between its chips.
pub trait Joining: Link {
    /// The virtual channel of the packet that starts with `word`, if `word` starts one.
    fn begins(word: Self::Word) -> Option<usize>;
    /// Builds a configuration, with the chip's depths if the link is `paced`.
    fn configured(builder: LinkConfigBuilder, paced: bool) -> Self::Config;
}

/// A link end at the far side of a port of the chip under test.
pub struct End<L: Link> {
    pub port: PortId,
    lcb: L::Lcb,
    /// Packets to send, or parts of them.
    pub queue: VecDeque<Vec<L::Word>>,
    /// Words received, per virtual channel; speculative delivery may leave half a packet.
    pub received: Vec<Vec<L::Word>>,
    /// Whether the end has stopped reading its input buffer.
    pub stuck: bool,
}

fn link<L: Joining>(port: PortId, end: LinkEnd, paced: bool, epoch: u32) -> L::Config {
    let (chip, far) = (name("router", port), name(&format!("end{port}"), 0));
    let (local, peer) = match end {
        LinkEnd::A => (chip, far),
        LinkEnd::B => (far, chip),
    };
    let (profile, clock) = match paced {
        true => (LinkProfile::paper(), LinkClock::Paced { dilation: 1 }),
        false => (LinkProfile::live(), LinkClock::FreeRunning),
    };
    let builder = LinkConfig::builder(L::STANDARD, port.into(), end, local, peer);
    L::configured(builder.profile(profile).clock(clock).epoch(epoch), paced)
}

impl<L: Joining> End<L> {
    pub fn new(port: PortId, paced: bool, epoch: u32, now: Time) -> Self {
        let lcb = L::Lcb::new(link::<L>(port, LinkEnd::B, paced, epoch), now);
        Self {
            port,
            lcb,
            queue: VecDeque::new(),
            received: vec![Vec::new(); L::VCS],
            stuck: false,
        }
    }

    fn is_active(&self) -> bool {
        self.lcb.is_active()
    }

    fn advance(&mut self, now: Time) {
        self.lcb.handle_timers(now);
        self.exchange();
    }

    fn poll_frame(&mut self, now: Time, buf: &mut [u8]) -> Option<usize> {
        self.lcb.poll_frame(now, buf)
    }

    fn handle_frame(&mut self, now: Time, bytes: &[u8]) {
        self.lcb.handle_frame(now, bytes);
    }

    fn exchange(&mut self) {
        while let Some(words) = self.queue.front() {
            let vc = L::begins(words[0]);
            if vc.is_some_and(|vc| !L::can_begin(&self.lcb, vc, words.len())) {
                break;
            }
            let words = self.queue.pop_front().expect("a queued packet");
            words
                .into_iter()
                .for_each(|word| L::push(&mut self.lcb, word));
        }
        for vc in 0..L::VCS {
            while !self.stuck && L::len(self.lcb.input(), vc) > 0 {
                self.received[vc].push(L::pop(self.lcb.input_mut(), vc));
            }
        }
        self.lcb.give_back();
    }
}

/// A chip under test, with a link end at the far side of each port.
pub struct Net<C: ChipCore, L: Link> {
    pub chip: Chip<C>,
    pub ends: Vec<End<L>>,
    pub now: Time,
    step: Duration,
    pub loss_percent: u64,
    /// Percentage of frames to the chip with a payload bit flipped.
    pub flip_percent: u64,
    rng: Rng,
    pub events: Vec<C::Event>,
    /// Frames that the chip has sent.
    pub frames: u64,
}

impl<C, L> Net<C, L>
where
    C: ChipCore,
    C::Event: Debug,
    Chip<C>: Node<Event = C::Event>,
    L: Joining<Lcb = C::End, Config = <C::End as NodeLink>::Config>,
{
    /// A chip of `config`, with links at `ports` instead of those in `config`.
    pub fn new(
        config: ChipConfig<C::Registers, L::Config>,
        ports: &[PortId],
        step: Duration,
    ) -> Self {
        Self::with(config, ports, step, |link| link)
    }

    /// Like [`new`](Self::new), with the configuration of the chip's link ends changed by `change`.
    pub fn with(
        config: ChipConfig<C::Registers, L::Config>,
        ports: &[PortId],
        step: Duration,
        change: impl Fn(L::Config) -> L::Config,
    ) -> Self {
        let paced = config.clock != RouterClock::FreeRunning;
        let own = |&port: &PortId| (port, change(link::<L>(port, LinkEnd::A, paced, 1)));
        let config = ChipConfig {
            ports: ports.iter().map(own).collect(),
            ..config
        };
        let far = |&port: &PortId| End::new(port, paced, 1, Time::ZERO);
        Self {
            chip: Chip::new(config, Time::ZERO),
            ends: ports.iter().map(far).collect(),
            now: Time::ZERO,
            step,
            loss_percent: 0,
            flip_percent: 0,
            rng: Rng::new(4, 4),
            events: Vec::new(),
            frames: 0,
        }
    }

    pub fn step(&mut self) {
        self.now += self.step;
        let (now, mut buf) = (self.now, [0; FRAME]);
        for end in &mut self.ends {
            end.advance(now);
            while let Some(length) = end.poll_frame(now, &mut buf) {
                if self.rng.chance(self.flip_percent, 100) {
                    // Flip a bit in the last third of a frame, which contains phits.
                    let at = length - 1 - self.rng.below(length as u64 / 3) as usize;
                    buf[at] ^= 1 << self.rng.below(8);
                }
                if !self.rng.chance(self.loss_percent, 100) {
                    self.chip.handle_frame(now, end.port, &buf[..length]);
                }
            }
        }
        self.chip.advance(now);
        for end in &mut self.ends {
            if self.chip.ready_ports() >> end.port & 1 == 0 {
                continue;
            }
            while let Some(length) = self.chip.poll_frame(now, end.port, &mut buf) {
                self.frames += 1;
                if !self.rng.chance(self.loss_percent, 100) {
                    end.handle_frame(now, &buf[..length]);
                }
            }
            end.exchange();
        }
        while let Some(event) = self.chip.poll_event() {
            self.events.push(event);
        }
    }

    pub fn run(&mut self, steps: usize) {
        (0..steps).for_each(|_| self.step());
    }

    pub fn run_until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        for _ in 0..200_000 {
            if done(self) {
                return;
            }
            self.step();
        }
        panic!("{what} did not happen; events {:?}", self.events);
    }

    pub fn bring_up(&mut self) {
        self.run_until("bring-up of the links", |net| {
            let own = |port| net.chip.lcb(port).is_some_and(|lcb| lcb.is_active());
            net.ends.iter().all(|end| end.is_active() && own(end.port))
        });
    }
}
