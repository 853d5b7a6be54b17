//! The maximum load of a traffic pattern that a torus can carry.
//!
//! All sources send at the same rate, so the most loaded link bounds the load at which every source
//! is served. For packets that do not adapt the bound is exact, since their paths are known; for
//! adaptive packets it follows from their [best division](Division) over the paths. Processors'
//! links count like any other. Above the bound, sources whose packets avoid the most loaded links
//! may still send more, so the average throughput may exceed the bound.

use super::build::{SimulatedTorus, destinations};
use super::{T3e, T3eOptions};
use crate::route::division::{Division, RoutedMachine};
use crate::route::load::Flow;
use crate::topology::Torus;
use phitwire::sim::direct::config::{Config, ConfigError};
use phitwire::sim::direct::model::CycleModel as _;

/// Traffic between processors per message of each source, in flits.
struct Flows {
    /// Flows between routers: node, logical processor, flits.
    between: Vec<Flow>,
    /// The maximum load on a processor's link, in either direction.
    own: f64,
    /// Flits of a message, including its reply.
    message: f64,
}

fn flows(topology: &Torus, config: &Config, options: &T3eOptions) -> Result<Flows, ConfigError> {
    let traffic = &config.traffic;
    let (numbers, to) = destinations(topology, config)?;
    let commands = options.operation.commands(traffic.message_bytes);
    let [request, reply] = commands.map(|command| command.flits() as f64);
    let reply = if traffic.request_reply { reply } else { 0.0 };
    let mut between = Vec::new();
    let (mut sent, mut received) = (vec![0.0; numbers.len()], vec![0.0; numbers.len()]);
    let mut add = |from: usize, to: usize, flits: f64| {
        sent[from] += flits;
        received[to] += flits;
        if flits > 0.0 && from != to {
            let node = topology.destinations()[numbers[from] as usize];
            between.push((node, numbers[to], flits));
        }
    };
    for from in 0..numbers.len() {
        for (to, share) in to.shares(from as u64) {
            add(from, to as usize, share * request);
            add(to as usize, from, share * reply);
        }
    }
    Ok(Flows {
        between,
        own: sent.into_iter().chain(received).fold(0.0, f64::max),
        message: request + reply,
    })
}

/// See [`CycleModel::bound`](phitwire::sim::direct::CycleModel::bound). Adaptive packets are
/// divided over paths only in full tori: with partial planes, paths between two nodes differ in
/// length.
pub(super) fn bound(
    topology: &Torus,
    config: &Config,
    options: &T3eOptions,
) -> Result<Option<f64>, ConfigError> {
    config.validate(T3e::MAX_MESSAGE_BYTES)?;
    let SimulatedTorus(torus, _) = SimulatedTorus::new(topology, options);
    let routes = torus.routes().map_err(|_| ConfigError::Topology)?;
    let routed = RoutedMachine {
        shape: torus.shape(),
        broken: &routes.broken,
        registers: &routes.registers,
        tables: &routes.tables,
    };
    let Flows {
        between,
        own,
        message,
    } = flows(&torus, config, options)?;
    let fullest = match torus.is_adaptive() {
        false => routed.fixed(&between).map(|loads| loads.most()),
        true if !torus.shape().partial().is_empty() => return Ok(None),
        true => routed.divide(&between).map(|Division { least, .. }| least),
    };
    let fullest = fullest.map_err(|_| ConfigError::Topology)?.max(own);
    Ok(Some((message / fullest).min(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycle::Operation;
    use crate::topology::TorusSpec;
    use phitwire::net::Describe as _;
    use phitwire::sim::direct::Traffic;

    fn torus(size: &str) -> Torus {
        Torus::generate(&format!("t3e-{size}")).unwrap().unwrap()
    }

    fn config(pattern: &str) -> Config {
        Config {
            traffic: Traffic {
                pattern: pattern.parse().unwrap(),
                message_bytes: 64,
                ..Traffic::default()
            },
            ..Config::default()
        }
    }

    fn of(torus: &Torus, pattern: &str, adaptive: bool) -> f64 {
        let options = T3eOptions {
            adaptive: Some(adaptive),
            ..T3eOptions::default()
        };
        bound(torus, &config(pattern), &options).unwrap().unwrap()
    }

    /// Reference values computed for this project: see `route/load.rs`, which counts them without
    /// the simulator's patterns.
    #[test]
    fn deterministic_ways_have_the_bounds_that_are_known() {
        let torus = torus("8x8x8");
        for (pattern, most) in [
            ("grid-transpose", 4.0),
            ("grid-reversal", 4.0),
            ("grid-rotation", 7.0),
            ("grid-complement", 8.0),
            ("grid-tornado", 3.0),
            ("grid-opposite", 2.0),
            ("grid-bit-reverse", 10.0),
            ("grid-shuffle", 6.0),
            ("uniform", 512.0 / 511.0),
        ] {
            let bound = of(&torus, pattern, false);
            assert!((bound * most - 1.0).abs() < 1e-9, "{pattern} {bound}");
        }
        // The larger Y dimension doubles the load of the Y links.
        let bound = of(&self::torus("8x16x8"), "uniform", false);
        assert!((bound - 0.5 * 1023.0 / 1024.0).abs() < 1e-9, "{bound}");
    }

    #[test]
    fn packets_that_may_adapt_can_be_divided_better() {
        let large = torus("8x8x8");
        let pattern = "grid-rotation";
        let [fixed, divided] = [false, true].map(|adaptive| of(&large, pattern, adaptive));
        assert!(divided > 1.3 * fixed, "{pattern} {divided} of {fixed}");
        // All of these links are equally full, or all packets have only one path.
        for (torus, pattern) in [(&torus("4x4x4"), "uniform"), (&large, "grid-tornado")] {
            let [fixed, divided] = [false, true].map(|adaptive| of(torus, pattern, adaptive));
            assert!(
                (divided - fixed).abs() < 1e-9,
                "{pattern} {divided} {fixed}"
            );
        }
    }

    #[test]
    fn answers_and_processors_links_count() {
        let torus = torus("4x1x1");
        let bound = |pattern: &str, operation, reply, bytes| {
            let mut config = config(pattern);
            config.traffic.message_bytes = bytes;
            config.traffic.request_reply = reply;
            let options = T3eOptions {
                operation,
                adaptive: Some(false),
                ..T3eOptions::default()
            };
            super::bound(&torus, &config, &options).unwrap().unwrap()
        };
        // Every link carries the requests of one neighbour; responses use another link.
        assert_eq!(bound("neighbour", Operation::Put, false, 64), 1.0);
        // Ten flits go to the neighbour on one link, and two on the other; a processor sends both.
        assert_eq!(bound("neighbour", Operation::Put, true, 64), 1.0);
        // All processors send to one: the limit is the requests of three sources, or the responses
        // to them.
        let hot = |operation, reply| bound("hotspot:0:100", operation, reply, 64);
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        near(hot(Operation::Put, false), 1.0 / 3.0);
        // The hot spot is also a source: each of the others gets a third, and responds to it.
        near(hot(Operation::Put, true), 12.0 / (3.0 * 10.0 + 2.0));
        near(hot(Operation::Get, true), 12.0 / (3.0 * 10.0 + 2.0));
    }

    #[test]
    fn no_division_is_better_than_the_bound() {
        let torus = torus("4x4x4");
        let routes = torus.routes().unwrap();
        let routed = RoutedMachine {
            shape: torus.shape(),
            broken: &routes.broken,
            registers: &routes.registers,
            tables: &routes.tables,
        };
        for pattern in [
            "grid-transpose",
            "grid-rotation",
            "grid-complement",
            "uniform",
        ] {
            let flows = flows(&torus, &config(pattern), &T3eOptions::default()).unwrap();
            let Division { least, found } = routed.divide(&flows.between).unwrap();
            assert!(least <= found * (1.0 + 1e-9), "{pattern}: {least} {found}");
            assert!(found <= 1.06 * least, "{pattern}: {least} {found}");
            let fixed = routed.fixed(&flows.between).unwrap().most();
            assert_eq!(
                found < 0.95 * fixed,
                pattern != "uniform",
                "{pattern}: {found} of {fixed}"
            );
        }
        // The best division between two nodes mirrored at the diagonal is half and half.
        let flows = flows(&torus, &config("grid-transpose"), &T3eOptions::default()).unwrap();
        let Division { least, found } = routed.divide(&flows.between).unwrap();
        assert!(least > 4.9 && found < 5.1, "{least} {found}");
    }

    #[test]
    fn partial_planes_bound_deterministic_packets_only() {
        let spec = TorusSpec::new("4x4x2+2x4x1".parse().unwrap());
        let torus = spec.torus();
        let config = config("uniform");
        let of = |adaptive| {
            let options = T3eOptions {
                adaptive: Some(adaptive),
                ..T3eOptions::default()
            };
            bound(&torus, &config, &options).unwrap()
        };
        assert!(of(false).is_some_and(|bound| bound > 0.3 && bound <= 1.0));
        assert_eq!(of(true), None);
    }
}
