//! The links of YARC: what holds for all links, and what is their own.

mod excision;
mod faults;
pub(crate) mod harness;
mod hostile;
mod input_queue;
mod lane_noise;
mod late;
mod pace;
mod sessions;

mod shared {
    crate::link::tests::shared_cases!(crate::machine::blackwidow::link::tests::harness::Yarc);
}
