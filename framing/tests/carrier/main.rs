//! Tests of the formats common to the links of all machines.

#[path = "../common/mod.rs"]
mod common;
mod frame;
mod training;
