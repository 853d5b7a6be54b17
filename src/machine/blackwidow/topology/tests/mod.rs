//! Tests of the whole: generators, round trips, mistakes.

mod mistakes;
mod plans;
mod ready;
mod routers;
mod sizes;
mod strangers;
