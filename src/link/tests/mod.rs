//! Two link ends over a wire that does what it is told to, and a checker behind each.

mod chaos;
mod excision;
mod faults;
mod forged;
mod harness;
mod hostile;
mod lane_faults;
mod late;
mod liveness;
mod sessions;
mod stranger;
mod ways_out;
