//! `phitwire sim --op` as called by users.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::Value;

use super::sim::{json, sim};

/// The output without fields that depend on the host.
fn run(words: &str) -> Value {
    let mut value = json(&format!("{words} --json"));
    let keys = value.as_object_mut().expect("an object");
    assert!(keys.remove("wall_seconds").is_some());
    assert_eq!(value["violations"], Value::Array(Vec::new()), "{words}");
    value
}

#[test]
fn messages_have_the_times_of_the_machine() {
    let value = run("aries-pair --op put --bytes 8..4K:x8 --count 50 --no-host");
    assert_eq!(value["between"], "nic0 to nic1");
    let rows = value["rows"].as_array().expect("rows");
    let bytes: Vec<_> = rows.iter().map(|row| row["bytes"].as_u64()).collect();
    assert_eq!(bytes, [8, 64, 512, 4_096].map(Some));
    let median = |row: &Value| row["latency_ns"]["p50"].as_u64().expect("a number");
    assert!(rows.is_sorted_by_key(median), "{rows:#?}");
    assert!((300..400).contains(&median(&rows[0])), "{rows:#?}");
    assert!(rows.iter().all(|row| row["completed"] == 50), "{rows:#?}");
    // Enough messages at once fill the link of the NIC, 10.2 GB/s of payload.
    let value = run("aries-pair --op put --bytes 64 --window 64 --span-us 20 --no-host");
    let rate = value["rows"][0]["gbytes_per_second"].as_f64();
    assert!(
        rate.is_some_and(|rate| (9.5..10.3).contains(&rate)),
        "{value:#}"
    );
    // The hosts add the rest of 0.8 us; sixteen processes issue sixteen times as much as one.
    let value = run("aries-pair --op put --count 50");
    assert_eq!(value["hosts"], true);
    let p50 = value["rows"][0]["latency_ns"]["p50"].as_u64();
    assert!(p50.is_some_and(|ns| (780..830).contains(&ns)), "{value:#}");
    let rate = |processes| {
        let words =
            format!("aries-pair --op put --window 1024 --span-us 20 --processes {processes}");
        run(&words)["rows"][0]["per_second"]
            .as_f64()
            .expect("a rate")
    };
    let more = rate(16) / rate(1);
    assert!((15.0..17.0).contains(&more), "{more}");
    let text = sim("t3e-2x2x2 --op get --count 20 --from nic3 --to nic0");
    let text = String::from_utf8(text.stdout).expect("text");
    assert!(
        text.starts_with("t3e-2x2x2: get, nic3 to nic0, window 1; the host takes no time\nbytes"),
        "{text}"
    );
    assert!(text.contains("\ntrace "), "{text}");
}

#[test]
fn the_seed_decides_everything_and_the_load_of_the_host_nothing() {
    let words = "aries-3x4 --op put --bytes 64 --traffic uniform --window 8 --count 100";
    let quiet = run(words);
    let stop = AtomicBool::new(false);
    let busy = thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    spin_loop();
                }
            });
        }
        let busy = run(words);
        stop.store(true, Ordering::Relaxed);
        busy
    });
    assert_eq!(quiet, busy);
    let other = run(&format!("{words} --seed 2"));
    assert_ne!(quiet["trace_hash"], other["trace_hash"]);
    assert_eq!(quiet["rows"][0]["nics"], 12);
}

#[test]
fn collective_operations_take_longer_among_more() {
    // Those that do not take part in the third run still have the report of the second one.
    let value = run("aries-3x4 --op allreduce --nics 2,12,2 --count 50");
    let rows = value["rows"].as_array().expect("rows");
    assert_eq!([&rows[0]["nics"], &rows[1]["nics"]], [2, 12]);
    let elapsed = |row: &Value| row["elapsed_ns"].as_u64();
    assert!(elapsed(&rows[0]) < elapsed(&rows[1]), "{rows:#?}");
    assert_eq!(rows[2]["latency_ns"]["max"], rows[0]["latency_ns"]["max"]);
    let barrier = run("t3e-2x2x2 --op barrier --count 20");
    assert_eq!(barrier["rows"][0]["completed"], 20);
}

#[test]
fn sends_go_one_way_and_eurekas_reach_every_processor() {
    let p50 = |words: &str, row: usize| {
        let value = run(words);
        let p50 = value["rows"][row]["latency_ns"]["p50"].as_u64();
        p50.expect("a number")
    };
    let put = p50("aries-pair --op put --count 50", 0);
    let sends = "aries-pair --op send --bytes 8,4K --count 50";
    assert!(p50(sends, 0) < put, "a put includes its answer");
    assert!(p50(sends, 1) > put, "a long message needs two round trips");
    let value = run("aries-3x4 --op send --traffic group-adversarial --count 5 --window 2");
    assert_eq!(value["rows"][0]["completed"], 60);
    let value = run("t3e-2x2x2 --op eureka --nics 2,8 --count 10");
    let rows = value["rows"].as_array().expect("rows");
    assert!(rows.iter().all(|row| row["completed"] == 10), "{value:#}");
    assert!(rows.is_sorted_by_key(|row| row["latency_ns"]["p50"].as_u64()));
}

#[test]
fn unsupported_operations_are_refused_with_the_supported_ones() {
    for (words, expected) in [
        ("pair --op amo", "available: put, get"),
        ("pair --op allreduce", "available: put, get"),
        (
            "pair --op shmem",
            "possible values: put, get, amo, send, allreduce, barrier, eureka",
        ),
        ("aries-pair --op amo --bytes 16", "--bytes 16: an atomic"),
        (
            "aries-pair --op put --bytes 8,4000M",
            "--bytes 4194304000: ",
        ),
        (
            "aries-3x4 --op put --traffic shuffle --participants 3",
            "--traffic shuffle: ",
        ),
        ("pair --op put --from r1-0", "--from r1-0 is not"),
        ("aries-pair --op put --load 0.3", "cannot be used with"),
        ("aries-pair --op put --routing minimal", "accept --metres"),
        ("aries-pair --op put --nics 2", "--nics applies only"),
        (
            "aries-pair --op put --from nic7",
            "--from nic7: aries-pair has no node `nic7`",
        ),
        ("aries-pair --op put --to nic7", "--to nic7: "),
        (
            "aries-pair --op put --from nic1",
            "--from and --to: nic1 cannot send to itself",
        ),
        ("pair --op put --processes 2", "no times of hosts"),
        (
            "aries-pair --op send --processes 2",
            "does not apply to sends",
        ),
        (
            "t3e-2x2x2 --op send",
            "available: put, get, amo, barrier, eureka",
        ),
        (
            "pair --op put --traffic group-adversarial",
            "group-adversarial: the network interfaces of pair",
        ),
        (
            "aries-pair --op barrier --bytes 8",
            "--bytes does not apply",
        ),
        (
            "aries-pair --op barrier --nics 3",
            "has 2 network interfaces",
        ),
        ("aries-pair --op barrier --nics 1", "at least 2"),
        ("aries-3x4 --op put --participants 2", "--traffic"),
        (
            "aries-3x4 --op put --traffic uniform --participants 1",
            "among 1 network interfaces",
        ),
        (
            "aries-pair --op put --record-every 5",
            "cannot be used with",
        ),
        ("aries-pair --op put --count 10000001", "10000000"),
        ("aries-pair --op put --bytes 8..64", "FROM..TO:xFACTOR"),
        ("aries-pair --bytes 8", "--op"),
    ] {
        let output = sim(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && output.stdout.is_empty(),
            "{words}"
        );
        assert!(said.contains(expected), "{words}: {said}");
    }
}
