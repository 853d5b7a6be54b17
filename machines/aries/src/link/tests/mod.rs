//! The links of Aries: what holds for all links, and what is their own.

mod faults;
mod hostile;
mod lane_faults;
mod lane_noise;
mod late;
mod netem;
mod pace;
mod sessions;
mod whole_packets;

mod shared {
    phitwire::shared_link_cases!(crate::link::testing::Aries);
}
