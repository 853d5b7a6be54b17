//! Processors that wait for responses.

use super::*;

/// Requests of 64 bytes take eight E-registers, and requests of eight bytes take one.
#[test]
fn requests_wait_for_registers_and_responses_for_the_memory() {
    let mut config = config("neighbour", 1_000_000);
    config.traffic.request_reply = true;
    for (bytes, e_registers, requests) in [
        (64, None, 64),
        (8, None, 512),
        (64, Some(16), 2),
        (64, Some(15), 1),
        (8, Some(3), 3),
    ] {
        config.traffic.message_bytes = bytes;
        let options = T3eOptions {
            e_registers,
            memory_ns: 100_000,
            ..ADAPTIVE
        };
        let mut simulation = direct(&torus("4x1x1"), &config, &options, 1);
        simulation.run_windows(2_400);
        let sent = simulation.tally().requests_sent;
        assert_eq!(sent, 4 * requests, "{bytes} {e_registers:?}");
    }
    config.traffic.message_bytes = 64;
    config.traffic.load = Load::from_millionths(10_000).unwrap();
    let latencies = [0, 1, 1_000].map(|memory_ns| {
        let options = T3eOptions {
            memory_ns,
            ..ADAPTIVE
        };
        let direct = run(&torus("4x1x1"), &config, &options);
        let encoded = over_links(&torus("4x1x1"), &config, &options, ("", 1));
        [direct, encoded].map(|report| report.latency_cycles.min)
    });
    let [none, one, many] = latencies;
    for links in 0..2 {
        assert_eq!(one[links] - none[links], 1);
        assert_eq!(many[links] - none[links], 75, "a clock is 40/3 ns");
    }
    for (reply, e_registers, memory_ns, reason) in [
        (false, Some(8), 0, "--request-reply"),
        (false, None, 1, "--request-reply"),
        (true, Some(7), 0, "64 bytes needs 8"),
    ] {
        config.traffic.request_reply = reply;
        config.traffic.message_bytes = 64;
        let options = T3eOptions {
            e_registers,
            memory_ns,
            ..ADAPTIVE
        };
        let refused = Simulation::<T3e>::new(&torus("4x1x1"), &config, &options, 1);
        let refused = refused.err().expect("the options are rejected").to_string();
        assert!(refused.contains(reason), "{refused}");
    }
}

/// "Request packets travel through the network on one set of virtual channels and response packets
/// on another" (T3E sec. 3.3): a processor responds while its own request is stuck halfway.
#[test]
fn responses_pass_a_request_that_is_blocked() {
    let mut config = config("neighbour", 1_000_000);
    config.traffic.request_reply = true;
    let mut simulation = direct(&torus("2x1x1"), &config, &DETERMINISTIC, 1);
    simulation.direct_parts_mut()[0].endpoints.terminals[0].lose_credits(vc::REQUEST, 21);
    simulation.run_windows(2_000);
    let tally = simulation.tally();
    assert!(tally.replies_sent > 450, "{tally:?}");
}
