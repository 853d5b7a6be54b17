//! The `phitwire` command as run by users, with its processes.

mod channels;
mod descriptions;
mod door;
mod files;
mod own_memory;
mod processes;
mod rows;
mod schemas;
mod sim;
mod sim_config;
mod sim_messages;
