//! The links of the T3E: what holds for all links, and what is their own.

mod harness;
mod hostile;
mod sessions;

mod shared {
    crate::link::tests::shared_cases!(crate::machine::t3e::link::tests::harness::Flits);
}
