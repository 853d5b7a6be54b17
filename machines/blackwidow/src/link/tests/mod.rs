//! YARC links: tests common to all links, and YARC-specific ones.

mod excision;
mod faults;
mod hostile;
mod input_queue;
mod lane_noise;
mod late;
mod pace;
mod sessions;

mod shared {
    phitwire::shared_link_cases!(crate::link::testing::Yarc);
}
