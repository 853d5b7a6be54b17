//! Tests of the whole: generators, round trips, mistakes.

mod sizes;
