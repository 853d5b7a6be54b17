//! Tests of what the links of every machine use.

#[path = "../common/mod.rs"]
mod common;
mod frame;
mod training;
