//! (link)

pub mod impair;
