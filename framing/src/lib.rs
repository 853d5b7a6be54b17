//! Bit layouts of the BlackWidow network: phits, packets, checks and link frames.
#![no_std]

pub mod phit24;
