//! The links of the T3E: the tests for all links, and specific ones.

mod hostile;
mod sessions;

mod shared {
    phitwire::shared_link_cases!(crate::link::testing::Flits);
}
