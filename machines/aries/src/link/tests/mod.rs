//! Aries links: tests common to all links, and Aries-specific ones.

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
