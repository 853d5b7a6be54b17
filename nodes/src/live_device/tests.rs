//! Tests of claims on a node, and of faults.

use phitwire::net::Runtime;
use phitwire::nic::{TrafficPattern, TrafficSpec};
use serde_json::{Value, json};

use super::*;
use crate::control::{Code, Holder, Refusal, Request, RunKind};

const NOW: Time = Time::ZERO;

/// A NIC whose link has no peer.
fn device() -> LiveDevice {
    let network = phitwire_machines::CATALOGUE
        .generate("r1-32")
        .expect("a name")
        .expect("a valid configuration");
    let nic = network.device("nic0", &Runtime::new("lab", 1), NOW);
    LiveDevice::new(nic.expect("a valid NIC"), 1)
}

fn claim(device: &mut LiveDevice, client: ClientId) -> Result<Value, Refusal> {
    let holder = Holder {
        tool: "tool".to_owned(),
        pid: client as u32,
    };
    device.answer(NOW, client, Request::Claim(holder))
}

fn start(device: &mut LiveDevice, client: ClientId, run: u64) -> Result<Value, Refusal> {
    let destinations = vec![1];
    let spec = Box::new(TrafficSpec {
        run,
        pattern: TrafficPattern::List { destinations },
        ..TrafficSpec::default()
    });
    let answer = device.answer(NOW, client, Request::TrafficStart { spec });
    device.advance(NOW);
    answer
}

fn phase(device: &mut LiveDevice, run: Option<u64>) -> Value {
    let report = device.answer(NOW, 99, Request::TrafficStatus { run });
    report.expect("the run exists")["phase"].clone()
}

#[test]
fn a_claim_lasts_until_the_connection_ends() {
    let mut device = device();
    assert_eq!(claim(&mut device, 1), Ok(json!({ "latest_run": 0 })));
    assert_eq!(claim(&mut device, 1), Ok(json!({ "latest_run": 0 })));
    for refused in [claim(&mut device, 2), start(&mut device, 2, 5)] {
        let refusal = refused.expect_err("another client holds it");
        assert_eq!(refusal.code, Some(Code::Taken));
        assert_eq!(refusal.text, "tool (process 1) holds this NIC");
    }
    start(&mut device, 1, 5).expect("the holder may start");
    // The disconnect of another client changes nothing.
    device.client_gone(NOW, 2);
    device.advance(NOW);
    assert_eq!(phase(&mut device, None), "opening");
    assert!(claim(&mut device, 2).is_err());

    device.client_gone(NOW, 1);
    device.advance(NOW);
    assert_eq!(
        phase(&mut device, Some(5)),
        "draining",
        "the run ends on its own"
    );
    let refusal = claim(&mut device, 2).expect_err("its last responses are pending");
    assert_eq!(refusal.code, Some(Code::Ending));
    assert_eq!(refusal.run, Some((RunKind::Traffic, 5)));
    assert!(
        refusal
            .text
            .contains("whose holder tool (process 1) has disconnected"),
        "{refusal}"
    );
}

#[test]
fn a_run_without_a_holder_blocks_claims() {
    let mut device = device();
    start(&mut device, 1, 5).expect("no client holds it");
    device.client_gone(NOW, 1);
    device.advance(NOW);
    assert_eq!(
        phase(&mut device, None),
        "opening",
        "a run started by hand continues"
    );
    let refusal = claim(&mut device, 2).expect_err("the run is in the way");
    assert_eq!(refusal.code, Some(Code::Busy));
    assert_eq!(refusal.run, Some((RunKind::Traffic, 5)));
}

#[test]
fn unknown_requests_are_refused_with_a_code() {
    let mut device = device();
    let unknown = device.answer(NOW, 1, Request::TrafficStatus { run: Some(7) });
    assert_eq!(unknown.expect_err("no run").code, Some(Code::UnknownRun));
    let other = device.answer(NOW, 1, Request::Quiesce { hold_ms: 0 });
    assert_eq!(other.expect_err("no router").code, None);
}

#[test]
fn faults_beyond_what_their_help_names_are_refused() {
    let mut device = device();
    let inject = |lane_mask, max_per_64_sets| Fault::Inject {
        port: 0,
        probability: 1,
        lane_mask,
        bit_mask: 1,
        max_per_64_sets,
        seed: 1,
    };
    let lose = |ms| Fault::LoseClock { port: 0, ms };
    for (fault, why) in [
        (lose(60_001), "ms is 60001, but at most 60000 is allowed"),
        (inject(8, 1), "lane_mask is 8, but at most 7 is allowed"),
        (
            inject(7, 65),
            "max_per_64_sets is 65, but at most 64 is allowed",
        ),
    ] {
        let refused = device.answer(Time::ZERO, 1, Request::Fault(fault));
        assert_eq!(refused.expect_err(why).text, why);
    }
    // This link has no sets, so it must refuse the fault even for values in range.
    for fault in [lose(60_000), inject(7, 64)] {
        let refused = device.answer(Time::ZERO, 1, Request::Fault(fault));
        let text = refused.expect_err("the link has no sets").text;
        assert!(!text.contains("at most"), "{text}");
    }
}
