use super::*;
use crate::nic::traffic_spec::Pattern;

/// Takes everything at once, and remembers what.
#[derive(Default)]
struct Taken(VecDeque<(u16, Errand, u64)>);

impl Issuer for Taken {
    fn can_go(&self, _address: u64) -> bool {
        true
    }

    fn has_other_ways(&self) -> bool {
        false
    }

    fn issue(&mut self, processor: u16, errand: Errand, message: &Message<'_>) -> bool {
        let address = match message {
            Message::Block(block) => block.address,
            _ => 0,
        };
        self.0.push_back((processor, errand, address));
        true
    }
}

/// Two targets with one address each, of which the first never answers: the run goes on with the second. It stood
/// still for ever where the first was next.
#[test]
fn a_target_all_of_whose_addresses_are_given_up_does_not_hold_up_the_others() {
    let now = Time::ZERO;
    let in_turn = Pattern::List {
        destinations: vec![1, 2],
    };
    for pattern in [Pattern::Uniform, in_turn] {
        let spec = TrafficSpec {
            pattern,
            processors: vec![0, 1, 2],
            size: 100,
            window: 10,
            count: 20,
            addresses: 1,
            ..TrafficSpec::default()
        };
        let source = Source {
            processor: 0,
            memory_bytes: 1 << 20,
            nonce: 1,
            abilities: Abilities::ARIES,
        };
        let driver = Driver::new(spec, source, |number| Some(number.into()), now);
        let mut driver = driver.expect("a legal run");
        let mut taken = Taken::default();
        for _ in 0..50 {
            driver.issue(now, &mut taken);
            while let Some((processor, errand, address)) = taken.0.pop_front() {
                match errand {
                    Errand::Announcement(index) => {
                        driver.announcement_answered(index, Answered::Written);
                    }
                    Errand::Message(index) => {
                        let answered = if processor == 1 {
                            Answered::Unknown
                        } else {
                            Answered::Written
                        };
                        driver.message_answered(now, now, (index, address), answered);
                    }
                }
            }
        }
        let report = driver.report();
        assert_eq!((report.phase, report.sent), (Phase::Done, 20), "{report:?}");
        assert_eq!((report.acknowledged, report.timed_out), (19, 1));
    }
}
