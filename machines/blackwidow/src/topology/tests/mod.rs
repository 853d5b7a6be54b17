//! Tests of the whole: generators, round trips, mistakes.

mod mistakes;
mod plans;
mod routers;
mod sizes;
