//! The destination address of an Ethernet port. The port does not trust a single claim to be the
//! peer; while two addresses compete, it broadcasts.

use std::time::{Duration, Instant};

use crate::common::{ethernet_port, in_namespace, ip, wait_until_interfaces_send};
use phitwire::node::PortId;
use phitwire_framing::carrier::frame::ETHERTYPE;
use phitwire_nodes::io::{self, Backend, FrameSink, IoEngine};
use pnet::datalink::{self, Channel, DataLinkReceiver, DataLinkSender};

type Address = [u8; 6];

const EVERYBODY: Address = [0xff; 6];
const PEER: Address = [2, 0, 0, 0, 0, 0x0b];
const STRANGER: Address = [2, 0, 0, 0, 0, 0x66];
const GROUP: Address = [3, 0, 0, 0, 0, 0x0b];

/// A link that accepts frames marked as valid.
#[derive(Default)]
struct Link {
    frames: u64,
    accepted: u64,
}

/// Number of silence checks, 250 ms apart in a process, for which two addresses stay disputed.
const LOOKS: u32 = 8;

const GOOD: u8 = 1;
const JUNK: u8 = 2;

impl FrameSink for Link {
    fn frame(&mut self, _port: PortId, bytes: &[u8]) {
        self.frames += 1;
        self.accepted += u64::from(bytes[0] == GOOD);
    }

    fn accepted(&self, _port: PortId) -> u64 {
        self.accepted
    }
}

/// A port on `p0`, and the other end of its cable, where the test sends for all stations.
struct Lab {
    port: Box<dyn Backend>,
    link: Link,
    to_port: Box<dyn DataLinkSender>,
    from_port: Box<dyn DataLinkReceiver>,
}

impl Lab {
    fn new(engine: IoEngine) -> Self {
        ip("link add p0 address 02:00:00:00:00:0a type veth peer name p1");
        ip("link set p0 up");
        ip("link set p1 up");
        wait_until_interfaces_send();
        let port = io::open(engine, &[ethernet_port(0, "p0")], None).expect("the port opens");
        let outside = datalink::interfaces()
            .into_iter()
            .find(|interface| interface.name == "p1")
            .expect("it was made");
        let config = datalink::Config {
            read_timeout: Some(Duration::from_secs(5)),
            ..datalink::Config::default()
        };
        let Ok(Channel::Ethernet(to_port, from_port)) = datalink::channel(&outside, config) else {
            panic!("a raw socket on p1");
        };
        Self {
            port,
            link: Link::default(),
            to_port,
            from_port,
        }
    }

    /// Delivers a frame from this address.
    fn comes(&mut self, from: Address, what: u8) {
        let header = [EVERYBODY, from].concat();
        let message = [&header[..], &ETHERTYPE.to_be_bytes(), &[what; 60]].concat();
        self.to_port
            .send_to(&message, None)
            .expect("a channel of Ethernet")
            .expect("the cable takes it");
        let (before, start) = (self.link.frames, Instant::now());
        while self.link.frames == before {
            assert!(start.elapsed() < Duration::from_secs(5), "it does not come");
            self.port.wait(Some(Duration::from_millis(100))).unwrap();
            self.port.receive(&mut self.link);
        }
    }

    /// The destination of the next frame.
    fn sends_to(&mut self) -> Address {
        self.port.frame_buffer(0)[..60].fill(0);
        self.port.queue(0, 60);
        self.port.flush();
        self.port.wait(Some(Duration::ZERO)).unwrap();
        loop {
            let message = self.from_port.next().expect("the port sends");
            let is_from_port = message[6..12] == [2, 0, 0, 0, 0, 0x0a];
            if is_from_port && message[12..14] == ETHERTYPE.to_be_bytes() {
                return message[..6].try_into().unwrap();
            }
        }
    }

    /// Delivers frames from one address until the others no longer count.
    fn hears_only(&mut self, from: Address) {
        for _ in 0..LOOKS {
            self.comes(from, GOOD);
            assert_eq!(self.sends_to(), EVERYBODY);
            self.look_for_silence();
        }
        self.comes(from, GOOD);
    }

    fn look_for_silence(&mut self) {
        let accepted = self.link.accepted;
        self.port.ports_mut().forget_silent(&|_| accepted);
    }
}

fn only_the_peer_is_answered(engine: IoEngine) {
    let mut lab = Lab::new(engine);
    assert_eq!(lab.sends_to(), EVERYBODY, "nobody is known");
    lab.comes(STRANGER, JUNK);
    assert_eq!(lab.sends_to(), EVERYBODY, "a stranger is not believed");
    lab.comes(GROUP, GOOD);
    assert_eq!(lab.sends_to(), EVERYBODY, "no station has that address");
    lab.comes(PEER, GOOD);
    assert_eq!(lab.sends_to(), PEER);
    lab.comes(STRANGER, JUNK);
    lab.comes(PEER, JUNK);
    assert_eq!(lab.sends_to(), PEER, "nor when the peer is known");

    // A stranger sends a copy of the peer's frame; or the peer has a new interface.
    lab.comes(STRANGER, GOOD);
    assert_eq!(lab.sends_to(), EVERYBODY, "it may be anybody");
    lab.comes(PEER, GOOD);
    assert_eq!(lab.sends_to(), EVERYBODY, "either may be the peer");
    lab.hears_only(PEER);
    assert_eq!(lab.sends_to(), PEER, "the other was heard once");

    // The stranger replays more copies than the peer has frames to send.
    for _ in 0..3 * LOOKS {
        for _ in 0..5 {
            lab.comes(STRANGER, GOOD);
            assert_eq!(lab.sends_to(), EVERYBODY, "the peer is reached");
        }
        lab.comes(PEER, GOOD);
        lab.look_for_silence();
    }
    // The stranger replays copies while the peer sends occasionally.
    for look in 0..3 * LOOKS {
        lab.comes(STRANGER, GOOD);
        assert_eq!(lab.sends_to(), EVERYBODY, "look {look}");
        if look % (LOOKS / 2) == 0 {
            lab.comes(PEER, GOOD);
        }
        lab.look_for_silence();
    }
    // Silence from both does not end the dispute.
    lab.look_for_silence();
    lab.comes(STRANGER, GOOD);
    assert_eq!(lab.sends_to(), EVERYBODY);

    lab.comes(PEER, GOOD);
    lab.hears_only(STRANGER);
    assert_eq!(lab.sends_to(), STRANGER, "the peer is there now");

    lab.look_for_silence();
    assert_eq!(lab.sends_to(), STRANGER, "frames were accepted meanwhile");
    lab.comes(STRANGER, JUNK);
    lab.look_for_silence();
    assert_eq!(lab.sends_to(), EVERYBODY, "none was");
}

#[test]
fn an_address_is_learnt_from_accepted_frames_alone_and_forgotten_in_silence() {
    for engine in [IoEngine::Plain, IoEngine::Uring] {
        in_namespace(move || only_the_peer_is_answered(engine));
    }
}
