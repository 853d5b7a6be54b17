//! Recordings of networks: how nodes and links stood, moment by moment, of a lab or a simulation.
//!
//! A recording is a [`Header`], which says what there is, and [`Line`]s. All that changes is one long
//! row of whole numbers: [`END_FIELDS`] for each end of each link, [`NODE_FIELDS`] for each node,
//! and behind them what is in the stages of nodes, as soon as a node has told of them. A line says
//! by how much which numbers have changed since the line before; so counters and gauges are written
//! alike, what rests costs nothing, and whoever reads can go backwards as well. Texts are numbers
//! too, of a table that grows.
//!
//! In a file (`.phitrec`) header and lines are JSON, a line each, compressed by gzip; the writer
//! flushes now and then, so that one that was cut off can be read up to the cut ([`read`]). The
//! live view sends its page the same lines, and the page knows nothing else ([`crate::view`]).

mod encoder;
mod file;
mod header;
mod lab;
mod state;

#[cfg(test)]
mod tests;

pub use encoder::{Encoder, EndMoment, Moment, NodeMoment};
pub use file::{FileError, Recording, Writer, read};
pub use header::{
    Clock, END_FIELDS, EndField, Event, Header, HeaderError, LATENCY_BUCKETS, LinkHead,
    NODE_FIELDS, NodeField, NodeHead, Source, latency_bucket,
};
pub use lab::{header_of, moment_of};
pub use state::{Fault, Line, PlacedStages, State};
