//! The Aries router (Cray XC white paper, "Aries Router").

pub mod registers;
