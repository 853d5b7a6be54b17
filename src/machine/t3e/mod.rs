//! The Cray T3E: a 3-D torus of one router per processor.
//!
//! Source: Scott and Thorson, "The Cray T3E Network: Adaptive Routing in a High Performance 3D
//! Torus", Hot Interconnects 4, 1996, cited here as "the paper" with the section.

pub mod barrier;
pub mod route;
