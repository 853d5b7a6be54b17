//! The recording of a simulation.

use std::path::PathBuf;

use clap::Args;
use miette::{IntoDiagnostic, WrapErr, miette};
use phitwire::net::Network;
use phitwire::sim::direct::Links;
use phitwire_nodes::output::print_error;

use crate::sim::Record;

#[derive(Args, Debug)]
pub struct RecordOptions {
    /// Record the state of links and routers during the run, for `phitwire view`
    #[arg(long = "record", value_name = "FILE", conflicts_with = "seeds")]
    pub file: Option<PathBuf>,
    /// Cycles between two samples of the recording
    #[arg(long = "record-every", value_name = "N", default_value_t = 100, requires = "file",
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    every: u64,
}

impl RecordOptions {
    /// Checks that this number of runs can be recorded.
    ///
    /// # Errors
    /// If there are several.
    pub fn check(&self, runs: usize) -> miette::Result<()> {
        match &self.file {
            Some(_) if runs > 1 => Err(miette!(
                "--record records a single run: specify one load and one value of each option"
            )),
            _ => Ok(()),
        }
    }

    /// Begins the recording, if requested.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn begin(&self, network: &dyn Network, links: Links) -> miette::Result<Option<Record>> {
        let create = |file| Record::create(file, network, links, self.every);
        let created = self.file.as_deref().map(create).transpose();
        created.into_diagnostic().wrap_err_with(|| self.cannot())
    }

    /// Ends the recording after the run.
    ///
    /// # Errors
    /// If it could not be written.
    pub fn end(&self, record: Option<Record>) -> miette::Result<()> {
        let ended = record.map(Record::finish).transpose();
        ended.into_diagnostic().wrap_err_with(|| self.cannot())?;
        Ok(())
    }

    /// Prints the name of the recording, if one was made.
    pub fn print_written(&self) {
        if let Some(file) = &self.file {
            print_error(&format!("written: {}", file.display()));
        }
    }

    fn cannot(&self) -> String {
        let file = self.file.as_deref().unwrap_or("".as_ref());
        format!("cannot write {}", file.display())
    }
}
