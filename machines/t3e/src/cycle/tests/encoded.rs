//! Encoded links, and whole packets, against direct links and flits.

use super::*;

#[test]
fn encoded_links_come_up_within_a_second_or_not_at_all() {
    let topology = torus("2x1x1");
    let config = config("uniform", 10_000);
    let up = |words: &str| {
        let netem = Some(words.parse().unwrap());
        Simulation::<T3e>::with_encoded_links(&topology, &config, &ADAPTIVE, netem, 1, &mut Serial)
            .err()
    };
    assert_eq!(up("delay 100us loss 30%"), None);
    assert_eq!(up("loss 100%"), Some(ConfigError::LinksDown));
}

#[test]
fn encoded_links_carry_what_direct_ones_do() {
    for (size, options, reply) in [
        ("4x2x2", ADAPTIVE, true),
        ("4x2x2", DETERMINISTIC, false),
        ("2x2x2-2x1x1", ADAPTIVE, false),
    ] {
        let topology = torus(size);
        let mut config = config("uniform", 100_000);
        config.traffic.request_reply = reply;
        (config.measure_cycles, config.warmup) = (6_000, Warmup::Cycles(1_000));
        let direct = run(&topology, &config, &options);
        let clean = over_links(&topology, &config, &options, ("", 1));
        assert!((clean.accepted_load - direct.accepted_load).abs() < 0.01);
        let hops = [&clean, &direct].map(|report| report.hops_mean);
        assert!((hops[0] - hops[1]).abs() < 0.2, "{hops:?}");
        let more = clean.latency_cycles.mean - direct.latency_cycles.mean;
        println!(
            "{size} {options:?} {more} of {}",
            direct.latency_cycles.mean
        );
        assert_eq!(over_links(&topology, &config, &options, ("", 3)), clean);
        over_links(
            &topology,
            &config,
            &options,
            ("delay 2us 2us duplicate 1%", 1),
        );
        let lossy = over_links(&topology, &config, &options, ("loss 2%", 1));
        assert!(lossy.frames_lost > 0 && lossy.retransmitted_packets > 0);
        assert_eq!(
            over_links(&topology, &config, &options, ("loss 2%", 2)),
            lossy
        );
    }
}

/// Bounds the differences between the grains under load, because live labs use the packet grain.
#[test]
fn whole_packets_carry_what_flits_do() {
    let topology = torus("4x2x2");
    for (load, reply) in [(1_000_000, false), (600_000, true)] {
        let mut config = config("uniform", load);
        config.traffic.request_reply = reply;
        (config.measure_cycles, config.warmup) = (4_000, Warmup::Cycles(1_000));
        let [flits, packets] = [Grain::Flit, Grain::Packet].map(|grain| {
            let options = T3eOptions { grain, ..ADAPTIVE };
            over_links(&topology, &config, &options, ("", 1))
        });
        let ratio = packets.accepted_load / flits.accepted_load;
        println!(
            "load {load}: accepted {} {}, latency {} {}, hops {} {}",
            flits.accepted_load,
            packets.accepted_load,
            flits.latency_cycles.mean,
            packets.latency_cycles.mean,
            flits.hops_mean,
            packets.hops_mean
        );
        assert!((0.95..1.05).contains(&ratio), "load {load}: {ratio}");
        assert!((packets.hops_mean - flits.hops_mean).abs() < 0.05);
    }
}

#[test]
fn ideal_links_refuse_whole_packets() {
    let options = T3eOptions {
        grain: Grain::Packet,
        ..ADAPTIVE
    };
    let config = config("uniform", 100_000);
    let refused = Simulation::<T3e>::new(&torus("2x2x2"), &config, &options, 1);
    let why = refused.err().map(|error| error.to_string());
    assert!(why.is_some_and(|why| why.contains("--links encoded")));
}
