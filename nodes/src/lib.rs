//! The processes of phitwire.

pub mod clock;
pub mod control;
pub mod driver;
pub mod io;
pub mod run_dir;
