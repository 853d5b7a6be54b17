//! Tracing of passing packets in the crossbar. This code is cold: a router that does not trace
//! checks that once per header and step.

use super::{Crossbar, Front, Header, MEMORY, PROCESSOR, STAGES, Wants, number, vc};
use phitwire::trace::{Candidate, Choice, Opening, QueueId, Stage, Watch};

/// From the pins of a network port to those of an output.
const PASSING: Stage = Stage {
    name: "input and crossbar",
    cycles: STAGES[0],
};
/// From the processor to the pins of an output, through the look-up table.
const ENTERING: Stage = Stage {
    name: "look-up and crossbar",
    cycles: STAGES[PROCESSOR],
};
/// From the router's memory, where rerouted packets wait.
const AGAIN: Stage = Stage {
    name: "memory and crossbar",
    cycles: 0,
};

impl Crossbar {
    pub fn watch(&mut self) -> &mut Option<Box<Watch>> {
        &mut self.watch
    }

    /// Traces flits that have arrived.
    #[cold]
    pub(super) fn watch_arrival(&mut self, cycle: u64, port: usize, vc: usize, flits: u32) {
        if let Some(watch) = &mut self.watch {
            watch.arrived(number(port, vc).into(), cycle, flits);
        }
    }

    /// Whether a packet belongs to the traced flow, according to its outgoing header.
    fn is_watched(&self, watch: &Watch, header: &Header) -> bool {
        let flow = watch.flow();
        let response = header.command.is_response();
        let to = u16::try_from(flow.destination(response)).ok();
        let entry = to.and_then(|to| self.table.look_up(to));
        let is_there = entry.is_some_and(|entry| entry.tag.to == header.tag.to);
        is_there && (response || u32::from(header.origin) == flow.from)
    }

    /// Traces the decision about a header.
    #[cold]
    pub(super) fn watch_front(&mut self, port: usize, vc: usize, front: Front) {
        let Front::Waiting(wants) = front else {
            return;
        };
        let word = self.inputs[port].headers[vc];
        let Ok((header, _)) = Header::parse(word) else {
            return;
        };
        let Some(mut watch) = self.watch.take() else {
            return;
        };
        if self.is_watched(&watch, &header) {
            let queue_id = QueueId::from(number(port, vc));
            if !watch.follows(queue_id, word) {
                let ready = self.inputs[port].ready[vc];
                let arrived = match STAGES.get(port) {
                    // The arrival of a packet from the memory is unknown.
                    None => None,
                    // The packet goes straight through, or has just arrived.
                    Some(_) if ready == 0 => Some(watch.at(self.cycle)),
                    Some(_) if !self.is_timed() => {
                        watch.front_arrived(queue_id, ready.into(), self.cycle)
                    }
                    Some(&stages) => {
                        let seen_by = self.cycle.saturating_sub(stages);
                        watch.front_arrived(queue_id, ready.into(), seen_by)
                    }
                };
                watch.open(Opening {
                    queue_id,
                    key: word,
                    identity: Some(header.id.into()),
                    response: header.command.is_response(),
                    units: Some(wants.flits()),
                    from: (port as u8, vc as u8),
                    arrived_ps: arrived,
                });
            }
            watch.decided(queue_id, word, choice(wants, &header, None));
        }
        self.watch = Some(watch);
    }

    /// Traces the header at the front of `vc` as it leaves.
    #[cold]
    pub(super) fn watch_go(
        &mut self,
        (port, vc): (usize, usize),
        wants: Wants,
        (out, to): (usize, usize),
    ) {
        let word = self.inputs[port].headers[vc];
        let Ok((header, _)) = Header::parse(word) else {
            return;
        };
        let Some(watch) = &mut self.watch else {
            return;
        };
        let queue_id = QueueId::from(number(port, vc));
        if !watch.follows(queue_id, word) {
            return;
        }
        watch.decided(queue_id, word, choice(wants, &header, Some((out, to))));
        let stage = match port {
            MEMORY => AGAIN,
            PROCESSOR => ENTERING,
            _ => PASSING,
        };
        watch.left(queue_id, word, stage, self.cycle, (out as u8, to as u8));
    }
}

/// A choice between the deterministic and the adaptive channel, and the winner if there is one.
fn choice(wants: Wants, header: &Header, won: Option<(usize, usize)>) -> Choice {
    let deterministic = Candidate::new(
        wants.out(),
        match usize::from(wants.out()) {
            PROCESSOR => "ejection",
            _ => "deterministic",
        },
    );
    let adaptive = wants.adaptive().map(|out| Candidate::new(out, "adaptive"));
    let is_alone = adaptive.is_none();
    let why = match won {
        None => "waits for the first free channel",
        Some(_) if is_alone => "the only candidate",
        Some((_, vc::ADAPTIVE)) => {
            "the adaptive channel was free and had room for the whole packet"
        }
        Some(_) => "the deterministic channel was free first",
    };
    Choice {
        among: "port".into(),
        mode: match header.tag.adaptive {
            true => "adaptive".into(),
            false => "direction order".into(),
        },
        candidates: [deterministic].into_iter().chain(adaptive).collect(),
        winner: won.map_or(u8::MAX, |(out, _)| out as u8),
        why: why.into(),
        times: 1,
    }
}
