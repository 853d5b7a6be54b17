//! Tests of the formats of the BlackWidow network.

#[path = "../common/mod.rs"]
mod common;
mod control;
mod corpus;
mod crc_distance;
mod decode;
mod frame;
mod golden;
mod maintenance;
mod memory;
mod properties;
