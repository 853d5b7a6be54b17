//! The `phitwire` command: processes start, keep their addresses, reply, and leave no files behind.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use phitwire_blackwidow::topology::{BlackWidowSpec, read, write};
use phitwire_lab::{Lab, wait_for};
use serde_json::Value;

/// Two processors on one router.
fn lab() -> Lab {
    let spec = BlackWidowSpec {
        processors: 2,
        subtree: 2,
        ..BlackWidowSpec::default()
    };
    let topology = spec.generate().expect("a valid specification");
    Lab::new(env!("CARGO_BIN_EXE_phitwire"), &write(&topology), 4)
}

/// A lab with all processes running.
fn started() -> Lab {
    let mut lab = lab();
    nodes(&lab).iter().for_each(|node| lab.start(node));
    lab
}

fn nodes(lab: &Lab) -> Vec<String> {
    let text = fs::read_to_string(lab.file()).unwrap();
    let topology = read("lab.toml", &text).unwrap().topology;
    let chips = topology.chips.iter().map(|chip| chip.name.clone());
    let processors = topology.processors.iter().map(|p| p.name.clone());
    chips.chain(processors).collect()
}

/// Status and output of a command that must fail.
fn refused(mut command: Command) -> (Option<i32>, String) {
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), said)
}

fn terminate(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
}

fn cpu_ticks(child: &Child) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

fn is_empty(path: &Path) -> bool {
    !path.exists() || fs::read_dir(path).unwrap().next().is_none()
}

#[test]
fn a_running_node_excludes_another_until_it_dies_and_leaves_nothing() {
    let mut lab = lab();
    let node = nodes(&lab).remove(0);
    lab.start(&node);
    let pid = lab.processes[0].1.id();
    assert_eq!(lab.ctl_json(&format!("{node} info"))["pid"], pid);

    let (code, text) = refused(lab.run_command(&node, ""));
    assert_eq!(code, Some(1));
    assert!(text.contains("is already running"), "{text}");
    assert!(text.contains(&pid.to_string()), "{text}");

    let mut killed = lab.take(&node);
    terminate(&killed, Signal::SIGKILL);
    killed.wait().unwrap();
    // The socket remains: a killed process cannot clean up.
    assert!(lab.socket(&node).exists());
    lab.start(&node);
    let answers = || lab.ctl(&format!("{node} info")).status.success();
    wait_for(answers, "the second incarnation");
    assert_ne!(lab.ctl_json(&format!("{node} info"))["pid"], pid);

    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut child = lab.take(&node);
        terminate(&child, signal);
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{signal}");
        let mut summary = String::new();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_to_string(&mut summary).unwrap();
        assert!(summary.contains("frames sent"), "{summary}");
        let left = !is_empty(&lab.run_dir());
        assert!(!left, "{signal} left files behind");
        lab.start(&node);
    }
}

#[test]
fn every_command_answers_and_every_refusal_gives_a_reason() {
    let mut lab = lab();
    let nodes = nodes(&lab);
    let (router, nic) = (nodes[0].clone(), nodes[1].clone());
    lab.start(&router);
    lab.start(&nic);
    assert_eq!(lab.ctl_json(&format!("{router} info"))["kind"], "router");
    assert_eq!(lab.ctl_json(&format!("{nic} info"))["kind"], "nic");
    let links = lab.ctl_json(&format!("{router} links"));
    assert_eq!(links.as_array().unwrap().len(), 2);
    let port = links[0]["port"].as_u64().unwrap();
    assert!(lab.ctl_json(&format!("{nic} stats"))["io.frames_sent"].is_u64());
    assert_eq!(lab.ctl_json("all info").as_object().unwrap().len(), 2);

    let id = lab.ctl_json(&format!("{router} get chip.id"))["value"].clone();
    assert_eq!(id, 0x5941_5243);
    let register = format!("tile{port}.table.0.ports");
    lab.ctl_json(&format!("{router} set {register} 0x1"));
    let answer = lab.ctl_json(&format!("{router} get {register}"));
    assert_eq!(answer["value"], 1);
    assert_eq!(answer["hex"], "0x1");
    for fault in [
        format!("lane-noise {port} 1 1/1000"),
        format!("lane-noise {port} 1 0"),
        format!("soft-error {port}"),
        format!("force-retry {port}"),
    ] {
        lab.ctl_json(&format!("{router} fault {fault}"));
    }
    lab.ctl_json(&format!("{nic} offload off"));

    let noise = format!("{router} fault lane-noise {port}");
    for (arguments, word) in [
        (format!("{router} get chip.nothing"), "unknown register"),
        (format!("{router} set chip.id 1"), "read-only"),
        (format!("{nic} get chip.id"), "nic has no register"),
        (format!("{router} fault soft-error 63"), "no link"),
        (format!("{noise} 3 1/2"), "lane 3 does not exist"),
        (format!("{noise} 0 2/1"), "invalid rate"),
        (format!("{router} traffic stop"), "cannot generate traffic"),
        ("nobody info".to_owned(), "nodes of this lab"),
        ("../x info".to_owned(), "is not a valid"),
    ] {
        let output = lab.ctl(&arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments}");
        let text = String::from_utf8(output.stderr).unwrap();
        let text = text.replace("\n  │", "");
        assert!(text.contains(word), "{arguments}: {text}");
    }
    let unknown = lab.ctl(&format!("{router} no-such-command"));
    assert_eq!(unknown.status.code(), Some(2));
    let tables = String::from_utf8(lab.ctl("all links").stdout).unwrap();
    assert!(tables.contains("peer") && tables.contains(&nic), "{tables}");
}

#[test]
fn waiting_for_a_link_without_a_peer_names_it_and_the_reason() {
    let mut lab = lab();
    let nodes = nodes(&lab);
    lab.start(&nodes[0]);
    let wait = format!("wait --lab t --timeout 0.3 --topology {}", lab.file());
    let (code, text) = refused(lab.phitwire(&wait));
    assert_eq!(code, Some(1));
    assert!(text.contains(&nodes[1]), "{text}");
    assert!(text.contains("nothing received from"), "{text}");
}

#[test]
fn failed_starts_print_a_remedy() {
    let lab = lab();
    let node = nodes(&lab).remove(0);
    let (code, text) = refused(lab.run_command("nobody", ""));
    assert_eq!(code, Some(1));
    assert!(text.contains("nobody"), "{text}");
    let (_, text) = refused(lab.run_command(&node, " --mtu 90"));
    assert!(text.contains("MTU of 90"), "{text}");
    let file = lab.file();
    let ethernet = format!("run --topology {file} --node {node} --lab t --link ethernet");
    let (code, text) = refused(lab.phitwire(&ethernet));
    assert_eq!(code, Some(1));
    assert!(text.contains("no interface"), "{text}");
    // A failed start must leave nothing behind.
    assert!(is_empty(&lab.run_dir()));
}

/// Sends `count` puts from the first NIC to the second and returns both reports.
fn puts(lab: &Lab, run: u64, count: u64) -> (Value, Value) {
    let nodes = nodes(lab);
    let spec = format!(
        r#"{{"run":{run},"pattern":{{"list":{{"destinations":[1]}}}},"window":256,"count":{count}}}"#
    );
    let (source, target) = (&nodes[1], &nodes[2]);
    lab.ctl_json(&format!("{source} traffic start {spec}"));
    let status = |node: &str| lab.ctl_json(&format!("{node} traffic status {run}"));
    wait_for(|| status(source)["phase"] == "done", "the end of the run");
    (status(source), status(target))
}

#[test]
fn three_processes_move_verified_messages_and_survive_a_crash_of_the_router() {
    let mut lab = started();
    let nodes = nodes(&lab);
    for run in 1..=2 {
        lab.wait(&format!(" --topology {}", lab.file()));
        let (source, target) = puts(&lab, run, 5_000);
        assert_eq!(source["acknowledged"], 5_000, "{source}");
        assert_eq!(target["delivered"], 5_000, "{target}");
        for fault in ["corrupted", "duplicated", "misordered", "missing"] {
            assert_eq!(target[fault], 0, "{fault}: {target}");
        }
        if run == 1 {
            let mut router = lab.take(&nodes[0]);
            terminate(&router, Signal::SIGKILL);
            router.wait().unwrap();
            lab.start(&nodes[0]);
        }
    }
}

#[test]
fn lane_noise_reaches_the_peer_as_crc_errors_and_nothing_is_lost() {
    let lab = started();
    let nodes = nodes(&lab);
    lab.wait("");
    lab.ctl_json(&format!("{} fault lane-noise 0 1 1/20000", nodes[1]));
    let (source, target) = puts(&lab, 1, 5_000);
    assert_eq!(source["acknowledged"], 5_000);
    assert_eq!(target["delivered"], 5_000);
    assert_eq!(target["corrupted"], 0);
    let stats = lab.ctl_json(&format!("{} stats", nodes[0]));
    let heard = stats["port0.rx_crc_errors"].as_u64();
    assert!(heard.unwrap() > 0, "the noise was heard");
    let lanes = lab.ctl_json(&format!("{} links", nodes[0]))[0]["lane_retries"].clone();
    assert!(lanes[1].as_u64().unwrap() > 0, "{lanes}");
    assert!(lanes[0] == 0 && lanes[2] == 0, "{lanes}");
    lab.ctl_json(&format!("{} fault lane-noise 0 1 0", nodes[1]));
    lab.ctl_json(&format!("{} fault link-down 0", nodes[1]));
    let is_down = || lab.ctl_json(&format!("{} links", nodes[0]))[0]["up"] == false;
    wait_for(is_down, "the link's going down at the other end");
    let why = lab.ctl_json(&format!("{} links", nodes[1]))[0]["why"].clone();
    assert!(why.as_str().unwrap().contains("by command"), "{why}");
    lab.ctl_json(&format!("{} fault link-up 0", nodes[1]));
    lab.wait("");
}

#[test]
fn an_idle_process_sleeps() {
    let lab = started();
    lab.wait("");
    // A deadline left over from a busy period would keep a process awake.
    puts(&lab, 1, 2_000);
    sleep(Duration::from_secs(1));
    let ticks = lab.processes.iter().map(|(_, child)| cpu_ticks(child));
    let before: Vec<u64> = ticks.collect();
    sleep(Duration::from_secs(3));
    for ((node, child), before) in lab.processes.iter().zip(before) {
        let ticks = cpu_ticks(child) - before;
        // Limit: 1 % of 3 s, which is 3 ticks of 10 ms.
        assert!(ticks <= 3, "{node} used {ticks} ticks in 3 s");
    }
}
