use phitwire_framing::aries::packet::Status;

use super::super::outstanding::PacketId;
use super::message::{Kind, MESSAGE_BYTES, Message};
use super::*;
use phitwire::nic::Operand;
use phitwire::rng::Rng;

const EPOCH: u32 = 0x0102_0304;

#[test]
fn messages_read_as_written_and_nothing_else_reads() {
    let node = NodeId::new(3, 4, 1);
    let mut outcomes = vec![
        Ok(Operand::i64(-5).at(77)),
        Err(CollectiveFailure::Mismatch),
        Err(CollectiveFailure::NoContribution(node)),
        Err(CollectiveFailure::NoResult(node)),
        Err(CollectiveFailure::Unreachable(node)),
        Err(CollectiveFailure::NotReady(node)),
        Err(CollectiveFailure::Stopped(node)),
    ];
    let refused = |status| Err(CollectiveFailure::Refused(node, status));
    outcomes.extend(Status::ALL.map(refused));
    for outcome in outcomes {
        for kind in [Kind::Contribution, Kind::Result, Kind::Abort] {
            let message = Message {
                kind,
                sequence: 0xdead_beef,
                collective: "max-i64".parse().unwrap(),
                outcome,
                mark: true,
            };
            for answers in [None, Some((PacketId::from_bits(0xabc), 0x1f))] {
                let (address, (data, len)) = (message.address(), message.data(EPOCH, answers));
                let parsed = Message::parse(kind as u8, address, &data[..len]);
                let abort_of_nothing = kind == Kind::Abort && outcome.is_ok();
                let expected = (!abort_of_nothing).then_some((EPOCH, message, answers));
                assert_eq!(parsed, expected);
            }
        }
    }
    let mut rng = Rng::new(4, 0);
    for _ in 0..200_000 {
        let len = [4, 10, 16, 22, 28, 64][rng.below(6) as usize];
        let data: Vec<u8> = (0..len).map(|_| rng.below(9) as u8).collect();
        let address = rng.below(30) << 32 | rng.below(3);
        if let Some((_, message, answers)) = Message::parse(rng.below(6) as u8, address, &data) {
            assert_eq!(
                (len == 28, len == 22),
                (answers.is_some(), answers.is_none())
            );
            assert_eq!(message.address(), address);
        }
    }
    let (mut data, len) = Message::parse(0, 0, &[0; MESSAGE_BYTES])
        .unwrap()
        .1
        .data(EPOCH, Some((PacketId::from_bits(0xfff), 0x1f)));
    assert!(Message::parse(0, 0, &data[..len]).is_some());
    for (byte, reserved) in [(22, 1), (23, 1), (24, 1), (25, 0x20), (26, 0x10)] {
        data[byte] ^= reserved;
        assert!(Message::parse(0, 0, &data[..len]).is_none(), "byte {byte}");
        data[byte] ^= reserved;
    }
    assert!(Message::parse(3, 0, &[0; MESSAGE_BYTES]).is_none());
}
