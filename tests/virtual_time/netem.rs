//! Every impairment on all links at once, in both directions, on the quickstart network: two R1
//! subtrees of four processors joined by sidelinks.

use phitwire::time::Duration;

use crate::harness::{impair_all, link_counter, live, run, uniform, up};

/// Checks under `words` that every message arrives once, in order per address, and that the
/// counters `caused` by the words are nonzero.
fn survives(words: &str, caused: &[&str]) {
    survives_with(words, 400, caused);
}

fn survives_with(words: &str, messages: u64, caused: &[&str]) {
    let mut network = up(&live(8, 4), 7);
    impair_all(&mut network, words);
    let traffic = uniform(&network, 1, messages);
    let report = run(&mut network, &traffic, Duration::from_ms(60_000));
    assert_eq!(
        (report.acknowledged, report.delivered),
        (8 * messages, 8 * messages)
    );
    for counter in caused {
        assert!(
            link_counter(&network, counter) > 0,
            "{words} must show as {counter}"
        );
    }
}

#[test]
fn loss_of_one_frame_in_a_thousand() {
    survives_with("loss 0.1%", 6_000, &["tx_retransmitted_packets"]);
}

#[test]
fn loss_of_one_frame_in_a_hundred() {
    survives("loss 1%", &["tx_retransmitted_packets", "rx_recoveries"]);
}

#[test]
fn loss_of_one_frame_in_ten() {
    survives("loss 10%", &["tx_retransmitted_packets", "rx_recoveries"]);
}

#[test]
fn loss_of_three_frames_in_ten() {
    survives(
        "loss 30%",
        &["tx_retransmitted_packets", "tx_rewinds_timeout"],
    );
}

#[test]
fn delay_with_jitter() {
    survives("delay 1ms 0.5ms", &["rx_reordered_frames"]);
}

#[test]
fn reordering() {
    survives("delay 200us reorder 25%", &["rx_reordered_frames"]);
}

#[test]
fn duplication() {
    survives("duplicate 5%", &["rx_duplicate_phits"]);
}

#[test]
fn corruption() {
    survives("corrupt 1%", &["rx_crc_errors", "tx_retransmitted_packets"]);
}

#[test]
fn bursts_of_loss() {
    survives(
        "loss gemodel 1% 10% 70% 0.1%",
        &["tx_retransmitted_packets"],
    );
}

#[test]
fn all_at_once() {
    survives(
        "delay 1ms 0.5ms duplicate 5% corrupt 1% reorder 25% loss gemodel 1% 10% 70% 0.1%",
        &[
            "rx_crc_errors",
            "rx_duplicate_phits",
            "tx_retransmitted_packets",
        ],
    );
}

#[test]
fn a_narrow_and_long_wire() {
    survives("delay 100ms rate 10mbit limit 100000", &[]);
}
