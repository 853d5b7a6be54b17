//! Tests of loading channel tables into simulated routers.

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::machines::machines;
use phitwire::net::{Network, NodeRef, RegisterValue};

use super::channels::{How, LINKS_UNSEEN, LoadError, Loaded, Registers, load};

/// Registers, by router and name.
#[derive(Default)]
struct Lab {
    held: BTreeMap<(u32, String), u64>,
    /// A router that does not reply.
    silent: Option<u32>,
    /// A router, and the number of requests to which it replies too late.
    late: Option<(u32, usize)>,
    /// A register that ignores writes.
    stuck: Option<(u32, &'static str)>,
    written: usize,
}

impl Registers for Lab {
    fn ask(&mut self, router: u32, register: &str, value: Option<u64>) -> Result<u64, String> {
        if self.silent == Some(router) {
            return Err(String::from("it does not answer"));
        }
        if let Some((late, requests @ 1..)) = &mut self.late
            && *late == router
        {
            *requests -= 1;
            return Err(String::from("it answers too late"));
        }
        let held = self.held.entry((router, register.to_owned())).or_default();
        if let Some(value) = value {
            self.written += 1;
            if self.stuck != Some((router, register)) {
                *held = value;
            }
            return Ok(value);
        }
        Ok(*held)
    }
}

/// Options for a load that no signal interrupts.
fn how(doubt: Option<String>, force: bool) -> How<'static> {
    let stop = &|| false;
    How { doubt, force, stop }
}

fn ring() -> Box<dyn Network> {
    let ring = machines().generate("t3e-8x1x1").expect("a name");
    ring.expect("a ring")
}

/// The ring, with packets that change channels at the dateline.
fn ring_of_zeros() -> Box<dyn Network> {
    let text =
        "family = \"t3e\"\nname = \"x\"\nsize = \"8x1x1\"\nchannels = \"time-of-crossing\"\n";
    machines()
        .read("x.toml", text)
        .unwrap_or_else(|problems| panic!("{}", problems.lines()))
}

/// A file in which every table is `table`.
fn tables(network: &dyn Network, table: &str) -> Vec<RegisterValue> {
    let all = [table; 8];
    let text = format!(
        "[[vc_tables]]\ndimensions = [\"X\"]\nordinates = [0, 1, 2, 3, 4, 5, 6, 7]\ndatelines = [0, 7]\n\
         plus = {all:?}\nminus = {all:?}\n"
    );
    let tunable = network.tunable_channels().expect("it has tables");
    let read = tunable.read_channel_tables("t.toml", text.as_bytes());
    read.unwrap_or_else(|problems| panic!("{}", problems.lines()))
}

/// Loads the initial tables of the routers into a lab.
fn begin(lab: &mut Lab, doubt: Option<&str>, force: bool) -> Result<Loaded, LoadError> {
    let network = ring();
    let tunable = network.tunable_channels().expect("it has tables");
    let new = tunable.channel_tables().expect("tables");
    let doubt = doubt.map(str::to_owned);
    load((&*network, tunable), &new, lab, how(doubt, force))
}

fn load_all(lab: &mut Lab, table: &str, force: bool) -> Result<Loaded, LoadError> {
    let network = ring();
    let tunable = network.tunable_channels().expect("it has tables");
    let new = tables(&*network, table);
    load((&*network, tunable), &new, lab, how(None, force))
}

#[test]
fn only_differences_are_written_and_all_registers_are_read_back() {
    let mut lab = Lab::default();
    let loaded = begin(&mut lab, None, false).expect("they are right");
    assert_eq!((loaded.registers, loaded.routers), (16, 8));
    assert_eq!(loaded.changed.len(), lab.written);
    assert!(lab.written > 8 && loaded.is_whole(), "{loaded:?}");
    for changed in &loaded.changed {
        assert_eq!(changed.before, Some(0));
        let router = changed.router[1..].parse().expect("a number");
        let register = (router, changed.register.clone());
        assert_eq!(lab.held.get(&register), Some(&changed.after));
    }
    let again = begin(&mut lab, None, false).expect("they are right");
    assert_eq!(again.changed, []);
    assert!(
        again
            .text()
            .contains("16 tables of 8 routers, 0 changed, 16 read back")
    );
}

#[test]
fn tables_with_a_cycle_are_loaded_by_force_only() {
    let mut lab = Lab::default();
    let refused = load_all(&mut lab, "11111111", false).expect_err("a circle");
    assert!(refused.to_string().contains("X VC1"), "{refused}");
    assert_eq!(lab.written, 0);
    let forced = load_all(&mut lab, "11111111", true).expect("forced");
    assert_eq!((forced.changed.len(), lab.written), (16, 16));
    assert!(
        forced
            .text()
            .contains("forced despite: possible deadlock: packets can wait"),
        "{}",
        forced.text()
    );
    // Correct tables can then be loaded without force.
    let right = load_all(&mut lab, "00000000", false).expect("no circle");
    assert_eq!((right.changed.len(), right.forced), (16, None));
}

#[test]
fn unchecked_tables_are_loaded_by_force_only() {
    let mut lab = Lab::default();
    let refused = begin(&mut lab, Some("links have failed"), false);
    assert_eq!(
        refused,
        Err(LoadError::Unsafe(String::from("links have failed")))
    );
    assert_eq!(lab.written, 0);
    let forced = begin(&mut lab, Some("links have failed"), true).expect("forced");
    assert_eq!(forced.forced.as_deref(), Some("links have failed"));
}

#[test]
fn routers_that_do_not_answer_or_obey_are_named() {
    let mut lab = Lab {
        silent: Some(3),
        ..Lab::default()
    };
    let refused = begin(&mut lab, None, false).expect_err("one is silent");
    assert!(
        matches!(&refused, LoadError::Unread { router, .. } if router == "r3"),
        "{refused}"
    );
    assert_eq!(lab.written, 0);
    let forced = begin(&mut lab, None, true).expect("forced");
    assert!(!forced.is_whole());
    let failed: Vec<_> = forced.failed.iter().map(|failed| &*failed.router).collect();
    assert_eq!(failed, ["r3", "r3"]);
    let mut lab = Lab {
        stuck: Some((5, "vc_table.3")),
        ..Lab::default()
    };
    let loaded = load_all(&mut lab, "11111111", true).expect("forced");
    assert_eq!(loaded.failed.len(), 1);
    let failed = &loaded.failed[0];
    assert_eq!((&*failed.router, &*failed.register), ("r5", "vc_table.3"));
    assert_eq!(failed.why, "register holds 0x00, expected 0xff");
    assert!(
        loaded
            .text()
            .contains("failed: r5 vc_table.3: register holds"),
        "{}",
        loaded.text()
    );
}

#[test]
fn unread_registers_are_always_written() {
    let zeros = ring_of_zeros();
    let tunable = zeros.tunable_channels().expect("it has tables");
    let new = tunable.channel_tables().expect("tables");
    assert!(new.iter().all(|wanted| wanted.value == 0));
    let mut lab = Lab {
        late: Some((3, 2)),
        ..Lab::default()
    };
    let wrong = (3, String::from("vc_table.3"));
    lab.held.insert(wrong.clone(), 0xff);
    let loaded = load((&*zeros, tunable), &new, &mut lab, how(None, true)).expect("forced");
    assert!(loaded.is_whole(), "{loaded:?}");
    // The load writes exactly the two tables of the router.
    assert_eq!((lab.written, lab.held[&wrong]), (2, 0));
    let changed: Vec<_> = loaded
        .changed
        .iter()
        .map(|changed| (&*changed.router, &*changed.register, changed.before))
        .collect();
    assert_eq!(
        changed,
        [("r3", "vc_table.0", None), ("r3", "vc_table.3", None)]
    );
    assert!(loaded.text().contains("r3 vc_table.3: unread -> 0x00"));
    let json = serde_json::to_value(&loaded).expect("JSON");
    assert!(json["changed"][1]["before"].is_null());
}

#[test]
fn a_report_lists_what_was_not_examined() {
    let loaded = begin(&mut Lab::default(), None, false).expect("they are right");
    assert!(!loaded.text().contains(LINKS_UNSEEN));
    let loaded = Loaded {
        unseen: Some(LINKS_UNSEEN),
        ..loaded
    };
    assert!(loaded.text().contains(LINKS_UNSEEN), "{}", loaded.text());
    let json = serde_json::to_value(&loaded).expect("JSON");
    assert_eq!(json["unseen"], LINKS_UNSEEN);
}

/// Routers that never reply, with the number of requests so far.
#[derive(Default)]
struct Nobody(usize);

impl Registers for Nobody {
    fn ask(&mut self, _: u32, _: &str, _: Option<u64>) -> Result<u64, String> {
        self.0 += 1;
        Err(String::from("it does not answer"))
    }
}

#[test]
fn silent_routers_are_given_up() {
    let network = ring();
    let tunable = network.tunable_channels().expect("it has tables");
    let new = tables(&*network, "00000000");
    let mut nobody = Nobody::default();
    let loaded = load((&*network, tunable), &new, &mut nobody, how(None, true)).expect("forced");
    assert_eq!((loaded.failed.len(), nobody.0), (16, 12));
}

#[test]
fn an_interrupted_load_is_reported() {
    let network = ring();
    let tunable = network.tunable_channels().expect("it has tables");
    let new = tables(&*network, "00000000");
    let mut lab = Lab::default();
    for wanted in &new {
        if let NodeRef::Chip(router) = wanted.node {
            lab.held.insert((router, wanted.register.clone()), 0x01);
        }
    }
    // Each register is requested when it is read and when it is written.
    let asked = Cell::new(0);
    let stop = || asked.replace(asked.get() + 1) > 16 + 5;
    let how = How {
        stop: &stop,
        ..how(None, true)
    };
    let loaded = load((&*network, tunable), &new, &mut lab, how).expect("forced");
    assert!(loaded.interrupted && !loaded.is_whole());
    assert_eq!(loaded.changed.len(), lab.written);
    assert!((1..16).contains(&lab.written), "{}", lab.written);
    assert!(loaded.text().contains("interrupted"), "{}", loaded.text());
    let nothing = How {
        doubt: None,
        force: true,
        stop: &|| true,
    };
    let written = lab.written;
    let refused = load((&*network, tunable), &new, &mut lab, nothing);
    assert!(
        matches!(refused, Err(LoadError::Interrupted)),
        "{refused:?}"
    );
    assert_eq!(lab.written, written);
}

#[test]
fn a_cycle_in_the_old_tables_is_reported() {
    let mut lab = Lab::default();
    let loaded = begin(&mut lab, None, false).expect("they are right");
    assert_eq!(loaded.circle_before, None);
    load_all(&mut lab, "11111111", true).expect("forced");
    let loaded = begin(&mut lab, None, true).expect("forced");
    assert!(loaded.circle_before.is_some());
    assert!(
        loaded.text().contains("more than new tables"),
        "{}",
        loaded.text()
    );
}
