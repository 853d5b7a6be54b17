//! Tests of the formats that programs and NICs share.

#[path = "../common/mod.rs"]
mod common;
mod corpus;
mod decode;
mod golden;
mod properties;
