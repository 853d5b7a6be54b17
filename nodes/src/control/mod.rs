//! The control socket of a process: one JSON object per line, both ways, over a Unix socket.
//!
//! A request is `{"cmd": ...}` with the fields of that command ([`Request`]). The reply is `{"ok":
//! true, "data": ...}` or `{"ok": false, "error": "..."}`, with a `refusal` where programs act upon
//! the reason ([`Refusal`]). Replies come in the order of the requests. The process's event loop
//! serves the socket between two turns.

pub mod client;
mod protocol;
mod reply;
pub mod server;
mod several;

pub use client::{Client, ClientError, TIMEOUT};
pub use protocol::{
    Claimed, Fault, Holder, LinkReport, MAX_LINE_BYTES, NodeInfo, NodeKind, PipelineReport,
    ProbeReport, Register, Request, RoutingReport, WatchedReport,
};
pub(crate) use protocol::{MAX_CLOCKLESS_MS, PEER_SILENT};
pub use reply::{Code, Refusal, RunKind};
pub use several::ask_all;
