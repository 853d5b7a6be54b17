//! Tests of what programs and network interfaces share.

#[path = "../common/mod.rs"]
mod common;
mod corpus;
mod decode;
mod golden;
mod properties;
