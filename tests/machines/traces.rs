//! Packets traced in virtual time: a known path on an idle network, and under load times that add
//! up to what the terminals measured.

use std::collections::BTreeMap;

use phitwire::device::capability;
use phitwire::net::{End, Hop, Network, NodeRef, PathEnd, Peers, Runtime, TracedPacket};
use phitwire::sim::direct::{
    Config, CycleModel, Found, Load, Message, Serial, Simulation, Traced, Traffic, Warmup,
};
use phitwire::time::Time;
use phitwire::trace::Flow;
use phitwire_aries::cycle::Aries;
use phitwire_blackwidow::cycle::BlackWidow;
use phitwire_machines::CATALOGUE;
use phitwire_t3e::cycle::T3e;

/// The number by which routers know a NIC.
fn routed(network: &dyn Network, node: NodeRef) -> u32 {
    let runtime = Runtime::new("lab", 1);
    let name = network.node_name(node);
    let mut device = network
        .device(&name, &runtime, Time::ZERO)
        .expect("a device");
    device
        .need::<capability::Probing>()
        .expect("it probes")
        .routed_number()
}

/// The first and the last NIC.
fn ends(network: &dyn Network) -> [NodeRef; 2] {
    let nodes = network.nodes();
    let is_nic = |node: &&NodeRef| matches!(node, NodeRef::Processor(_));
    let first = nodes.iter().find(is_nic).expect("a first one");
    let last = nodes.iter().rfind(is_nic).expect("a last one");
    [*first, *last]
}

/// Traces messages of a network under uniform load.
fn run<M: CycleModel>(network: &dyn Network, load: u32, count: usize) -> Found {
    let [from, to] = ends(network);
    let (NodeRef::Processor(source), NodeRef::Processor(target)) = (from, to) else {
        panic!("network interfaces");
    };
    let config = Config {
        traffic: Traffic {
            load: Load::from_millionths(load).expect("a load"),
            request_reply: true,
            ..Traffic::default()
        },
        warmup: Warmup::Cycles(2_000),
        measure_cycles: 20_000,
        traced: Some(Traced {
            from: source,
            to: target,
            flow: Flow {
                from: routed(network, from),
                to: routed(network, to),
            },
            count,
        }),
        ..Config::default()
    };
    let topology = network.of_machine::<M::Topology>().expect("of the machine");
    let options = M::Options::default();
    let mut simulation = Simulation::<M>::new(topology, &config, &options, 2).expect("it is sound");
    let report = simulation.run(&mut Serial, |_| {});
    assert_eq!(report.violations, []);
    simulation.found()
}

/// Checks the path of a traced message or its response. `Ok` has the time spent waiting for others.
/// A link takes the same time for every packet; `links` collects these times.
fn wrong<M: CycleModel>(
    network: &dyn Network,
    (message, found): (&Message, &Found),
    response: bool,
    links: &mut BTreeMap<(End, End), u64>,
) -> Result<(Vec<Hop>, u64), String> {
    let cycle = M::CYCLE.as_ps();
    let [from, to] = ends(network);
    let [from, to] = if response { [to, from] } else { [from, to] };
    let (began, came) = match response {
        false => (Some(message.birth), message.arrived),
        true => (message.arrived, message.answered),
    };
    let (began, came) = began.zip(came).ok_or("it has not arrived")?;
    let packet = TracedPacket {
        from,
        to,
        response,
        identity: if response {
            message.answer_identity
        } else {
            message.identity
        },
        not_before_ps: began * cycle,
        slack_ps: 0,
    };
    let (hops, way) = Peers::of(network).follow(packet, &found.seen);
    // Skip direct links, which acknowledge nothing.
    if way != (PathEnd::LastLink { ended: false }) {
        return Err(format!("{way:?} after {} hops", hops.len()));
    }
    let (mut sum, mut waited, mut before) = (0, 0, None::<(End, u64)>);
    for hop in &hops {
        let passage = &hop.passage;
        let arrived = passage.arrived_ps.ok_or("a hop has no arrival")?;
        let at = End {
            node: hop.router,
            port: passage.port,
        };
        match before {
            None => sum += arrived - began * cycle,
            Some((from, left)) => {
                let took = arrived.checked_sub(left).ok_or("it came before it left")?;
                let usual = *links.entry((from, at)).or_insert(took);
                if usual != took {
                    return Err(format!("a link takes {took} ps, and took {usual} before"));
                }
                sum += took;
            }
        }
        for ((stage, _, both), step) in passage.stays().zip(&passage.steps) {
            let [stay, wait] = both.ok_or("a stage has no times")?;
            // A packet that crosses the router straight, without a turn, bypasses stages.
            let may_be_shorter = stage.ends_with("crossbar");
            if stay < step.least_ps && !may_be_shorter {
                return Err(format!(
                    "{stage} takes {stay} ps, and {} at least",
                    step.least_ps
                ));
            }
            sum += stay;
            waited += wait;
        }
        let departure = passage.departure.ok_or("it has not left")?;
        let port = passage.choices.iter().find(|choice| choice.among == "port");
        let port = port.ok_or("nothing was decided about it")?;
        let is_candidate = port
            .candidates
            .iter()
            .any(|one| one.number == departure.port);
        if port.winner != departure.port && port.winner != u8::MAX || !is_candidate {
            return Err(format!(
                "it left by {}, and {port:?} was decided",
                departure.port
            ));
        }
        let left = passage.left_ps().ok_or("it left at no time")?;
        before = Some((
            End {
                node: hop.router,
                port: departure.port,
            },
            left,
        ));
    }
    let (_, left) = before.ok_or("it has no hops")?;
    sum += came * cycle - left;
    let measured = (came - began) * cycle;
    match sum == measured {
        true => Ok((hops, waited)),
        false => Err(format!(
            "the times add up to {sum} ps, and {measured} were measured"
        )),
    }
}

/// Follows all traced messages of a network at a load, there and back. Returns their number, the
/// number of paths with any waiting, and the number of paths with more waiting than a packet's
/// length at every router.
fn all_add_up<M: CycleModel>(name: &str, load: u32) -> (usize, [usize; 2]) {
    let network = CATALOGUE
        .generate(name)
        .expect("a name")
        .expect("a network");
    let found = run::<M>(&*network, load, 20);
    let mut links = BTreeMap::new();
    let mut waited = [0; 2];
    for message in &found.messages {
        for response in [false, true] {
            let checked = wrong::<M>(&*network, (message, &found), response, &mut links);
            let (hops, wait) = checked.unwrap_or_else(|why| panic!("{name}: {message:?}: {why}"));
            let much = 16 * hops.len() as u64 * M::CYCLE.as_ps();
            waited[0] += usize::from(wait > 0);
            waited[1] += usize::from(wait > much);
        }
    }
    (found.messages.len(), waited)
}

const DRAGONFLY: &str = "aries-3x1x4x2";
const CLOS: &str = "r1-16";
const TORUS: &str = "t3e-3x3x2";

#[test]
fn under_load_the_times_of_stages_add_up_to_the_measured_latency() {
    for (name, (messages, waited)) in [
        (DRAGONFLY, all_add_up::<Aries>(DRAGONFLY, 500_000)),
        (CLOS, all_add_up::<BlackWidow>(CLOS, 500_000)),
        (TORUS, all_add_up::<T3e>(TORUS, 300_000)),
    ] {
        let [some, _] = waited;
        assert!(
            messages >= 5 && some > 0,
            "{name}: {messages} messages, {some} ways waited"
        );
    }
}

#[test]
fn on_an_idle_network_no_packet_waits() {
    for (name, (messages, waited)) in [
        (DRAGONFLY, all_add_up::<Aries>(DRAGONFLY, 20_000)),
        (CLOS, all_add_up::<BlackWidow>(CLOS, 20_000)),
        (TORUS, all_add_up::<T3e>(TORUS, 20_000)),
    ] {
        let [_, much] = waited;
        assert!(
            messages >= 1 && 4 * much <= messages,
            "{name}: {messages}, {much}"
        );
    }
}

/// Canary: the check of the times notices a stage reported too short, and a missing hop.
#[test]
fn times_that_do_not_add_up_are_noticed() {
    let network = CATALOGUE
        .generate(DRAGONFLY)
        .expect("a name")
        .expect("a network");
    let found = run::<Aries>(&*network, 300_000, 3);
    let message = found.messages.first().expect("a message");
    let (hops, _) = wrong::<Aries>(&*network, (message, &found), false, &mut BTreeMap::new())
        .expect("it is sound");
    let spoil = |spoil: &dyn Fn(&mut Vec<phitwire::trace::Passage>)| {
        let mut found = found.clone();
        spoil(found.seen.get_mut(&hops[0].router).expect("it was there"));
        wrong::<Aries>(&*network, (message, &found), false, &mut BTreeMap::new())
    };
    let shorter = spoil(&|passages| {
        for step in passages
            .iter_mut()
            .flat_map(|passage| &mut passage.steps[..1])
        {
            step.left_ps -= step.least_ps;
        }
    });
    assert!(shorter.is_err(), "a stage of no length");
    assert!(
        spoil(&|passages| passages.clear()).is_err(),
        "nobody has seen it"
    );
    let elsewhere = spoil(&|passages| {
        for choice in passages.iter_mut().flat_map(|passage| &mut passage.choices) {
            choice.winner = 39;
        }
    });
    assert!(elsewhere.is_err(), "another port was decided for");
}

#[test]
fn watching_changes_nothing() {
    let network = CATALOGUE
        .generate(DRAGONFLY)
        .expect("a name")
        .expect("a network");
    let topology = network.of_machine().expect("of the machine");
    let [from, to] = ends(&*network);
    let report = |traced| {
        let config = Config {
            warmup: Warmup::Cycles(500),
            measure_cycles: 3_000,
            traced,
            ..Config::default()
        };
        let options = <Aries as CycleModel>::Options::default();
        let simulation = Simulation::<Aries>::new(topology, &config, &options, 1);
        format!(
            "{:?}",
            simulation.expect("it is sound").run(&mut Serial, |_| {})
        )
    };
    let traced = Traced {
        from: 0,
        to: 1,
        flow: Flow {
            from: routed(&*network, from),
            to: routed(&*network, to),
        },
        count: 5,
    };
    assert_eq!(report(None), report(Some(traced)));
}
