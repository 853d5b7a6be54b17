//! A pair of link ends under everything that can go wrong between them.

mod chaos;
mod faults;
mod harness;
mod hostile;
mod lane_faults;
mod late;
mod pace;
mod sessions;
mod whole_packets;
