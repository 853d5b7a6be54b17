//! `phitwire top`: the state of a running lab in a terminal.
//!
//! - [`worker`] samples the lab in its own thread;
//! - [`app`] holds the content of the screen and handles keys;
//! - [`rows`] has the lists of links, nodes and events; [`draw`] and [`detail`] draw them;
//! - [`faults`] lists the faults that can be injected by hand;
//! - [`plain`] prints one sample without a terminal.

mod app;
mod detail;
mod draw;
mod faults;
mod plain;
mod rows;
mod worker;

#[cfg(test)]
mod tests;

use std::env;
use std::io::{IsTerminal, stdin, stdout};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::TryRecvError;
use std::thread::sleep;
use std::time::Duration;

use clap::Args;
use miette::{IntoDiagnostic, WrapErr, miette};
use phitwire_nodes::output::end_with_reader;
use phitwire_nodes::stop::Stop;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};

pub(super) use self::plain::Snapshot;

use self::app::{Action, App};
use self::worker::{LabUpdate, Task, Worker};
use super::by_signal::ended;
use super::{json, print};
use crate::watch::{Rates, Sampler, events};

/// Longest reaction time to a key or to an update of the lab.
const TURN: Duration = Duration::from_millis(50);

#[derive(Debug, Args)]
pub struct TopArgs {
    /// Lab
    #[arg(long, env = crate::cli::LAB, hide_env_values = true)]
    lab: String,
    /// Polling interval
    #[arg(long, value_name = "MS", default_value_t = 500, value_parser = clap::value_parser!(u64).range(100..=60_000))]
    interval: u64,
    /// Print one sample of the lab, with the rates over an interval, and exit. Needs no terminal
    #[arg(long)]
    once: bool,
    /// With --once: print JSON
    #[arg(long, requires = "once")]
    json: bool,
}

pub fn run(args: &TopArgs) -> miette::Result<ExitCode> {
    let interval = Duration::from_millis(args.interval);
    if args.once {
        return once(args, interval);
    }
    let is_dumb = env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    if is_dumb || !stdout().is_terminal() || !stdin().is_terminal() {
        return Err(miette!(
            help = "--once prints a single sample, --once --json the same for programs",
            "top needs a terminal for input and output, and TERM"
        ));
    }
    let (worker, summary) = Worker::start(args.lab.clone(), interval)?;
    let stop = Stop::at_signals()
        .into_diagnostic()
        .wrap_err("cannot catch signals")?;
    // Exit when the terminal closes: reading from a closed one would never end.
    end_with_reader()
        .into_diagnostic()
        .wrap_err("cannot read the terminal")?;
    let app = App::new(args.lab.clone(), summary);
    // From here on, a panic also restores the terminal.
    let mut terminal = ratatui::try_init()
        .into_diagnostic()
        .wrap_err("cannot set up the terminal")?;
    let ended = watch(&mut terminal, app, &worker, &stop);
    // Clear the screen, since tmux keeps the content of an alternate screen that has grown.
    let _ = terminal.clear();
    let restored = ratatui::try_restore();
    let code = ended?;
    restored
        .into_diagnostic()
        .wrap_err("cannot restore the terminal")?;
    Ok(code)
}

/// Runs until a key or a signal ends it.
fn watch(
    terminal: &mut DefaultTerminal,
    mut app: App,
    worker: &Worker,
    stop: &Stop,
) -> miette::Result<ExitCode> {
    let (mut is_new, mut pipelines) = (true, false);
    loop {
        if stop.requests() > 0 {
            return Ok(ended(false));
        }
        loop {
            match worker.news.try_recv() {
                Ok(news) => app.handle_news(news),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    return Err(miette!("the sampling thread has ended"));
                }
            }
            is_new = true;
        }
        if is_new {
            let drawn = terminal.draw(|frame| draw::draw(frame, &app));
            drawn
                .into_diagnostic()
                .wrap_err("cannot draw on the terminal")?;
            is_new = false;
        }
        if !event::poll(TURN).into_diagnostic()? {
            continue;
        }
        let action = match event::read().into_diagnostic()? {
            Event::Key(key) => app.press(key),
            _ => None,
        };
        is_new = true;
        match action {
            Some(Action::Quit) => return Ok(ExitCode::SUCCESS),
            // Ignore a send error: the next `try_recv` reports that the thread has ended.
            Some(Action::Ask(order)) => drop(worker.tasks.send(Task::Order(order))),
            None => {}
        }
        let wanted = app.shows_pipeline();
        if wanted != std::mem::replace(&mut pipelines, wanted) {
            drop(worker.tasks.send(Task::Pipelines(wanted)));
        }
    }
}

fn once(args: &TopArgs, interval: Duration) -> miette::Result<ExitCode> {
    let mut sampler = Sampler::open(&args.lab)?;
    let before = sampler.sample();
    sleep(interval);
    let sample = sampler.sample();
    let look = LabUpdate {
        rates: Rates::between(sampler.network(), &before, &sample),
        events: events(&before, &sample),
        sample: Arc::new(sample),
    };
    let network = sampler.network().summary();
    let text = match args.json {
        true => json(&Snapshot::new(&args.lab, &network, &look))?,
        false => plain::text(&args.lab, &network, &look),
    };
    print(&text)
}
