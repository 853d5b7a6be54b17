//! Both engines move verified frames over loopback and over veth, as UDP and as raw Ethernet.

use std::net::SocketAddrV4;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::common::{
    Take, Toy, ethernet_port, free_addresses, has_io_uring, in_namespace, ip, join_interfaces,
    own_namespace, run_toy, skip, udp_port, wait_until,
};
use nix::unistd::gettid;
use phitwire_nodes::io::{self, IoCounters, IoEngine, OpenError, PortConfig};

const FRAMES: u64 = 20_000;

/// Runs two nodes with `links` ports each against each other over loopback.
fn loopback(engine: IoEngine, links: usize, frames: u64) -> &'static str {
    let addresses = free_addresses(2 * links);
    let side = |end: usize| -> Vec<PortConfig> {
        let ends = |i: usize| (addresses[2 * i + end], addresses[2 * i + 1 - end]);
        let port = |i| udp_port(i as u8, ends(i).0, ends(i).1, None);
        (0..links).map(port).collect()
    };
    let (near, far) = (side(0), side(1));
    let peer = thread::spawn(move || {
        run_toy(Toy::new(links, frames, true), engine, &far, |_, _| {});
    });
    let (driver, name) = run_toy(Toy::new(links, frames, true), engine, &near, |_, _| {});
    peer.join().unwrap();
    let counters = driver.backend.counters();
    assert!(counters.frames_received >= frames * links as u64);
    // Segmentation offload puts several frames into a send.
    let few = counters.messages_sent < counters.frames_sent / 2;
    assert!(few, "{counters:?}");
    name
}

#[test]
fn plain_engine_over_loopback() {
    assert_eq!(loopback(IoEngine::Plain, 1, FRAMES), "plain");
}

#[test]
fn plain_engine_with_many_ports() {
    loopback(IoEngine::Plain, 40, 500);
}

#[test]
fn uring_engine_over_loopback() {
    if has_io_uring() {
        assert_eq!(loopback(IoEngine::Uring, 1, FRAMES), "uring");
    }
}

#[test]
fn uring_engine_with_many_ports() {
    if has_io_uring() {
        assert_eq!(loopback(IoEngine::Uring, 40, 500), "uring");
    }
}

/// Runs a toy at each end of a veth pair `p0`, between this namespace and a new one. The peer runs
/// unattended; `near` runs here.
fn over_veth_pair<T>(
    engine: IoEngine,
    ports: impl Fn(bool) -> PortConfig + Send + Copy + 'static,
    mtu: u32,
    near: impl FnOnce(PortConfig) -> T,
) -> T {
    let (tell_id, id) = mpsc::channel();
    let (tell_go, go) = mpsc::channel();
    let peer = thread::spawn(move || {
        assert!(own_namespace());
        tell_id.send(gettid()).unwrap();
        go.recv().unwrap();
        ip("addr add 198.18.0.1/31 dev p0");
        ip(&format!("link set p0 mtu {mtu} up"));
        run_toy(toy(), engine, &[ports(true)], |_, _| {});
    });
    let id = id.recv().unwrap();
    ip(&format!("link add p0 type veth peer name p0 netns {id}"));
    ip("addr add 198.18.0.0/31 dev p0");
    ip(&format!("link set p0 mtu {mtu} up"));
    tell_go.send(()).unwrap();
    // The peer's end must be up before the sockets open; otherwise the first frames are lost.
    thread::sleep(Duration::from_millis(300));
    let near = near(ports(false));
    peer.join().unwrap();
    near
}

fn toy() -> Toy {
    Toy::new(1, FRAMES, true)
}

/// Runs one end in each of two namespaces joined by a veth pair.
fn over_veth(
    engine: IoEngine,
    ports: impl Fn(bool) -> PortConfig + Send + Copy + 'static,
    mtu: u32,
) {
    in_namespace(move || {
        let (driver, _) = over_veth_pair(engine, ports, mtu, |port| {
            run_toy(toy(), engine, &[port], |_, _| {})
        });
        assert!(driver.backend.counters().frames_received >= FRAMES);
    });
}

fn veth_udp(far: bool) -> PortConfig {
    let address = |end: u8| SocketAddrV4::new([198, 18, 0, end].into(), 5470);
    udp_port(0, address(far.into()), address((!far).into()), Some("p0"))
}

fn veth_ethernet(_far: bool) -> PortConfig {
    ethernet_port(0, "p0")
}

#[test]
fn udp_over_veth_by_plain_calls() {
    over_veth(IoEngine::Plain, veth_udp, 1500);
}

#[test]
fn udp_over_veth_by_uring_with_jumbo_frames() {
    over_veth(IoEngine::Uring, veth_udp, 9000);
}

#[test]
fn ethernet_over_veth_by_plain_calls() {
    over_veth(IoEngine::Plain, veth_ethernet, 1500);
}

#[test]
fn ethernet_over_veth_by_uring() {
    over_veth(IoEngine::Uring, veth_ethernet, 9000);
}

#[test]
fn every_opening_error_names_its_remedy() {
    let addresses = free_addresses(2);
    let error = |port: &PortConfig| {
        let opened = io::open(IoEngine::Plain, std::slice::from_ref(port), None);
        opened.err().expect("refused")
    };
    let missing = error(&ethernet_port(3, "no-such-if"));
    let of_port_3 = matches!(missing, OpenError::InterfaceMissing { port: 3, .. });
    assert!(of_port_3, "{missing}");
    assert!(missing.to_string().contains("lo") && missing.to_string().contains("up.sh"));
    let mut small = udp_port(0, addresses[0], addresses[1], None);
    small.mtu = Some(100);
    assert!(error(&small).to_string().contains("--mtu"));
    let mut large = udp_port(0, addresses[0], addresses[1], Some("lo"));
    large.mtu = Some(1_000_000);
    assert!(error(&large).to_string().contains("ip link set"));
    let elsewhere = SocketAddrV4::new([198, 18, 77, 77].into(), 5470);
    let unbound = error(&udp_port(0, elsewhere, addresses[1], None));
    assert!(unbound.to_string().contains("ip addr add"), "{unbound}");
    let _held = std::net::UdpSocket::bind(addresses[0]).unwrap();
    let taken = error(&udp_port(0, addresses[0], addresses[1], None));
    assert!(taken.to_string().contains("another process"), "{taken}");
}

#[test]
fn a_queueing_discipline_put_on_and_taken_off_is_noticed() {
    in_namespace(|| {
        join_interfaces();
        let names = ["p0", "p1"];
        let mut watch = io::InterfaceWatch::new(names.map(str::to_owned)).unwrap();
        let mut wait_for = |wanted: [bool; 2]| {
            wait_until(&format!("{wanted:?}"), || {
                watch.update().unwrap();
                let impaired = |name| watch.find(name).is_some_and(|found| found.single_frames);
                names.map(impaired) == wanted
            });
        };
        let tc = |arguments: &str| {
            let mut tc = std::process::Command::new("tc");
            let status = tc.args(arguments.split(' ')).status().unwrap();
            assert!(status.success(), "tc {arguments}");
        };
        wait_for([false, false]);
        tc("qdisc add dev p1 root tbf rate 1gbit burst 100k limit 1m");
        wait_for([false, true]);
        tc("qdisc add dev p0 root pfifo");
        tc("qdisc add dev p0 clsact");
        wait_for([true, true]);
        tc("qdisc del dev p1 root");
        wait_for([true, false]);
        tc("qdisc del dev p0 clsact");
        wait_for([false, false]);
    });
}

/// Two UDP ports of one node between four addresses, for `end` 0 or 1.
fn two_ports(addresses: &[SocketAddrV4], end: usize) -> [PortConfig; 2] {
    [0, 1].map(|i| {
        let [local, peer] = [addresses[2 * i + end], addresses[2 * i + 1 - end]];
        udp_port(i as u8, local, peer, None)
    })
}

/// Two backends with two ports each, joined.
fn joined_by_two_ports(engine: IoEngine) -> [Box<dyn io::Backend>; 2] {
    let addresses = free_addresses(4);
    [0, 1].map(|end| io::open(engine, &two_ports(&addresses, end), None).unwrap())
}

#[test]
fn a_port_that_may_not_segment_sends_frame_by_frame() {
    for engine in [IoEngine::Plain, IoEngine::Uring] {
        let [mut near, mut far] = joined_by_two_ports(engine);
        near.set_segmentation(1 << 1);
        for port in [0, 1] {
            for _ in 0..10 {
                near.frame_buffer(port)[..1000].fill(port);
                near.queue(port, 1000);
            }
        }
        near.flush();
        near.wait(Some(Duration::ZERO)).unwrap();
        assert_eq!(near.counters().frames_sent, 20, "{engine:?}");
        assert_eq!(near.counters().messages_sent, 10 + 1, "{engine:?}");
        let mut received = [0; 2];
        while received != [10, 10] {
            far.wait(Some(Duration::from_secs(5))).unwrap();
            let frames = far.receive(&mut Take::new(|port, bytes| {
                assert!(bytes.len() == 1000 && bytes.iter().all(|&b| b == port));
                received[usize::from(port)] += 1;
            }));
            assert!(frames > 0, "{engine:?}: {received:?}");
        }
    }
}

/// A turn gets a bounded part of a burst; the next turn gets the rest without waiting.
#[test]
fn a_burst_is_handed_up_in_several_turns() {
    const FRAMES: u32 = 60;
    for engine in [IoEngine::Plain, IoEngine::Uring] {
        let [mut near, mut far] = joined_by_two_ports(engine);
        for number in 0..FRAMES {
            for port in [0, 1] {
                near.frame_buffer(port)[..1000].fill(0);
                near.frame_buffer(port)[..4].copy_from_slice(&number.to_le_bytes());
                near.queue(port, 1000);
            }
        }
        near.flush();
        near.wait(Some(Duration::ZERO)).unwrap();
        let mut next = [0; 2];
        let mut turns = 0;
        while next != [FRAMES; 2] {
            far.wait(Some(Duration::from_secs(5))).unwrap();
            let frames = far.receive(&mut Take::new(|port, bytes| {
                let number = u32::from_le_bytes(bytes[..4].try_into().unwrap());
                assert_eq!(number, next[usize::from(port)], "{engine:?}: port {port}");
                next[usize::from(port)] += 1;
            }));
            assert!(frames <= 16, "{engine:?}: {frames} frames");
            turns += u32::from(frames > 0);
        }
        assert!(turns >= 8, "{engine:?}: {turns} turns");
        assert_eq!(far.counters().frames_received, u64::from(2 * FRAMES));
        assert_eq!(far.counters().bytes_received, u64::from(2 * FRAMES) * 1000);
        // A message counts once, even if several turns hand it up.
        let received = far.counters().messages_received;
        assert_eq!(received, near.counters().messages_sent, "{engine:?}");
    }
}

/// Datagrams without a frame do not prolong a turn, and frames after them arrive.
#[test]
fn a_flood_of_nothing_does_not_hold_up_a_turn() {
    for engine in [IoEngine::Plain, IoEngine::Uring] {
        let addresses = free_addresses(4);
        let mut far = io::open(engine, &two_ports(&addresses, 0), None).unwrap();
        let peers = [0, 1].map(|i| {
            let peer = std::net::UdpSocket::bind(addresses[2 * i + 1]).unwrap();
            peer.connect(addresses[2 * i]).unwrap();
            peer
        });
        for _ in 0..200 {
            peers[1].send(&[]).unwrap();
        }
        peers[0].send(&[7; 300]).unwrap();
        let (mut frames, mut messages, mut turns) = (0, 0, 0);
        while frames == 0 || messages < 201 {
            far.wait(Some(Duration::from_secs(5))).unwrap();
            frames += far.receive(&mut Take::new(|port, bytes| {
                assert_eq!((port, bytes), (0, &[7; 300][..]), "{engine:?}");
            }));
            let before = std::mem::replace(&mut messages, far.counters().messages_received);
            let more = messages - before;
            assert!(more <= 63, "{engine:?}: {before}, then {messages}");
            turns += 1;
            assert!(turns < 1000, "{engine:?}: {messages} messages");
        }
        assert_eq!((frames, messages), (1, 201), "{engine:?}");
    }
}

/// A link goes down and comes back up under two running processes in two namespaces: both survive,
/// and everything arrives.
fn flap(
    engine: IoEngine,
    ports: impl Fn(bool) -> PortConfig + Send + Copy + 'static,
    dropped: fn(IoCounters) -> u64,
) {
    let (mut cuts, mut cut_at) = (0, None);
    let (driver, _) = over_veth_pair(engine, ports, 1500, |port| {
        run_toy(toy(), engine, &[port], |toy, start| match cut_at {
            None if cuts < 3 && toy.ports[0].expected > 2000 * (cuts + 1) => {
                ip("link set p0 down");
                cut_at = Some(start.elapsed());
                cuts += 1;
            }
            Some(at) if start.elapsed() > at + Duration::from_millis(100) => {
                ip("link set p0 up");
                cut_at = None;
            }
            _ => {}
        })
    });
    assert_eq!(cuts, 3);
    let dropped = dropped(driver.backend.counters());
    assert!(dropped > 0, "sends to a link that is down are counted");
}

#[test]
fn a_flapping_interface_loses_frames_and_nothing_else() {
    for engine in [IoEngine::Plain, IoEngine::Uring] {
        in_namespace(move || flap(engine, veth_ethernet, |all| all.tx_dropped_link_down));
    }
}

#[test]
fn a_flapping_interface_under_udp_loses_frames_and_nothing_else() {
    for engine in [IoEngine::Plain, IoEngine::Uring] {
        in_namespace(move || flap(engine, veth_udp, |all| all.frames_dropped()));
    }
}

#[test]
fn a_filter_put_on_and_taken_off_is_noticed() {
    in_namespace(|| {
        let version = std::process::Command::new("nft").arg("--version").output();
        if version.is_err() {
            skip("nft is not installed");
            return;
        }
        join_interfaces();
        let names = ["p0", "p1"];
        let mut watch = io::FilterWatch::new().unwrap();
        let mut wait_for = |wanted: [bool; 2]| {
            wait_until(&format!("{wanted:?}"), || {
                watch.update().unwrap();
                names.map(|name| watch.is_filtered(name)) == wanted
            });
        };
        let nft = |command: &str| {
            let mut nft = std::process::Command::new("nft");
            let status = nft.arg(command).status().unwrap();
            assert!(status.success(), "nft {command}");
        };
        wait_for([false, false]);
        nft("add table netdev phw_p1; add chain netdev phw_p1 impair \
             { type filter hook ingress device \"p1\" priority 0; }; \
             add rule netdev phw_p1 impair numgen random mod 100 < 3 counter drop");
        wait_for([false, true]);
        nft("add table inet t; add chain inet t c { type filter hook input priority 0; }");
        nft("add table netdev t; add chain netdev t c \
             { type filter hook ingress devices = { p0, lo } priority 0; }");
        wait_for([true, true]);
        nft("delete table netdev phw_p1");
        wait_for([true, false]);
        let late = io::FilterWatch::new().unwrap();
        assert!(late.is_filtered("p0"), "a filter that was there before");
        nft("delete table netdev t");
        wait_for([false, false]);
    });
}
