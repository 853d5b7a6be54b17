//! Both profiles behind the netem decorator, with the effects that the labs use.

use crate::link::AriesLinkConfig;
use crate::link::testing::{Pair, live, paper};
use phitwire::link::NodeLink;
use phitwire::link::impair::{Impairment, Netem};
use phitwire::link::testing::rig::FRAME_BYTES;
use phitwire::link::testing::rig::{A, B};
use phitwire::rng::Rng;
use phitwire::time::Duration;

#[test]
fn netem_s_own_effects_are_survived() {
    let list = [
        "delay 200us 100us loss 2%",
        "delay 1ms loss gemodel 2% 20% 80% 1%",
        "delay 500us duplicate 10% corrupt 3%",
        "delay 1ms reorder 25% 50%",
        "loss 20% rate 100mbit",
    ];
    for (index, words) in list.iter().enumerate() {
        let seed = index as u64;
        run_netem(words, seed, live(A), live(B), words.to_string());
        // With the chip's profile the wire must keep the order.
        if !words.contains("reorder") && !words.contains("100us") {
            run_netem(words, seed, paper(A), paper(B), format!("paper {words}"));
        }
    }
}

fn run_netem(words: &str, seed: u64, a: AriesLinkConfig, b: AriesLinkConfig, what: String) {
    let netem: Netem = words.parse().unwrap();
    let mut wires = [0, 1].map(|end| Impairment::new(netem, Rng::new(seed, end)));
    let mut pair = Pair::with(seed, a, b, FRAME_BYTES);
    pair.load(A, 1_000);
    pair.load(B, 1_000);
    let mut buf = vec![0; FRAME_BYTES];
    let end_of_test = pair.now + Duration::from_ms(60_000);
    loop {
        let now = pair.now;
        for index in [A, B] {
            while let Some((_, frame)) = wires[1 - index].poll(now) {
                let end = &mut pair.ends[index];
                end.lcb.handle_frame(now, &frame);
            }
            let end = &mut pair.ends[index];
            end.lcb.handle_timers(now);
            end.take();
            end.push();
            while let Some(length) = end.lcb.poll_frame(now, &mut buf) {
                wires[index].send(now, &buf[..length]);
                end.push();
            }
        }
        if (0..2).all(|end| pair.ends[1 - end].got_id == pair.ends[end].next_id) {
            return;
        }
        assert!(now < end_of_test, "{what}: {}", pair.state());
        let wakes = pair.ends.iter().map(|end| end.lcb.next_wakeup());
        let arrivals = wires.iter().filter_map(Impairment::next_deadline);
        let next = wakes.chain(arrivals).min().unwrap();
        pair.now = next.max(now + Duration::from_ps(1_000));
    }
}
