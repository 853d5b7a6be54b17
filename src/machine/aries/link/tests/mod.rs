//! The links of Aries: what holds for all links, and what is their own.

mod faults;
pub(crate) mod harness;
mod hostile;
mod lane_faults;
mod lane_noise;
mod late;
mod netem;
mod pace;
mod sessions;
mod whole_packets;

mod shared {
    crate::link::tests::shared_cases!(crate::machine::aries::link::tests::harness::Aries);
}
