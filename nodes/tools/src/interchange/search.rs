//! The search for a network of phitwire that matches a graph.

use std::time::{Duration, Instant};

use crate::machines::machines;
use phitwire::catalogue::{Generator, OptionValues, Outline};
use phitwire::net::Network;

use super::InterchangeError;
use super::graph::{Difference, Graph, Same};

/// Time limit of the search.
const PATIENCE: Duration = Duration::from_secs(20);

/// The network that a graph matches.
#[derive(Debug)]
pub struct Found {
    pub network: Box<dyn Network>,
    /// Generator and options of the network, or its name if it is a bundled one.
    pub name: String,
    /// How the nodes match.
    pub same: Same,
}

/// A network that may match.
enum Candidate {
    Generated(&'static Generator, OptionValues),
    Ready(&'static str, &'static str),
}

impl Candidate {
    fn network(&self) -> Option<Box<dyn Network>> {
        match self {
            Self::Generated(generator, given) => (generator.generate)(given).ok(),
            Self::Ready(name, text) => machines().read(name, text).ok(),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Generated(generator, given) => given
                .one_each()
                .fold(generator.name.to_owned(), |text, (option, value)| {
                    format!("{text} --{option} {value}")
                }),
            Self::Ready(name, _) => (*name).to_owned(),
        }
    }
}

/// Generated networks that may have this outline, those with few options first, then the bundled
/// ones.
fn candidates(outline: &Outline) -> impl Iterator<Item = Candidate> {
    let generators = machines()
        .machines()
        .iter()
        .flat_map(|machine| machine.generators);
    let sizes = generators.flat_map(|generator| {
        let sizes = (generator.sizes)(outline).into_iter();
        sizes.map(move |given| (generator, given))
    });
    let mut generated: Vec<_> = sizes.collect();
    // Prefer the fewest options, since several candidates may have the same graph.
    generated.sort_by_key(|(_, given)| given.names().count());
    let generated = generated.into_iter();
    let generated = generated.map(|(generator, given)| Candidate::Generated(generator, given));
    let ready = machines()
        .machines()
        .iter()
        .flat_map(|machine| machine.ready);
    let ready = ready.map(|&(name, text)| Candidate::Ready(name, text));
    generated.chain(ready)
}

/// Tries the networks of every machine's generators that may have this graph, then the bundled
/// ones. Compares first node for node and by name, then by structure.
///
/// # Errors
/// [`InterchangeError::Unknown`].
pub fn find(graph: &Graph) -> Result<Found, InterchangeError> {
    let begun = Instant::now();
    let (mut tried, mut others) = (0, Vec::new());
    let mut near: Option<(usize, String)> = None;
    for candidate in candidates(&graph.outline()) {
        if begun.elapsed() > PATIENCE {
            break;
        }
        let Some(network) = candidate.network() else {
            continue;
        };
        if Graph::of(&*network).counts() != graph.counts() {
            continue;
        }
        tried += 1;
        match graph.compare(&*network) {
            Ok(same) => {
                let name = candidate.name();
                return Ok(Found {
                    network,
                    name,
                    same,
                });
            }
            Err(Difference::Missing(links)) => {
                if near.as_ref().is_none_or(|(least, _)| links.len() < *least) {
                    near = Some((links.len(), candidate.name()));
                }
            }
            // Keep these for later. In practice they are few, and smaller than the networks that
            // they generate.
            Err(Difference::Other(_)) => others.push(candidate),
        }
    }
    for candidate in others {
        if begun.elapsed() > PATIENCE {
            break;
        }
        let Some(network) = candidate.network() else {
            continue;
        };
        if let Ok(same) = graph.compare_all(&*network) {
            let name = candidate.name();
            return Ok(Found {
                network,
                name,
                same,
            });
        }
    }
    let (routers, nics) = graph.counts();
    Err(InterchangeError::Unknown {
        routers,
        nics,
        tried,
        near: near.map(|(links, name)| {
            let what = if links == 1 { "link" } else { "links" };
            format!("it matches `{name}` except for {links} missing {what}")
        }),
    })
}
