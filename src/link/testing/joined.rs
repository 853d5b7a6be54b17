//! Two NICs of any machine joined by links: their frames are passed in memory, through impairments.

use crate::link::impair::{ImpairCounters, Impairment};
use crate::node::Node;
use crate::rng::Rng;
use crate::time::{Duration, Time};

const STEP: Duration = Duration::from_us(5);
pub const SECOND: Duration = Duration::from_ms(1_000);

pub struct Joined<N> {
    pub nics: [N; 2],
    /// Wires by sender and port.
    wires: [Vec<Impairment>; 2],
    pub now: Time,
    /// Frames sent, by sender, while `keep` is set.
    pub frames: [Vec<Vec<u8>>; 2],
    pub keep: bool,
}

impl<N: Node> Joined<N> {
    /// Two NICs made at the first nanosecond and joined port by port.
    pub fn of(made: impl FnOnce(Time) -> [N; 2], netem: &str) -> Self {
        let now = Time::from_ns(1);
        let mut joined = Self {
            nics: made(now),
            wires: Default::default(),
            now,
            frames: Default::default(),
            keep: false,
        };
        joined.impair(netem);
        joined
    }

    /// Replaces the impairments; frames in flight are lost.
    pub fn impair(&mut self, netem: &str) {
        let netem = netem.parse().unwrap();
        let ports = self.nics[0].ports() as u64;
        let wire = |stream| Impairment::new(netem, Rng::new(7, stream));
        self.wires = [0, 1].map(|end| (0..ports).map(|port| wire(2 * port + end)).collect());
    }

    /// Impairment counters of each sender's first port.
    pub fn harm(&self) -> [ImpairCounters; 2] {
        self.wires.each_ref().map(|wires| *wires[0].counters())
    }

    pub fn step(&mut self) {
        self.now += STEP;
        let (now, mut buf) = (self.now, [0xa5; 1472]);
        for from in 0..2 {
            self.nics[from].advance(now);
            for (port, wire) in (0..).zip(&mut self.wires[from]) {
                while let Some(len) = self.nics[from].poll_frame(now, port, &mut buf) {
                    wire.send(now, &buf[..len]);
                    if self.keep {
                        self.frames[from].push(buf[..len].to_vec());
                    }
                }
            }
            assert_eq!(self.nics[from].ready_ports(), 0, "all events were polled");
        }
        for from in 0..2 {
            for (port, wire) in (0..).zip(&mut self.wires[from]) {
                while let Some((_, bytes)) = wire.poll(now) {
                    self.nics[1 - from].handle_frame(now, port, &bytes);
                    wire.recycle(bytes);
                }
            }
        }
    }

    pub fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.step();
        }
    }

    /// Steps until `done`, at most for `limit`.
    pub fn until(&mut self, limit: Duration, done: impl Fn(&Self) -> bool) {
        let end = self.now + limit;
        while !done(self) {
            assert!(self.now < end, "the pair does not come to rest");
            self.step();
        }
    }
}
