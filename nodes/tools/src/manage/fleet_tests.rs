//! Tests with stalled routers behind real sockets.

use std::fs::{DirBuilder, create_dir, hard_link, read_dir, rename};
use std::os::unix::fs::DirBuilderExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use phitwire::net::NodeRef;
use phitwire_aries::topology::Dragonfly;
use phitwire_nodes::control::server::Server;
use phitwire_nodes::control::{Client, Request, RoutingReport};
use phitwire_nodes::run_dir::LabDir;
use serde_json::{Value, json};

use super::commanded::Commanded;
use super::fleet::{Fleet, PATIENCE, PATIENCE_ONCE};
use super::manager_tests::network;
use super::survey::Survey;

/// Three routers, one per group, that are not served while `stopped` is set.
const STILL: [u32; 3] = [1, 5, 9];

struct Lab {
    network: Dragonfly,
    dir: LabDir,
    stopped: Arc<AtomicBool>,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    _scratch: tempfile::TempDir,
}

fn answer(request: Request) -> Result<Value, String> {
    match request {
        Request::Links => Ok(json!([])),
        Request::Routing => {
            serde_json::to_value(RoutingReport::default()).map_err(|e| e.to_string())
        }
        other => Err(format!("no {other:?}")),
    }
}

impl Lab {
    fn new() -> Self {
        let scratch = tempfile::tempdir().expect("a directory");
        let run = scratch.path().join("run");
        DirBuilder::new()
            .mode(0o700)
            .create(&run)
            .expect("a directory");
        let dir = LabDir::below(&run, "lab").expect("a good name");
        if !dir.path().exists() {
            create_dir(dir.path()).expect("a directory");
        }
        let network = network();
        let mut servers: Vec<_> = network
            .routers()
            .map(|router| {
                let name = network.node_name(NodeRef::Chip(router));
                let path = dir.socket(&name).expect("a good name");
                (router, Server::bind(&path, &[]).expect("a socket"))
            })
            .collect();
        let (stopped, end) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicBool::new(false)),
        );
        let (stands, over) = (stopped.clone(), end.clone());
        let thread = thread::spawn(move || {
            while !over.load(Ordering::SeqCst) {
                for (router, server) in &mut servers {
                    if !(stands.load(Ordering::SeqCst) && STILL.contains(router)) {
                        server
                            .serve(|_, request| answer(request))
                            .expect("it serves");
                    }
                }
                thread::sleep(Duration::from_micros(200));
            }
        });
        Self {
            network,
            dir,
            stopped,
            end,
            thread: Some(thread),
            _scratch: scratch,
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.end.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Takes a survey. Returns the silent routers and how long it took.
fn survey(lab: &Lab, fleet: &mut Fleet) -> (Vec<u32>, Duration) {
    let start = Instant::now();
    let survey = Survey::take(&lab.network, fleet, &Commanded::default());
    (survey.silent.keys().copied().collect(), start.elapsed())
}

#[test]
fn routers_that_stand_still_are_waited_for_together_and_once() {
    let lab = Lab::new();
    for asked_before in [true, false] {
        let mut fleet = Fleet::new(lab.dir.clone(), &lab.network).expect("there is one");
        lab.stopped.store(false, Ordering::SeqCst);
        if asked_before {
            assert_eq!(survey(&lab, &mut fleet).0, [0; 0]);
        }
        lab.stopped.store(true, Ordering::SeqCst);
        let (silent, took) = survey(&lab, &mut fleet);
        assert_eq!(silent, STILL);
        assert!(
            took >= PATIENCE && took < PATIENCE + Duration::from_millis(250),
            "within a second, with the interval: {took:?}"
        );
        // Do not reconnect to a stalled process: hundreds of connections would fill its queue.
        let start = Instant::now();
        for _ in 0..300 {
            assert_eq!(survey(&lab, &mut fleet).0, STILL);
        }
        let took = start.elapsed();
        assert!(took < Duration::from_secs(10), "waited again: {took:?}");
        lab.stopped.store(false, Ordering::SeqCst);
        let start = Instant::now();
        while !survey(&lab, &mut fleet).0.is_empty() {
            assert!(
                start.elapsed() < Duration::from_secs(5),
                "not taken in again"
            );
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A one-shot command does not poll again, so a router that was only busy must not count as dead.
#[test]
fn a_single_survey_waits_for_busy_routers() {
    for (patience, silent) in [(PATIENCE, &STILL[..]), (PATIENCE_ONCE, &[])] {
        let lab = Lab::new();
        let fleet = Fleet::new(lab.dir.clone(), &lab.network).expect("there is one");
        lab.stopped.store(true, Ordering::SeqCst);
        let stopped = lab.stopped.clone();
        let busy = thread::spawn(move || {
            thread::sleep(2 * PATIENCE);
            stopped.store(false, Ordering::SeqCst);
        });
        assert_eq!(survey(&lab, &mut fleet.patient(patience)).0, silent);
        busy.join().expect("it only sleeps");
    }
}

/// The lab is taken down, and another with other tables gets its name.
#[test]
fn routers_of_the_next_lab_of_that_name_are_not_asked() {
    let lab = Lab::new();
    let asked_before = |fleet: &mut Fleet| assert_eq!(survey(&lab, fleet).0, [0; 0]);
    let mut fleet = Fleet::new(lab.dir.clone(), &lab.network).expect("there is one");
    asked_before(&mut fleet);
    let mut fresh = Fleet::new(lab.dir.clone(), &lab.network).expect("there is one");
    let old = lab.dir.path().with_extension("old");
    rename(lab.dir.path(), &old).expect("nobody minds");
    create_dir(lab.dir.path()).expect("the name is free");
    for entry in read_dir(&old).expect("it is there") {
        let socket = entry.expect("a socket").path();
        let name = socket.file_name().expect("it has one");
        hard_link(&socket, lab.dir.path().join(name)).expect("the same file system");
    }
    let everybody: Vec<u32> = lab.network.routers().collect();
    assert_eq!(survey(&lab, &mut fresh).0, everybody);
    let mut next = Fleet::new(lab.dir.clone(), &lab.network).expect("there is one");
    asked_before(&mut next);
}

/// A router that closed an idle connection to make room must not count as dead.
#[test]
fn a_closed_connection_is_reopened() {
    let lab = Lab::new();
    let mut fleet = Fleet::new(lab.dir.clone(), &lab.network).expect("there is one");
    assert_eq!(survey(&lab, &mut fleet).0, [0; 0]);
    let router = lab.network.node_name(NodeRef::Chip(0));
    let path = lab.dir.socket(&router).expect("a good name");
    let connect = || Client::connect_to(&path).expect("somebody listens");
    let forgotten: Vec<Client> = (0..31).map(|_| connect()).collect();
    // The node closes the longest idle connection to accept one more.
    connect().ask(&Request::Links).expect("it is taken in");
    assert_eq!(survey(&lab, &mut fleet).0, [0; 0]);
    drop(forgotten);
}
