//! Formats on links: flits of 70 bits, packets of 1 to 10 of them, their checks, and the bursts
//! that the carrier transports. `docs/guide/src/wire-format.md` draws the layouts.

pub mod burst;
pub mod check;
pub mod flit;
pub mod header;
pub mod maintenance;
pub mod packet;

pub use burst::{BURST_FLITS, Burst};
pub use check::{DataCheck, Repair};
pub use flit::{Control, Flit, FlitKind, VCS, vc};
pub use header::{Command, Header, HeaderError, Name};
pub use maintenance::{MAINTENANCE_FLITS, MaintenanceCommand, MaintenancePacket, Way};
pub use packet::{MAX_PACKET_FLITS, PacketBuf, Request};
