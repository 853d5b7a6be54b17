//! Peers that are dead or slow.

use super::*;

#[test]
fn dead_peers_delay_no_other_and_recover() {
    let mut rig = Rig::new(3, Trouble::default());
    rig.net.dead[2] = true;
    for _ in 0..30 {
        let _ = rig.send(0, 2, 5_000);
        rig.send(0, 1, 5_000).unwrap();
        rig.run(Duration::from_ms(1));
    }
    assert_eq!(rig.arrived[0][1].len(), 30);
    rig.run(GIVEN_UP + STEP);
    let error = rig.send(0, 2, 100);
    assert_eq!(error, Err(DatagramError::Silent(2)));
    let lost = rig.counters().datagrams_lost;
    assert!(
        lost >= 24,
        "too few of the sent and queued datagrams: {lost}"
    );
    // After the restart the memory is empty, and this NIC sends first.
    rig.net.memories[2] = Memory::new(MEMORY);
    rig.net.dead[2] = false;
    rig.ends[2] = Datagrams::new(3, 4711, &mut rig.net.end(2)).unwrap();
    rig.send(2, 0, 100).unwrap();
    rig.run(Duration::from_ms(1));
    for _ in 0..10 {
        rig.send(0, 2, 70).unwrap();
        rig.run(Duration::from_ms(1));
    }
    assert_eq!((rig.arrived[2][0].len(), rig.arrived[0][2].len()), (1, 10));
}

#[test]
fn the_dead_are_left_alone_long_before_puts_time_out() {
    let mut rig = Rig::new(3, Trouble::default());
    rig.net.given_up = Duration::from_ms(20_000);
    rig.net.dead[2] = true;
    rig.run(QUIET_AFTER + STEP);
    let begin = rig.now;
    for _ in 0..10 {
        rig.send(0, 2, 1_000).unwrap();
    }
    rig.run(SUSPEND_AFTER - Duration::from_ms(1));
    assert_eq!(rig.counters().datagrams_lost, 0);
    let due = rig.ends[0].next_deadline().unwrap();
    assert!(due > rig.now && due <= begin + SUSPEND_AFTER + STEP.times(2));
    rig.run(Duration::from_ms(2));
    assert_eq!(rig.counters().datagrams_lost, 10);
    assert_eq!(rig.ends[0].next_deadline(), None);
    assert_eq!(rig.send(0, 2, 99), Err(DatagramError::Silent(2)));
    // A few puts probe the target again. It comes back before any of them has timed out.
    rig.run(SILENCE.0);
    rig.send(0, 2, 9_000).unwrap();
    rig.run(SUSPEND_AFTER + Duration::from_ms(1));
    assert_eq!(rig.counters().datagrams_lost, 11);
    assert!(rig.net.under_way.len() <= FEW_TO_ONE + PROBES);
    rig.net.dead[2] = false;
    rig.run(SILENCE.0.times(2));
    for _ in 0..5 {
        rig.send(0, 2, 9_000).unwrap();
    }
    rig.run(Duration::from_ms(5));
    assert_eq!(rig.arrived[0][2].len(), 5);
    assert_eq!(rig.counters().datagrams_broken, 0);
}

#[test]
fn a_slow_peer_is_resumed_as_soon_as_it_answers() {
    let mut rig = Rig::new(2, Trouble::default());
    rig.send(0, 1, 1_000).unwrap();
    rig.ends[0].put(rig.now, &mut rig.net.end(0));
    // Hold all puts for a while.
    let mut still = core::mem::take(&mut rig.net.under_way);
    rig.run(SUSPEND_AFTER + STEP);
    assert_eq!(rig.send(0, 1, 99), Err(DatagramError::Silent(1)));
    assert_eq!(rig.counters().datagrams_lost, 1);
    rig.net.under_way.append(&mut still);
    rig.run(STEP.times(20));
    rig.send(0, 1, 100).unwrap();
    rig.run(Duration::from_ms(1));
    assert_eq!(rig.arrived[0][1].len(), 1);
}
