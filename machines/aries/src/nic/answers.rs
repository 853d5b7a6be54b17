//! Responses that wait for the link; one may complete several requests.
//!
//! A response to a put normally costs routers as much as the put does. Where frames carry many
//! requests, the responses wait until the other received requests have been served, and those to
//! one source that say only "done" are joined
//! ([`Response::others`](phitwire_framing::aries::packet::Response)). No response is delayed only
//! to be joined.

use phitwire_framing::aries::flit::Head;
use phitwire_framing::aries::packet::{MAX_DATA, MAX_JOINED, Response, write_others};

use super::packet_buf::{PacketBuf, PacketQueue};

/// The last response in the queue, while others may join it.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    head: Option<Head>,
    /// Numbers of the other requests that the response completes.
    others: [u16; MAX_JOINED],
    len: usize,
}

impl Open {
    /// Starts the next response in place: copying a new value would stall on its stores.
    #[inline]
    const fn begin(&mut self, head: Option<Head>) {
        self.head = head;
        self.len = 0;
    }

    /// Joins a response of one flit if it is equivalent and there is room.
    #[inline]
    fn takes(&mut self, head: Head) -> bool {
        let what = |head: Head| (head.destination(), head.routing(), head.code());
        if self.head.map(what) != Some(what(head)) {
            return false;
        }
        let Some(slot) = self.others.get_mut(self.len) else {
            return false;
        };
        *slot = head.packet_id();
        self.len += 1;
        true
    }
}

/// Responses queued for the link, oldest first.
///
/// Call order: for each response write to [`vacant`](Self::vacant) and call
/// [`push_vacant`](Self::push_vacant). Then call [`close`](Self::close), and [`front`](Self::front)
/// and [`pop_front`](Self::pop_front) while the link takes responses.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    queue: PacketQueue,
    joins: bool,
    open: Open,
    joined: u64,
}

impl Answers {
    /// Creates an empty queue; with `joins`, one response may complete several requests.
    pub(crate) fn new(joins: bool) -> Self {
        Self {
            joins,
            ..Self::default()
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Number of responses that were joined to another.
    pub(crate) fn joined(&self) -> u64 {
        self.joined
    }

    #[inline]
    pub(crate) fn vacant(&mut self) -> &mut PacketBuf {
        self.queue.vacant()
    }

    /// Appends the response in [`vacant`](Self::vacant), or joins it to the last one.
    #[inline]
    pub(crate) fn push_vacant(&mut self) {
        if !self.joins {
            return self.queue.push_vacant();
        }
        let head = match self.queue.vacant().as_slice() {
            [flit] => Head::parse(*flit),
            _ => None,
        };
        if head.is_some_and(|head| self.open.takes(head)) {
            self.joined += 1;
            return;
        }
        self.finish_last();
        self.queue.push_vacant();
        self.open.begin(head);
    }

    /// Ends joining to the last response, so that it can be sent.
    #[inline]
    pub(crate) fn close(&mut self) {
        self.finish_last();
        self.open.begin(None);
    }

    /// Writes the other completed requests into the last response.
    #[inline]
    fn finish_last(&mut self) {
        if self.open.len > 0 {
            self.join();
        }
    }

    fn join(&mut self) {
        let open = &self.open;
        let (Some(head), Some(last)) = (open.head, self.queue.back_mut()) else {
            return;
        };
        let (alone, _) =
            Response::parse_header(&[head.flit()]).expect("the queued response has one flit");
        let joined = Response {
            joined: true,
            ..alone
        };
        let mut data = [0; MAX_DATA];
        let bytes = write_others(alone.packet_id, &open.others[..open.len], &mut data);
        last.fill(|flits| joined.emit(&data[..bytes], flits))
            .expect("a list of numbers fits into a packet");
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&PacketBuf> {
        debug_assert!(
            self.open.head.is_none(),
            "joined responses are closed before they are sent"
        );
        self.queue.front()
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) {
        self.queue.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire_framing::aries::flit::{NodeId, Routing};
    use phitwire_framing::aries::packet::{Status, others};

    fn done(packet_id: u16) -> Response {
        Response {
            destination: NodeId::from_bits(5),
            routing: Routing::Adaptive0,
            packet_id,
            echo: 3,
            status: Status::Done,
            joined: false,
        }
    }

    fn write(answers: &mut Answers, response: Response, data: &[u8]) {
        let slot = answers.vacant();
        slot.fill(|flits| response.emit(data, flits)).unwrap();
        answers.push_vacant();
    }

    /// The request numbers in each sent packet, the first request's number first.
    fn sent(answers: &mut Answers) -> Vec<Vec<u16>> {
        answers.close();
        let mut all = Vec::new();
        while let Some(packet) = answers.front() {
            let mut data = [0; MAX_DATA];
            let (first, bytes) = Response::parse(packet.as_slice(), &mut data).unwrap();
            let mut ids = vec![first.packet_id];
            if first.joined {
                ids.extend(others(first.packet_id, &data[..bytes]));
            }
            all.push(ids);
            answers.pop_front();
        }
        all
    }

    #[test]
    fn equal_answers_are_joined_in_any_order() {
        let mut answers = Answers::new(true);
        let ids = [4_094, 4_095, 0, 7, 2, 29];
        for id in ids {
            write(&mut answers, done(id), &[]);
        }
        assert_eq!((answers.len(), answers.joined()), (1, 5));
        assert_eq!(sent(&mut answers), [ids]);
        for id in 0..100 {
            write(&mut answers, done(id), &[]);
        }
        let most = MAX_JOINED as u16 + 1;
        let all: Vec<Vec<u16>> = (0..100)
            .step_by(most.into())
            .map(|first| (first..100.min(first + most)).collect())
            .collect();
        assert_eq!(sent(&mut answers), all);
    }

    #[test]
    fn answers_that_differ_are_sent_alone() {
        let other = [
            Response {
                destination: NodeId::from_bits(6),
                ..done(2)
            },
            Response {
                routing: Routing::Minimal,
                ..done(2)
            },
            Response { echo: 4, ..done(2) },
            Response {
                status: Status::Busy,
                ..done(2)
            },
        ];
        for other in other {
            let mut answers = Answers::new(true);
            write(&mut answers, done(1), &[]);
            write(&mut answers, other, &[]);
            write(&mut answers, done(3), &[]);
            assert_eq!(answers.len(), 3, "{other:?}");
        }
        let mut answers = Answers::new(true);
        write(&mut answers, done(1), &[]);
        write(&mut answers, done(2), &[0; 4]);
        write(&mut answers, done(3), &[]);
        assert_eq!(sent(&mut answers), [[1], [2], [3]]);
    }

    #[test]
    fn no_answer_joins_a_packet_that_may_have_left() {
        let mut answers = Answers::new(true);
        write(&mut answers, done(1), &[]);
        answers.close();
        write(&mut answers, done(2), &[]);
        assert_eq!(sent(&mut answers), [[1], [2]]);
    }

    #[test]
    fn without_joining_each_answer_is_sent_alone() {
        let mut answers = Answers::new(false);
        write(&mut answers, done(1), &[]);
        write(&mut answers, done(2), &[]);
        assert_eq!(sent(&mut answers), [[1], [2]]);
        assert_eq!(answers.joined(), 0);
    }
}
