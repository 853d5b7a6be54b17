//! Tests of the formats of the Aries network.

#[path = "../common/mod.rs"]
mod common;
mod corpus;
mod crc_distance;
mod decode;
mod frame;
mod golden;
mod packet;
mod properties;
mod set;
