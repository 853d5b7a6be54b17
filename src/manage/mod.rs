//! Decisions of the maintenance system: the Hardware Supervisory System (HSS) of Cray's papers,
//! without its wires.
//!
//! "If a link fails, the router automatically stops sending packets in that direction. In the event
//! of lost connectivity, which may occur on blade failures or hardware removal, it is necessary to
//! route around the problem. The HSS performs this task." (Cray XC white paper, "Network
//! Reliability, Availability and Serviceability".) A machine computes which registers change;
//! [`Reroute`] sequences it: quiesce the traffic, install the tables, release it. Both are pure;
//! the process that commands nodes and waits for their replies is `phitwire manage`.

mod sequence;

pub use sequence::{Answer, Command, Reroute, ReroutePhase, RerouteReport, RerouteTimes};
