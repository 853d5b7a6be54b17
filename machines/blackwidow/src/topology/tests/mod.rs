//! End-to-end topology tests: generators, round trips, mistakes.

mod mistakes;
mod plans;
mod routers;
mod sizes;
