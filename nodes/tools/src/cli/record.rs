//! `phitwire record`: records the state of a running lab over time in a file.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use miette::{IntoDiagnostic, WrapErr};
use phitwire_nodes::stop::Stop;

use super::by_signal::ended;
use super::print;
use crate::recording::{Encoder, Writer, header_of, moment_of};
use crate::view::event_of;
use crate::watch::{EventDetector, Sample, Sampler};

#[derive(Debug, Args)]
pub struct RecordArgs {
    /// Lab
    #[arg(long, env = super::LAB, hide_env_values = true)]
    lab: String,
    /// Output file, for `phitwire view`
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Sampling interval
    #[arg(long, value_name = "MS", default_value_t = 200, value_parser = clap::value_parser!(u64).range(50..=60_000))]
    interval: u64,
    /// Stop after this many seconds [default: when the lab is taken down, or at Ctrl-C]
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
}

pub fn run(args: &RecordArgs) -> miette::Result<ExitCode> {
    let stop = Stop::at_signals().into_diagnostic()?;
    let mut sampler = Sampler::open(&args.lab)?;
    sampler.ask_for_pipelines(true);
    let mut before: Sample = sampler.sample();
    let header = header_of(sampler.network(), &args.lab, before.at_ms);
    let named = || format!("cannot write {}", args.output.display());
    let created = Writer::create(&args.output, &header);
    let mut writer = created.into_diagnostic().wrap_err_with(named)?;
    let (mut encoder, mut detector) = (Encoder::new(header.clone()), EventDetector::default());
    let begun = Instant::now();
    let (mut lines, mut sample) = (0, before.clone());
    let is_cut = loop {
        let events = detector.detect(&before, &sample).into_iter().map(event_of);
        let t = sample
            .at_ms
            .saturating_sub(header.clock.begin_ms.unwrap_or(0));
        let line = encoder.line(t, &moment_of(&header, &sample), events.collect());
        // Flush, so that data survive if this process is killed or the machine crashes.
        let written = writer.line(&line).and_then(|()| writer.flush());
        written.into_diagnostic().wrap_err_with(named)?;
        lines += 1;
        before = sample;
        let next = begun + Duration::from_millis(args.interval) * lines;
        let end = args
            .seconds
            .map(|seconds| begun + Duration::from_secs(seconds));
        while stop.requests() == 0 && Instant::now() < next {
            let left = next.saturating_duration_since(Instant::now());
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
        let is_over = end.is_some_and(|end| Instant::now() >= end);
        if stop.requests() > 0 || is_over || !sampler.is_there() {
            break stop.requests() > 0 && !is_over;
        }
        sample = sampler.sample();
    };
    writer.finish().into_diagnostic().wrap_err_with(named)?;
    print(&format!(
        "{}: {lines} samples in {:.1} s\n",
        args.output.display(),
        begun.elapsed().as_secs_f64()
    ))?;
    Ok(match is_cut {
        true => ended(args.seconds.is_some()),
        false => ExitCode::SUCCESS,
    })
}
