//! Networks in the formats of other tools.
//!
//! | format | written | read | content |
//! |---|---|---|---|
//! | GraphML | yes | yes | nodes, links with their ports, and the description |
//! | JSON | yes | no | the same |
//! | Graphviz | yes | no | the drawing of `topology show --format dot` |
//! | BookSim's `anynet` | yes | yes | links by router: no names, ports or parallel links |
//! | containerlab | yes | no | a container for each node, with its process, and the links |
//!
//! A graph that is read becomes a network of one of our machines, since routers need routes: by the
//! description in it or, for graphs of other tools, by the given network or by trying those that
//! may fit ([`find()`]). The network is then compared with the graph link by link.

mod anynet;
mod containerlab;
mod graph;
mod graphml;
mod isomorphism;
mod search;

use std::sync::Arc;

use clap::ValueEnum;
use miette::{Diagnostic, SourceSpan};
use phitwire::net::{Excerpt, Network, excerpt, short_message};
use serde_json::json;
use thiserror::Error;

pub use graph::{Difference, Graph, Same};
pub use search::find;

/// Output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Written {
    /// GraphML: networkx, Gephi, yEd, igraph
    Graphml,
    /// Graphviz' dot language
    Dot,
    /// JSON that includes the description
    Json,
    /// The network_file of BookSim's anynet
    BooksimAnynet,
    /// A containerlab topology
    Containerlab,
}

/// Input formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Readable {
    /// GraphML
    Graphml,
    /// The network_file of BookSim's anynet
    BooksimAnynet,
}

/// A network in another format, with a list of the parts that this format cannot express.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Export {
    pub text: String,
    /// Parts of the network left out, as sentences.
    pub left_out: Vec<String>,
}

/// Why a network cannot be exported, or a file cannot be read.
#[derive(Debug, Diagnostic, Error)]
pub enum InterchangeError {
    /// The format cannot express this network.
    #[error("{0}")]
    #[diagnostic(help("use --format graphml or json, which can express every network"))]
    Unsupported(String),
    /// A file with an error.
    #[error("{message}")]
    Mistake {
        message: String,
        #[source_code]
        text: Arc<Excerpt>,
        #[label("here")]
        span: SourceSpan,
    },
    /// A graph of another tool that matches none of phitwire's networks.
    #[error(
        "the file has {routers} routers and {nics} NICs, but its links match none of the {tried} \
         candidate networks{}", near.as_ref().map_or(String::new(), |near| format!("; {near}"))
    )]
    #[diagnostic(help(
        "specify the network, as for `phitwire topology generate`, to see the differences"
    ))]
    Unknown {
        routers: usize,
        nics: usize,
        /// Number of networks compared.
        tried: usize,
        /// The closest network.
        near: Option<String>,
    },
}

/// Writes a network, whose description is `description`, in another format.
///
/// # Errors
/// [`InterchangeError::Unsupported`].
pub fn export(
    network: &dyn Network,
    description: &str,
    format: Written,
) -> Result<Export, InterchangeError> {
    let whole = |text: String| Export {
        text,
        left_out: Vec::new(),
    };
    let graph = Graph::of(network);
    Ok(match format {
        Written::Graphml => whole(graphml::write(&graph, description)),
        Written::Dot => whole(network.dot()),
        Written::Json => whole(as_json(&graph, description)),
        Written::BooksimAnynet => anynet::write(&graph)?,
        Written::Containerlab => containerlab::write(&graph),
    })
}

/// Reads a file of another tool, called `name` in messages. Returns the graph and, if phitwire
/// wrote the file, the description in it.
///
/// # Errors
/// [`InterchangeError::Mistake`].
pub fn read(
    name: &str,
    text: &str,
    format: Readable,
) -> Result<(Graph, Option<String>), InterchangeError> {
    let read = match format {
        Readable::Graphml => graphml::read(text),
        Readable::BooksimAnynet => anynet::read(text).map(|graph| (graph, None)),
    };
    read.map_err(|(message, span)| {
        let (excerpt, span) = excerpt(name, text, span);
        InterchangeError::Mistake {
            message: short_message(message),
            text: Arc::new(excerpt),
            span,
        }
    })
}

/// An error in a file, and its byte range.
type Mistake = (String, std::ops::Range<usize>);

fn as_json(graph: &Graph, description: &str) -> String {
    let nodes = graph.routers.iter().map(|name| (name, "router"));
    let nodes = nodes.chain(graph.nics.iter().map(|name| (name, "nic")));
    let end = |end: &graph::End| json!({ "node": graph.name(end.node), "port": end.port });
    let links = graph.links.iter().enumerate();
    let text = json!({
        "format": "phitwire-topology",
        "version": 1,
        "name": graph.title,
        "nodes": nodes.map(|(name, kind)| json!({ "name": name, "kind": kind })).collect::<Vec<_>>(),
        "links": links
            .map(|(id, [a, b])| json!({ "id": id, "a": end(a), "b": end(b) }))
            .collect::<Vec<_>>(),
        "description": description,
    });
    format!("{text:#}\n")
}

#[cfg(test)]
mod tests;
