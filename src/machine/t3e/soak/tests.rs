//! Random tori, and the canaries of what is looked at in them.

use super::*;
use crate::sim::check::Violation;
use crate::sim::soak::tests::*;
