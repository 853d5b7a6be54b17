use super::*;

const FRAMES: u64 = 20_000;

fn impair(words: &str, seed: u64) -> Impairment {
    let netem = words
        .parse()
        .unwrap_or_else(|error| panic!("{words}: {error}"));
    Impairment::new(netem, Rng::new(seed, 0))
}

/// Sends `count` numbered frames, one per microsecond. Returns the frames that come out as (time,
/// number, bytes).
fn run(impairment: &mut Impairment, count: u64) -> Vec<(Time, u64, Vec<u8>)> {
    let mut out = Vec::new();
    let mut collect = |impairment: &mut Impairment, now| {
        while let Some((at, frame)) = impairment.poll(now) {
            let number = u64::from_be_bytes(frame[..8].try_into().expect("eight bytes"));
            out.push((at, number, frame));
        }
    };
    for number in 0..count {
        let now = Time::ZERO + Duration::from_us(number);
        collect(impairment, now);
        let mut frame = [0u8; 100];
        frame[..8].copy_from_slice(&number.to_be_bytes());
        impairment.send(now, &frame);
    }
    collect(impairment, Time::NEVER);
    assert_eq!(impairment.next_deadline(), None);
    let c = impairment.counters();
    assert_eq!(
        c.offered + c.duplicated,
        c.lost + c.over_limit + c.delivered,
        "every frame counts"
    );
    assert_eq!(c.delivered, out.len() as u64);
    out
}

/// Whether `count` of `of` is within four standard deviations of `numerator / denominator`.
fn plausible(count: u64, of: u64, numerator: u64, denominator: u64) -> bool {
    let p = numerator as f64 / denominator as f64;
    let mean = of as f64 * p;
    let sigma = (mean * (1.0 - p)).sqrt();
    (count as f64 - mean).abs() <= 4.0 * sigma.max(1.0)
}

#[test]
fn the_statistics_can_fail() {
    assert!(plausible(200, FRAMES, 1, 100));
    assert!(!plausible(300, FRAMES, 1, 100));
    assert!(!plausible(100, FRAMES, 1, 100));
}

#[test]
fn nothing_asked_is_nothing_done() {
    let mut clear = impair("", 1);
    let out = run(&mut clear, 1000);
    assert!(out.iter().enumerate().all(|(i, (at, number, _))| {
        *number == i as u64 && *at == Time::ZERO + Duration::from_us(*number)
    }));
    assert_eq!(out.len(), 1000);
}

#[test]
fn the_same_seed_gives_the_same_fate_and_another_seed_another() {
    let words =
        "delay 20us 15us 25% loss 5% duplicate 5% corrupt 5% reorder 10% 50% gap 3 rate 1gbit";
    let once = run(&mut impair(words, 1), FRAMES);
    assert_eq!(once, run(&mut impair(words, 1), FRAMES));
    assert_ne!(once, run(&mut impair(words, 2), FRAMES));
    let seeded = format!("{words} seed 9");
    assert_eq!(
        run(&mut impair(&seeded, 1), FRAMES),
        run(&mut impair(&seeded, 2), FRAMES)
    );
}

#[test]
fn loss_is_as_frequent_as_asked() {
    for (words, numerator, denominator) in [
        ("loss 0.1%", 1, 1000),
        ("loss 1%", 1, 100),
        ("loss 30%", 30, 100),
    ] {
        let mut impairment = impair(words, 3);
        let out = run(&mut impairment, FRAMES);
        let lost = FRAMES - out.len() as u64;
        assert!(
            plausible(lost, FRAMES, numerator, denominator),
            "{words}: {lost}"
        );
        assert_eq!(lost, impairment.counters().lost);
    }
    assert!(run(&mut impair("loss 100%", 3), 100).is_empty());
}

/// Mean length of runs of lost frames.
fn mean_burst(out: &[(Time, u64, Vec<u8>)], count: u64) -> f64 {
    let mut arrived = vec![false; count as usize];
    for (_, number, _) in out {
        arrived[*number as usize] = true;
    }
    let lost = arrived.iter().filter(|a| !**a).count();
    let bursts = arrived.windows(2).filter(|w| w[0] && !w[1]).count();
    lost as f64 / bursts.max(1) as f64
}

#[test]
fn correlated_loss_comes_in_bursts() {
    // Independent losses with rate p come in runs of 1 / (1 - p). The correlation narrows the draws
    // around their mean, so the rate moves too, as in the kernel.
    let excess = |words| {
        let out = run(&mut impair(words, 4), FRAMES);
        mean_burst(&out, FRAMES) * out.len() as f64 / FRAMES as f64
    };
    let (alone, correlated) = (excess("loss 40%"), excess("loss 40% 75%"));
    assert!((0.95..1.05).contains(&alone), "{alone}");
    assert!(correlated > 1.4, "{correlated}");
}

#[test]
fn gilbert_elliott_has_its_two_states() {
    // Good lasts 100 frames and bad 10 on average, so one frame in eleven meets the bad state.
    let out = run(&mut impair("loss gemodel 1% 10%", 5), FRAMES);
    let lost = FRAMES - out.len() as u64;
    assert!((1_400..2_300).contains(&lost), "{lost}");
    let burst = mean_burst(&out, FRAMES);
    assert!((8.0..12.5).contains(&burst), "{burst}");
    // 70 % loss in the bad state, 0.1 % in the good one.
    let out = run(&mut impair("loss gemodel 1% 10% 70% 0.1%", 5), FRAMES);
    let softer = FRAMES - out.len() as u64;
    assert!((950..1_650).contains(&softer), "{softer}");
}

#[test]
fn the_four_state_chain_isolates_and_bursts() {
    // Only isolated losses: p14 leads to one loss and back.
    let out = run(&mut impair("loss state 0% 100% 0% 100% 10%", 6), FRAMES);
    assert!(mean_burst(&out, FRAMES) <= 1.0);
    let lost = FRAMES - out.len() as u64;
    // A loss is followed by a frame that arrives: 0.1 / 1.1 of the frames.
    assert!(plausible(lost, FRAMES, 1, 11), "{lost}");
    let out = run(&mut impair("loss state 1% 20%", 6), FRAMES);
    let burst = mean_burst(&out, FRAMES);
    assert!((4.0..6.2).contains(&burst), "{burst}");
}

#[test]
fn duplicates_come_as_often_as_asked_and_identical() {
    let out = run(&mut impair("duplicate 5%", 7), FRAMES);
    let copies = out.len() as u64 - FRAMES;
    assert!(plausible(copies, FRAMES, 5, 100), "{copies}");
    let twins = out.windows(2).filter(|w| w[0] == w[1]).count() as u64;
    assert_eq!(twins, copies, "a copy follows its original");
}

#[test]
fn corruption_flips_exactly_one_bit() {
    let mut impairment = impair("corrupt 10%", 8);
    let mut flips = 0;
    let mut positions = std::collections::BTreeSet::new();
    for number in 0..FRAMES {
        let clean = [number as u8; 40];
        impairment.send(Time::ZERO, &clean);
        let (_, frame) = impairment.poll(Time::ZERO).expect("no frame is lost");
        let bits: u32 = frame
            .iter()
            .zip(&clean)
            .map(|(a, b)| (a ^ b).count_ones())
            .sum();
        assert!(bits <= 1, "at most one bit");
        if bits == 1 {
            flips += 1;
            let byte = frame
                .iter()
                .zip(&clean)
                .position(|(a, b)| a != b)
                .expect("one bit differs");
            positions.insert(byte * 8 + (frame[byte] ^ clean[byte]).trailing_zeros() as usize);
        }
        impairment.recycle(frame);
    }
    assert!(plausible(flips, FRAMES, 1, 10), "{flips}");
    assert_eq!(impairment.counters().corrupted, flips);
    // 2,000 draws miss each of the 320 bits with probability 0.2 %.
    assert!(
        positions.len() > 310,
        "every bit of the frame can be hit: {}",
        positions.len()
    );
}

#[test]
fn an_empty_frame_cannot_be_corrupted() {
    let mut impairment = impair("corrupt 100%", 8);
    impairment.send(Time::ZERO, &[]);
    assert_eq!(impairment.poll(Time::ZERO), Some((Time::ZERO, Vec::new())));
    assert_eq!(impairment.counters().corrupted, 0);
}

fn delays(out: &[(Time, u64, Vec<u8>)]) -> Vec<u64> {
    out.iter()
        .map(|(at, number, _)| at.since(Time::ZERO + Duration::from_us(*number)).as_ns())
        .collect()
}

#[test]
fn jitter_spreads_evenly_around_the_delay_and_overtakes() {
    let out = run(&mut impair("delay 1ms 0.5ms limit 100000", 9), FRAMES);
    let delays = delays(&out);
    let mean = delays.iter().sum::<u64>() / FRAMES;
    assert!((990_000..1_010_000).contains(&mean), "{mean}");
    assert!(delays.iter().all(|ns| (500_000..=1_500_000).contains(ns)));
    assert!(*delays.iter().min().expect("some") < 501_000);
    let upper = delays.iter().filter(|ns| **ns > 1_250_000).count() as u64;
    assert!(plausible(upper, FRAMES, 1, 4), "{upper}");
    assert!(
        out.windows(2).any(|w| w[0].1 > w[1].1),
        "jitter lets frames overtake"
    );
    assert!(
        out.windows(2).all(|w| w[0].0 <= w[1].0),
        "frames leave in time order"
    );
}

#[test]
fn correlated_delay_changes_slowly() {
    let step = |words| {
        let out = run(&mut impair(words, 10), FRAMES);
        let mut by_number: Vec<_> = delays(&out)
            .into_iter()
            .zip(out.iter().map(|o| o.1))
            .collect();
        by_number.sort_by_key(|(_, number)| *number);
        by_number
            .windows(2)
            .map(|w| w[0].0.abs_diff(w[1].0))
            .sum::<u64>()
            / FRAMES
    };
    let (alone, correlated) = (
        step("delay 1ms 0.5ms limit 100000"),
        step("delay 1ms 0.5ms 90% limit 100000"),
    );
    assert!(correlated * 4 < alone, "{correlated} against {alone}");
}

#[test]
fn normal_jitter_has_its_deviation() {
    let out = run(
        &mut impair("delay 1ms 100us distribution normal limit 100000", 11),
        FRAMES,
    );
    let delays = delays(&out);
    let mean = delays.iter().sum::<u64>() as f64 / FRAMES as f64;
    let variance = delays
        .iter()
        .map(|ns| (*ns as f64 - mean).powi(2))
        .sum::<f64>()
        / FRAMES as f64;
    assert!((mean - 1e6).abs() < 4e3, "{mean}");
    assert!(
        (95e3..106e3).contains(&variance.sqrt()),
        "{}",
        variance.sqrt()
    );
}

#[test]
fn reordered_frames_pass_the_delayed_ones() {
    let mut impairment = impair("delay 10us reorder 25%", 12);
    let out = run(&mut impairment, FRAMES);
    let early = delays(&out).iter().filter(|ns| **ns == 0).count() as u64;
    assert!(plausible(early, FRAMES, 1, 4), "{early}");
    assert_eq!(early, impairment.counters().reordered);
    assert!(delays(&out).iter().all(|ns| *ns == 0 || *ns == 10_000));
    assert_eq!(out.len() as u64, FRAMES);
}

#[test]
fn a_gap_spaces_the_reordered_frames() {
    let out = run(&mut impair("delay 10us reorder 100% gap 5", 13), 1000);
    let mut early: Vec<u64> = out
        .iter()
        .zip(delays(&out))
        .filter(|(_, ns)| *ns == 0)
        .map(|(o, _)| o.1)
        .collect();
    early.sort_unstable();
    assert_eq!(early[0], 4, "the fifth frame is the first one sent early");
    assert!(early.windows(2).all(|w| w[1] - w[0] == 5), "{early:?}");
    assert_eq!(early.len(), 200);
}

#[test]
fn a_rate_serialises() {
    // 100 bytes at 400 Mbit/s take 2 us; one frame per us is offered.
    let out = run(&mut impair("rate 400mbit limit 100000", 14), 1000);
    assert!(
        out.windows(2)
            .all(|w| w[1].0.since(w[0].0) == Duration::from_us(2))
    );
    assert_eq!(out[0].0, Time::ZERO + Duration::from_us(2));
    // Overhead counts: 100 more bytes take 2 us more.
    let out = run(&mut impair("rate 400mbit 100 limit 100000", 14), 1000);
    assert!(
        out.windows(2)
            .all(|w| w[1].0.since(w[0].0) == Duration::from_us(4))
    );
    // Queueing time counts towards the delay, which is paid only once.
    let out = run(
        &mut impair("delay 50us rate 400mbit limit 100000", 14),
        1000,
    );
    let last = out[999].0;
    assert!(
        last < Time::ZERO + Duration::from_us(2_000 + 52),
        "{last:?}"
    );
}

#[test]
fn the_limit_bounds_held_frames() {
    let mut impairment = impair("delay 1s limit 10", 15);
    for _ in 0..25 {
        impairment.send(Time::ZERO, b"frame");
    }
    assert_eq!(impairment.held(), 10);
    assert_eq!(impairment.counters().over_limit, 15);
    impairment.clear();
    assert_eq!((impairment.held(), impairment.counters().cleared), (0, 10));
    assert_eq!(impairment.poll(Time::NEVER), None);
}

#[test]
fn the_deadline_is_when_poll_answers() {
    let mut impairment = impair("delay 3us", 16);
    assert_eq!(impairment.next_deadline(), None);
    impairment.send(Time::from_ns(500), b"frame");
    let deadline = impairment.next_deadline().expect("a frame is held");
    assert_eq!(deadline, Time::from_ns(3_500));
    assert_eq!(impairment.poll(Time::from_ns(3_499)), None);
    assert_eq!(
        impairment.poll(deadline),
        Some((deadline, b"frame".to_vec()))
    );
}
