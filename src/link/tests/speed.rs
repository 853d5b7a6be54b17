//! How fast the data path is. Run with `cargo test --release -p phitwire speed -- --ignored --nocapture`.

use phitwire_framing::packet24::Vc;

use super::harness::{A, B, Pair, packet};

#[test]
#[ignore = "a measurement, not a check"]
#[expect(
    clippy::disallowed_methods,
    reason = "a measurement needs a real clock"
)]
fn packets_per_second_through_one_pair() {
    let mut pair = Pair::up(1);
    let template = packet(Vc::Request, 5, 10);
    let mut buf = vec![0; 1_472];
    let now = pair.now;
    let [a, b] = &mut pair.ends;
    let start = std::time::Instant::now();
    let mut packets = 0_u64;
    while packets < 3_000_000 {
        for _ in 0..200 {
            if !a.lcb.can_begin(Vc::Request) {
                break;
            }
            template.iter().for_each(|phit| a.lcb.push(*phit));
            packets += 1;
        }
        while let Some(length) = a.lcb.poll_frame(now, &mut buf) {
            b.lcb.handle_frame(now, &buf[..length], &mut b.input);
        }
        while b.input.ready(Vc::Request) {
            b.input.pop(Vc::Request);
        }
        let acks = b.input.take_acks(Vc::Request);
        b.lcb.vc_freed(Vc::Request, acks);
        while let Some(length) = b.lcb.poll_frame(now, &mut buf) {
            a.lcb.handle_frame(now, &buf[..length], &mut a.input);
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{:.2} M packets/s of 10 phits, one core does both ends",
        packets as f64 / seconds / 1e6
    );
    assert_eq!(pair.count(B, |c| c.rx_packets), packets);
    assert_eq!(pair.count(A, |c| c.tx_retransmitted_packets), 0);
}
