//! The YARC router (paper, sections 3 to 7).

pub mod registers;
