//! `phitwire-msgrate` over a lab of the toy machine: routers and network interfaces as processes,
//! joined by UDP on loopback.

use std::process::Command;

use crate::lab::Lab;
use serde_json::Value;

/// Messages of each sender.
const COUNT: u64 = 2_000;

#[test]
fn the_message_rate_of_a_ring_is_measured() {
    let network = phitwire::machine::generate("ring-3").expect("the toy is a machine");
    let network = network.expect("there is such a ring");
    let mut lab = Lab::new(env!("CARGO_BIN_EXE_phitwire"), &network.write(), 18);
    for name in network.node_names() {
        lab.start_with(&name, " --first");
    }
    lab.wait(&format!(" --topology {}", lab.file()));
    let count = COUNT.to_string();
    for op in ["put", "get"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_phitwire-msgrate"));
        command
            .args(["--lab", "t", "--json", "--size", "8,32"])
            .args(["--window", "32", "--op", op, "--count", &count])
            .env("PHITWIRE_RUN_DIR", lab.run_dir());
        let output = command.output().expect("the tool can be started");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{op}: {complaint}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("it speaks JSON");
        assert_eq!(report.as_array().map(Vec::len), Some(2), "{report}");
        for (outcome, size) in report.as_array().into_iter().flatten().zip([8, 32]) {
            assert_eq!(outcome["size"], size);
            assert_eq!(outcome["acknowledged"], 6 * COUNT, "{outcome}");
            assert!(
                outcome["messages_per_second"].as_f64() > Some(100.0),
                "{outcome}"
            );
        }
    }
}
