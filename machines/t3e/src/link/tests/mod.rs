//! The links of the T3E: what holds for all links, and what is their own.

mod hostile;
mod sessions;

mod shared {
    phitwire::shared_link_cases!(crate::link::testing::Flits);
}
