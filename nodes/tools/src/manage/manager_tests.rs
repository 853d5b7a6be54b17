//! Tests with routers that die, refuse or return while tables are being installed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use phitwire::net::NodeRef;
use phitwire_aries::route::registers::RouteTables;
use phitwire_aries::router::digest;
use phitwire_aries::topology::{Dragonfly, DragonflySpec, Shape};
use phitwire_nodes::control::{ClientError, LinkReport, Request, RoutingReport};
use serde_json::{Value, json};

use super::commanded::Commanded;
use super::fleet::Routers;
use super::manager::{Tables, reroute};
use super::report::Status;

/// Routers that execute every command.
struct Obedient {
    network: Dragonfly,
    tables: BTreeMap<u32, Value>,
    quiesced: BTreeSet<u32>,
    dead: BTreeSet<u32>,
    cut: BTreeSet<u32>,
    /// A router that dies once, when it should install tables.
    dies_at_install: Option<u32>,
    asked: Vec<(u32, &'static str)>,
}

pub(super) fn network() -> Dragonfly {
    let spec = DragonflySpec {
        shape: Shape {
            groups: 3,
            chassis: 2,
            blades: 2,
            nics: 1,
        },
        global_links: Some(2),
        ..DragonflySpec::default()
    };
    spec.generate().expect("a good spec")
}

impl Obedient {
    fn new() -> Self {
        let network = network();
        let routed = network.route(&Default::default());
        let tables = routed.registers.iter().enumerate();
        Self {
            tables: tables
                .map(|(router, registers)| {
                    (
                        router as u32,
                        json!(registers.tables.each_ref().map(|of| &**of)),
                    )
                })
                .collect(),
            network,
            quiesced: BTreeSet::new(),
            dead: BTreeSet::new(),
            cut: BTreeSet::new(),
            dies_at_install: None,
            asked: Vec::new(),
        }
    }

    fn links(&self, router: u32) -> Vec<LinkReport> {
        let mut links = Vec::new();
        for (id, link) in self.network.links.iter().enumerate() {
            for (end, other) in [(link.a, link.b), (link.b, link.a)] {
                let peer_is_dead =
                    matches!(other.node, NodeRef::Chip(peer) if self.dead.contains(&peer));
                if end.node == NodeRef::Chip(router) {
                    links.push(LinkReport {
                        port: end.port,
                        link: id as u16,
                        up: !peer_is_dead && !self.cut.contains(&(id as u32)),
                        ..LinkReport::default()
                    });
                }
            }
        }
        links
    }

    fn asked(&self, what: &str) -> usize {
        self.asked
            .iter()
            .filter(|(_, asked)| *asked == what)
            .count()
    }

    fn link_between(&self, a: u32, b: u32) -> u32 {
        let ends = |link: &phitwire_aries::topology::DragonflyLink| {
            (link.a.node, link.b.node) == (NodeRef::Chip(a), NodeRef::Chip(b))
        };
        self.network
            .links
            .iter()
            .position(ends)
            .expect("neighbours") as u32
    }
}

fn gone() -> ClientError {
    ClientError::Io(io::ErrorKind::ConnectionRefused.into())
}

impl Routers for Obedient {
    fn ask_nic(&mut self, _: u32, _: &Request) -> Result<Value, ClientError> {
        Err(gone())
    }

    fn ask(&mut self, router: u32, request: &Request) -> Result<Value, ClientError> {
        let what = match request {
            Request::Quiesce { .. } => "quiesce",
            Request::Install { .. } => "install",
            Request::Release => "release",
            _ => "look",
        };
        if self.dies_at_install == Some(router) && what == "install" {
            self.dead.insert(router);
            self.quiesced.remove(&router);
            self.dies_at_install = None;
        }
        if self.dead.contains(&router) {
            return Err(gone());
        }
        self.asked.push((router, what));
        Ok(match request {
            Request::Links => serde_json::to_value(self.links(router))?,
            Request::Routing => serde_json::to_value(RoutingReport {
                quiesced: self.quiesced.contains(&router),
                drained: true,
                digest: digest(
                    &serde_json::from_value::<[RouteTables; 4]>(self.tables[&router].clone())?
                        .map(Arc::new),
                ),
            })?,
            Request::Tables => self.tables[&router].clone(),
            Request::Install { tables } => {
                self.tables.insert(router, tables.clone());
                json!({})
            }
            Request::Quiesce { .. } => {
                self.quiesced.insert(router);
                json!({})
            }
            Request::Release => {
                self.quiesced.remove(&router);
                json!({})
            }
            _ => {
                return Err(ClientError::Refused(Box::new(
                    "not asked of routers".into(),
                )));
            }
        })
    }
}

const GO_ON: fn() -> bool = || false;

#[test]
fn a_cut_link_is_routed_around_and_comes_back() {
    let mut lab = Obedient::new();
    let network = network();
    let mut tables = Tables::new(&network, &network);
    let intact = lab.tables.clone();
    let report = reroute(
        &mut tables,
        (&mut lab, &Commanded::default()),
        false,
        &GO_ON,
    )
    .expect("routers answer");
    assert_eq!(report.status, Status::NothingToDo);
    assert_eq!(lab.asked("quiesce"), 0, "nobody is disturbed for nothing");

    let green = lab.link_between(0, 1);
    lab.cut.insert(green);
    let plan = reroute(&mut tables, (&mut lab, &Commanded::default()), true, &GO_ON)
        .expect("routers answer");
    assert_eq!(plan.status, Status::Planned);
    assert_eq!(lab.asked("quiesce") + lab.asked("install"), 0);
    let report = reroute(
        &mut tables,
        (&mut lab, &Commanded::default()),
        false,
        &GO_ON,
    )
    .expect("routers answer");
    assert_eq!(report.status, Status::Done);
    assert_eq!(report.failed_links.len(), 1);
    assert_eq!(report.failed_links[0].kind, "green");
    assert_eq!(report.changed_routers, plan.changed_routers);
    assert_eq!(report.disconnected_pairs, 0);
    assert!(report.restored_pairs.is_some_and(|pairs| pairs > 0));
    assert!(lab.quiesced.is_empty());
    assert_ne!(lab.tables, intact);

    lab.cut.clear();
    let report = reroute(
        &mut tables,
        (&mut lab, &Commanded::default()),
        false,
        &GO_ON,
    )
    .expect("routers answer");
    assert_eq!(report.status, Status::Done);
    assert_eq!(lab.tables, intact, "as if nothing had happened");
}

#[test]
fn a_router_that_dies_while_tables_are_installed_is_routed_around_too() {
    let mut lab = Obedient::new();
    let network = network();
    let mut tables = Tables::new(&network, &network);
    let bundle = lab.link_between(0, 1);
    lab.cut.insert(bundle);
    let plan = reroute(&mut tables, (&mut lab, &Commanded::default()), true, &GO_ON)
        .expect("routers answer");
    let victim = plan.changed_routers.last().cloned().expect("some change");
    lab.dies_at_install = lab.network.find(&victim).and_then(|node| match node {
        NodeRef::Chip(router) => Some(router),
        NodeRef::Processor(_) => None,
    });
    let report = reroute(
        &mut tables,
        (&mut lab, &Commanded::default()),
        false,
        &GO_ON,
    )
    .expect("routers answer");
    assert_eq!(report.status, Status::Done);
    assert!(report.rounds >= 2);
    assert_eq!(report.lost_meanwhile[0].name, victim);
    assert_eq!(report.failed_routers[0].name, victim);
    assert_eq!(report.disconnected_pairs, 22, "to and from the dead one");
    assert!(report.disconnected.iter().all(|pair| pair.why == "dead"));
    assert!(lab.quiesced.is_empty(), "everybody was released");
}

#[test]
fn stopping_before_the_installation_releases_all_nodes() {
    let mut lab = Obedient::new();
    let network = network();
    let mut tables = Tables::new(&network, &network);
    let intact = lab.tables.clone();
    lab.cut.insert(lab.link_between(0, 1));
    // The first few polls pass; then Ctrl-C.
    let count = std::cell::Cell::new(0);
    let stop = || {
        count.set(count.get() + 1);
        count.get() > 5
    };
    let report = reroute(&mut tables, (&mut lab, &Commanded::default()), false, &stop)
        .expect("routers answer");
    assert_eq!(report.status, Status::Interrupted);
    assert!(lab.asked("quiesce") > 0, "it had begun");
    assert_eq!(lab.asked("install"), 0);
    assert!(lab.quiesced.is_empty());
    assert_eq!(lab.tables, intact);
    assert!(
        report.text().contains("none have new tables"),
        "{}",
        report.text()
    );
}

#[test]
fn if_no_node_answers_the_error_gives_the_reason() {
    let mut lab = Obedient::new();
    let network = network();
    let mut tables = Tables::new(&network, &network);
    lab.dead.extend(0..12);
    let why = reroute(
        &mut tables,
        (&mut lab, &Commanded::default()),
        false,
        &GO_ON,
    )
    .expect_err("nobody is there");
    assert!(why.contains("refused"), "{why}");
}
