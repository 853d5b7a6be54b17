//! Recordings of networks: the state of nodes and links over time, in a lab or a simulation.
//!
//! A recording is a [`Header`], the fixed part, followed by [`Line`]s. Everything that changes is
//! one long row of integers: [`END_FIELDS`] per link end, [`NODE_FIELDS`] per node, then the
//! contents of a node's stages once the node has reported them. A line lists which numbers changed
//! since the previous line, and by how much. So counters and gauges are written the same way, idle
//! numbers cost nothing, and a reader can also step backwards. Strings are indices into a table
//! that grows with the recording.
//!
//! In a file (`.phitrec`), header and lines are JSON, one per line, gzip-compressed. The writer
//! flushes periodically, so that a truncated file can be read up to the cut ([`read`]). The live
//! view sends its page the same lines and nothing else ([`crate::view`]).

mod encoder;
mod file;
mod header;
mod lab;
mod state;

#[cfg(test)]
mod tests;

pub use encoder::{Encoder, EndMoment, Moment, NodeMoment};
pub use file::{FileError, Recording, Writer, read};
pub use header::{Clock, EndField, Event, Header, Source};
pub use lab::{header_of, moment_of};
pub use state::{Line, State};
