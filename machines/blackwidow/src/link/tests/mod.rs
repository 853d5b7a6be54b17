//! The links of YARC: what holds for all links, and what is their own.

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
