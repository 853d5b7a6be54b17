//! The `phitwire` command as users run it, with its processes.

mod channels;
mod descriptions;
mod door;
mod files;
mod lab;
mod own_memory;
mod processes;
mod schemas;
mod sim;
