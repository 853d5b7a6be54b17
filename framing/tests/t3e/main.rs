//! Tests of the formats of the T3E.

mod properties;
