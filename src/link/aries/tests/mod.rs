//! A pair of link ends under everything that can go wrong between them.
#![allow(
    clippy::duplicate_mod,
    reason = "cases that hold for both kinds of links, each with its own harness"
)]

mod chaos;
mod faults;
mod harness;
mod hostile;
mod lane_faults;
mod late;
mod pace;
mod sessions;
mod whole_packets;

// The handshake is the same for both kinds of links, and so is what is asked of it: the same cases, over this harness.
#[path = "../../tests/forged.rs"]
mod forged;
#[path = "../../tests/liveness.rs"]
mod liveness;
#[path = "../../tests/stranger.rs"]
mod stranger;
#[path = "../../tests/ways_out.rs"]
mod ways_out;
