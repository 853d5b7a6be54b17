mod peers;

use super::*;

use phitwire_framing::carrier::frame::checksum;

use super::layout::SLOTS;
use crate::nic::memory::OutOfRange;
use crate::rng::Rng;

/// Rates of put faults, per hundred thousand.
#[derive(Clone, Copy, Debug, Default)]
struct Trouble {
    damaged: u64,
    /// Puts that are not carried out and time out.
    lost: u64,
    /// Puts that time out and are carried out later.
    late: u64,
}

#[derive(Debug)]
struct Put {
    due: Time,
    from: u16,
    to: u16,
    name: u64,
    address: u64,
    data: Vec<u8>,
    ordered: bool,
    /// `None`: carried out, but the response is lost.
    end: Option<PutEnd>,
}

/// NICs that put into each other's memories.
#[derive(Debug)]
struct Net {
    rng: Rng,
    memories: Vec<Memory>,
    served: Vec<u64>,
    ended: Vec<VecDeque<(u64, PutEnd)>>,
    under_way: Vec<Put>,
    trouble: Trouble,
    dead: Vec<bool>,
    names: u64,
    given_up: Duration,
}

const MEMORY: u64 = 4 << 20;
const GIVEN_UP: Duration = Duration::from_ms(40);
const MOST_OUTSTANDING: usize = 300;
const STEP: Duration = Duration::from_us(5);

impl Net {
    fn new(ends: u16, trouble: Trouble) -> Self {
        let each = 0..ends;
        Self {
            rng: Rng::new(5, 5),
            memories: each.clone().map(|_| Memory::new(MEMORY)).collect(),
            served: each.clone().map(|_| 0).collect(),
            ended: each.clone().map(|_| VecDeque::new()).collect(),
            under_way: Vec::new(),
            trouble,
            dead: each.map(|_| false).collect(),
            names: 0,
            given_up: GIVEN_UP,
        }
    }

    fn deliver(&mut self, now: Time) {
        let (due, later) = core::mem::take(&mut self.under_way)
            .into_iter()
            .partition(|put| put.due <= now);
        self.under_way = later;
        for mut put in due {
            let to = usize::from(put.to);
            if matches!(put.end, None | Some(PutEnd::Done)) && !self.dead[to] {
                match self.memories[to].write(put.address, &put.data) {
                    Ok(()) => self.served[to] += 1,
                    Err(OutOfRange { .. }) => put.end = Some(PutEnd::Lost),
                }
            }
            if let Some(end) = put.end {
                self.ended[usize::from(put.from)].push_back((put.name, end));
            }
        }
    }

    fn end(&mut self, own: u16) -> End<'_> {
        End { net: self, own }
    }
}

struct End<'a> {
    net: &'a mut Net,
    own: u16,
}

impl RemotePuts for End<'_> {
    fn number(&self) -> Option<u16> {
        Some(self.own)
    }

    fn most_outstanding(&self) -> usize {
        MOST_OUTSTANDING
    }

    fn longest_put(&self) -> usize {
        64
    }

    fn put(
        &mut self,
        now: Time,
        to: u16,
        address: u64,
        data: &[u8],
        ordered: bool,
    ) -> Result<u64, PutError> {
        let net = &mut *self.net;
        let own = self.own;
        if net.under_way.iter().filter(|put| put.from == own).count() >= MOST_OUTSTANDING {
            return Err(PutError::Full);
        }
        net.names += 1;
        let soon = now + Duration::from_us(1 + net.rng.below(40));
        let (
            chance,
            Trouble {
                damaged,
                lost,
                late,
            },
        ) = (net.rng.below(100_000), net.trouble);
        let mut put = Put {
            due: soon,
            from: own,
            to,
            name: net.names,
            address,
            data: data.to_vec(),
            ordered,
            end: Some(PutEnd::Done),
        };
        if ordered {
            let before = net.under_way.iter();
            let before = before.filter(|put| put.ordered && (put.from, put.to) == (own, to));
            let before = before
                .map(|put| put.due)
                .filter(|due| *due < now + GIVEN_UP);
            put.due = before.fold(put.due, Time::max);
        }
        if chance < damaged {
            put.end = Some(PutEnd::Damaged);
        } else if chance < damaged + lost || net.dead[usize::from(to)] {
            (put.due, put.end) = (now + net.given_up, Some(PutEnd::Lost));
        } else if chance < damaged + lost + late {
            (put.due, put.end) = (now + net.given_up, Some(PutEnd::Lost));
            net.under_way.push(Put {
                due: put.due + Duration::from_us(net.rng.below(2_000)),
                data: data.to_vec(),
                end: None,
                ..put
            });
        }
        net.under_way.push(put);
        Ok(net.names)
    }

    fn put_ended(&mut self) -> Option<(u64, PutEnd)> {
        self.net.ended[usize::from(self.own)].pop_front()
    }

    fn puts_served(&self) -> u64 {
        self.net.served[usize::from(self.own)]
    }

    fn own_memory(&self) -> &Memory {
        &self.net.memories[usize::from(self.own)]
    }

    fn reserve(&mut self, bytes: u64) {
        assert!(bytes < MEMORY, "the memory is large enough");
    }
}

/// Several NICs and their datagrams, which begin with source, target and number.
struct Rig {
    net: Net,
    ends: Vec<Datagrams>,
    now: Time,
    rng: Rng,
    sent: u64,
    /// Numbers that arrived, by source and target.
    arrived: Vec<Vec<Vec<u64>>>,
}

const HEAD: usize = 12;

impl Rig {
    fn new(count: u16, trouble: Trouble) -> Self {
        let mut net = Net::new(count, trouble);
        let mut made = |own| Datagrams::new(count, u64::from(own) * 77, &mut net.end(own)).unwrap();
        let ends = (0..count).map(&mut made).collect();
        let none = vec![vec![Vec::new(); usize::from(count)]; usize::from(count)];
        Self {
            net,
            ends,
            now: Time::ZERO,
            rng: Rng::new(3, 3),
            sent: 0,
            arrived: none,
        }
    }

    fn send(&mut self, from: u16, to: u16, bytes: usize) -> Result<(), DatagramError> {
        let mut data: Vec<u8> = (0..bytes).map(|_| self.rng.next_u64() as u8).collect();
        data[..2].copy_from_slice(&from.to_le_bytes());
        data[2..4].copy_from_slice(&to.to_le_bytes());
        data[4..HEAD].copy_from_slice(&self.sent.to_le_bytes());
        let check = checksum(&data);
        data.extend(check.to_le_bytes());
        self.ends[usize::from(from)].send(self.now, to, &data)?;
        self.sent += 1;
        Ok(())
    }

    fn step(&mut self) {
        self.now += STEP;
        self.net.deliver(self.now);
        let mut room = vec![0; MOST_DATAGRAM_BYTES];
        for (own, end) in (0..).zip(&mut self.ends) {
            if self.net.dead[usize::from(own)] {
                continue;
            }
            let mut puts = self.net.end(own);
            end.poll(self.now, &mut puts);
            while let Some(bytes) = end.receive(&mut puts, &mut room) {
                let (data, check) = room[..bytes].split_at(bytes - 4);
                assert_eq!(
                    checksum(data).to_le_bytes(),
                    check,
                    "the datagram was changed"
                );
                let word = |at: usize| u16::from_le_bytes([data[at], data[at + 1]]);
                assert_eq!(word(2), own, "the datagram has the wrong destination");
                let number = u64::from_le_bytes(data[4..HEAD].try_into().unwrap());
                self.arrived[usize::from(word(0))][usize::from(own)].push(number);
            }
            end.put(self.now, &mut puts);
        }
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.step();
        }
    }

    fn count(&self) -> usize {
        self.arrived.iter().flatten().map(Vec::len).sum()
    }

    fn counters(&self) -> DatagramCounters {
        let mut all = DatagramCounters::default();
        self.ends.iter().for_each(|end| all.add(end.counters()));
        all
    }

    /// All NICs send to each other continuously, `datagrams` in total.
    fn storm(&mut self, datagrams: usize) {
        let lengths = [HEAD, 20, 60, 61, 500, 1_500, 9_000, MOST_DATAGRAM_BYTES - 4];
        for round in 0..datagrams {
            let (from, to) = (
                round % self.ends.len(),
                self.rng.below(self.ends.len() as u64),
            );
            let bytes = lengths[self.rng.below(lengths.len() as u64) as usize];
            let _ = self.send(from as u16, to as u16, bytes);
            let pause = STEP.times(self.rng.below(40));
            self.run(pause);
        }
    }
}

#[test]
fn datagrams_arrive_once_whole_and_in_order() {
    for damaged in [0, 2_000] {
        let trouble = Trouble {
            damaged,
            ..Trouble::default()
        };
        let mut rig = Rig::new(3, trouble);
        rig.storm(600);
        rig.run(Duration::from_ms(500));
        let counters = rig.counters();
        assert_eq!(rig.count() as u64, rig.sent, "{counters:?}");
        assert!(rig.sent > 300, "{counters:?}");
        let of = [
            counters.datagrams_sent,
            counters.datagrams_taken,
            counters.datagrams_received,
        ];
        assert_eq!(of, [rig.sent; 3], "{counters:?}");
        assert_eq!((counters.datagrams_lost, counters.datagrams_broken), (0, 0));
        assert_eq!(counters.puts_repeated > 0, damaged > 0);
        if damaged == 0 {
            let pairs = rig.arrived.iter().flatten();
            assert!(pairs.clone().all(|numbers| numbers.is_sorted()));
        }
    }
}

#[test]
fn datagrams_overwritten_by_late_puts_are_dropped() {
    let trouble = Trouble {
        damaged: 100,
        lost: 10,
        late: 30,
    };
    let mut rig = Rig::new(2, trouble);
    rig.storm(3_000);
    rig.run(Duration::from_ms(1_000));
    let counters = rig.counters();
    assert!(counters.datagrams_lost > 10, "{counters:?}");
    assert!(counters.datagrams_broken > 0, "{counters:?}");
    assert!(rig.count() > 100, "{counters:?}");
    for numbers in rig.arrived.iter().flatten() {
        let mut once = numbers.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), numbers.len(), "twice");
    }
    // Everything recovers when the faults end.
    rig.net.trouble = Trouble::default();
    let (before, sent) = (rig.count(), rig.sent);
    rig.storm(40);
    rig.run(Duration::from_ms(500));
    assert_eq!((rig.count() - before) as u64, rig.sent - sent);
    assert!(rig.sent > sent);
}

#[test]
fn a_bell_for_other_bytes_delivers_nothing() {
    let mut rig = Rig::new(2, Trouble::default());
    rig.send(0, 1, 1_000).unwrap();
    let slot = rig.ends[1].layout.slot(0, 0);
    while !matches!(rig.ends[0].peers[1].slots[0], Slot::Announced(..)) {
        rig.now += STEP;
        rig.net.deliver(rig.now);
        rig.ends[0].poll(rig.now, &mut rig.net.end(0));
        rig.ends[0].put(rig.now, &mut rig.net.end(0));
    }
    rig.net.memories[1].write(slot + 500, &[!0, 0]).unwrap();
    rig.run(Duration::from_ms(1));
    let counters = rig.counters();
    assert_eq!((rig.count(), counters.datagrams_broken), (0, 1));
    assert_eq!(counters.datagrams_taken, 1, "the slot is used again");
}

#[test]
fn datagrams_that_cannot_be_sent_are_refused() {
    let mut rig = Rig::new(2, Trouble::default());
    let now = rig.now;
    let end = &mut rig.ends[0];
    assert_eq!(end.send(now, 2, &[1]), Err(DatagramError::NoProcessor(2)));
    for bytes in [0, MOST_DATAGRAM_BYTES + 1] {
        assert_eq!(
            end.send(now, 1, &vec![0; bytes]),
            Err(DatagramError::Length(bytes))
        );
    }
    for _ in 0..MOST_WAITING.0 {
        end.send(now, 1, &[1]).unwrap();
    }
    assert_eq!(end.send(now, 1, &[1]), Err(DatagramError::Full));
    // For long datagrams the byte limit applies first.
    let end = &mut rig.ends[1];
    for _ in 0..MOST_WAITING.1 / 60_000 {
        end.send(now, 0, &[1; 60_000]).unwrap();
    }
    assert_eq!(end.send(now, 0, &[1; 60_000]), Err(DatagramError::Full));
    end.send(now, 0, &[1; MOST_WAITING.1 % 60_000]).unwrap();
    assert_eq!(end.send(now, 0, &[1]), Err(DatagramError::Full));
    let full = end.counters().datagrams_full;
    assert_eq!(full, 2);
    let error = Datagrams::new(9, 0, &mut rig.net.end(0)).unwrap_err();
    let needed = 2 * Layout::bytes(9);
    assert_eq!(
        error,
        NoRoom {
            memory: MEMORY,
            needed,
            processors: 9
        }
    );
}

#[test]
fn short_datagrams_outlast_a_target_that_stands_still() {
    // Four megabits a second of 1,428-byte datagrams, for half a second.
    let mut rig = Rig::new(2, Trouble::default());
    for _ in 0..175 {
        rig.send(0, 1, 1_428).unwrap();
        rig.now += Duration::from_us(2_857);
    }
    rig.run(Duration::from_ms(200));
    assert_eq!(rig.arrived[0][1].len(), 175);
    assert!(rig.arrived[0][1].is_sorted());
}

#[test]
fn a_repeated_word_does_not_overwrite_a_later_one() {
    let mut rig = Rig::new(2, Trouble::default());
    rig.send(0, 1, 200).unwrap();
    rig.run(Duration::from_ms(1));
    assert_eq!(rig.counters().datagrams_taken, 1);
    // Bell and receipt were carried out, but the responses to both arrive damaged.
    let bell = Bell(rig.ends[1].peers[0].heard[0]);
    for (own, is_receipt) in [(0, false), (1, true)] {
        let end = &mut rig.ends[own];
        let word = Word {
            to: 1 - own as u16,
            slot: 0,
            bell,
            is_receipt,
            attempts: 0,
        };
        end.asked.insert(1 << 40, PendingPut::Word(word));
        end.ended(rig.now, 1 << 40, PutEnd::Damaged);
    }
    assert!(rig.ends[0].words.is_empty(), "the slot is free");
    assert_eq!(rig.ends[1].words.len(), 1, "nothing arrived since");
    rig.send(0, 1, 300).unwrap();
    rig.run(Duration::from_ms(1));
    let counters = rig.counters();
    assert_eq!(
        (counters.datagrams_taken, counters.datagrams_broken),
        (2, 0)
    );
}

#[test]
fn stray_writes_deliver_nothing() {
    let mut rig = Rig::new(3, Trouble::default());
    let mut rng = Rng::new(8, 8);
    let layout = rig.ends[1].layout;
    let lines = 2 * layout.processors as usize * LINE;
    let lengths = [
        0,
        1,
        MOST_DATAGRAM_BYTES,
        MOST_DATAGRAM_BYTES + 1,
        (1 << 17) - 1,
    ];
    for round in 0..200_u64 {
        let mut words: Vec<u8> = (0..lines).map(|_| rng.next_u64() as u8).collect();
        for (slot, word) in words.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            // Half of them are bells with edge-case lengths and the checksum of an empty datagram.
            if rng.below(2) == 0 {
                let empty = Bell::new(round as u16, &[]).0;
                *word = (empty | lengths[slot % lengths.len()] as u64).to_le_bytes();
            }
        }
        rig.net.memories[1].write(layout.base, &words).unwrap();
        rig.net.served[1] += 1;
        rig.run(STEP.times(3));
        assert!(rig.ends[1].words.len() <= 2 * 3 * SLOTS);
    }
    assert_eq!(rig.count(), 0);
    assert!(rig.counters().datagrams_broken > 1_000);
    // Traffic continues undisturbed.
    rig.run(Duration::from_ms(10));
    for (from, to) in [(0, 1), (1, 0), (2, 1)] {
        rig.send(from, to, 500).unwrap();
    }
    rig.run(Duration::from_ms(2));
    assert_eq!(rig.count(), 3);
}

#[test]
fn a_peer_with_another_layout_delivers_nothing() {
    let mut rig = Rig::new(3, Trouble::default());
    rig.ends[2] = Datagrams::new(2, 99, &mut rig.net.end(2)).unwrap();
    for _ in 0..20 {
        let _ = rig.send(2, 1, 3_000);
        let _ = rig.send(0, 2, 3_000);
        rig.send(0, 1, 3_000).unwrap();
        rig.run(Duration::from_ms(1));
    }
    assert_eq!(rig.arrived[0][1].len(), 20);
    assert_eq!(rig.count(), 20);
}

#[test]
fn numbers_come_round() {
    let mut rig = Rig::new(2, Trouble::default());
    rig.ends[0] = Datagrams::new(2, u64::from(u16::MAX) - 20, &mut rig.net.end(0)).unwrap();
    for round in 0..40 {
        for bytes in [HEAD + 1, 900, 64] {
            rig.send(0, 1, bytes).unwrap();
        }
        // All datagrams in the slots are taken in order, whatever their numbers.
        rig.run(Duration::from_us(400));
        assert_eq!(rig.arrived[0][1].len(), 3 * (round + 1));
    }
    rig.ends[0].peers[1].number = (1 << 15) - 3;
    rig.ends[1].peers[0].next = (1 << 15) - 3;
    for _ in 0..8 {
        rig.send(0, 1, 100).unwrap();
    }
    while rig.ends[0].peers[1]
        .slots
        .iter()
        .any(|slot| !matches!(slot, Slot::Announced(..)))
    {
        rig.now += STEP;
        rig.net.deliver(rig.now);
        rig.ends[0].poll(rig.now, &mut rig.net.end(0));
        rig.ends[0].put(rig.now, &mut rig.net.end(0));
    }
    rig.run(Duration::from_ms(1));
    assert_eq!(rig.arrived[0][1].len(), 128);
    assert!(rig.arrived[0][1].is_sorted());
}

#[test]
fn a_receipt_that_never_comes_is_counted_with_the_next_datagram() {
    let mut rig = Rig::new(2, Trouble::default());
    rig.ends[0].peers[1].slots[3] = Slot::Announced(Bell(7), rig.now);
    rig.run(PATIENCE + STEP);
    rig.send(0, 1, 10 + HEAD).unwrap();
    rig.run(Duration::from_ms(1));
    let counters = rig.counters();
    assert_eq!((counters.datagrams_lost, counters.datagrams_taken), (1, 1));
}
