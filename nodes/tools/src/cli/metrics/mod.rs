//! `phitwire metrics`: the state of a running lab, for Prometheus.
//!
//! - [`families`] converts a sample of the lab to metrics;
//! - this module serves them, and samples the lab on each scrape.

mod families;

#[cfg(test)]
mod tests;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use miette::{IntoDiagnostic, WrapErr};
use phitwire_nodes::output;
use phitwire_nodes::stop::Stop;
use prometheus::TextEncoder;

use super::by_signal::ended;
use super::print;
use crate::http::{self, Answer, Request};
use crate::watch::Sampler;

/// Scrapes within this time get the same response.
const RECENT: Duration = Duration::from_millis(100);
/// The content type of Prometheus' text format.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Debug, Args)]
pub struct MetricsArgs {
    /// Lab
    #[arg(long, env = crate::cli::LAB, hide_env_values = true)]
    lab: String,
    /// Address to listen on. Anyone who can reach it can read the metrics: there is no
    /// authentication
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9464")]
    listen: SocketAddr,
    /// Print the metrics once and exit, without listening
    #[arg(long, conflicts_with = "listen")]
    once: bool,
}

pub fn run(args: &MetricsArgs) -> miette::Result<ExitCode> {
    let mut lab = Lab::open(&args.lab)?;
    if args.once {
        return print(&lab.metrics()?);
    }
    let stop = Stop::at_signals()
        .into_diagnostic()
        .wrap_err("cannot catch signals")?;
    let listener = TcpListener::bind(args.listen)
        .into_diagnostic()
        .wrap_err_with(|| format!("cannot listen on {}", args.listen))?;
    let address = listener.local_addr().into_diagnostic()?;
    print(&format!(
        "metrics of lab `{}` at http://{address}/metrics\n",
        args.lab
    ))?;
    if !address.ip().is_loopback() {
        output::print_error("anyone who can reach this machine can read them");
    }
    answer_all(&listener, &mut lab, &stop).into_diagnostic()?;
    Ok(ended(false))
}

/// The response to a scrape, or an error message.
type ScrapeResult = Result<Arc<[u8]>, String>;

/// Serves until a signal arrives. This thread samples the lab for all connections.
fn answer_all(listener: &TcpListener, lab: &mut Lab, stop: &Stop) -> io::Result<()> {
    let (wants, wanted) = channel::<Sender<ScrapeResult>>();
    let name = lab.name.clone();
    thread::scope(|scope| {
        let server = scope.spawn(move || {
            let metrics = || {
                let (sender, answers) = channel();
                let asked = wants.send(sender).ok();
                let answer = asked.and_then(|()| answers.recv().ok());
                answer.unwrap_or_else(|| Err("shutting down".to_owned()))
            };
            http::serve(listener, stop, |request| reply(request, &name, &metrics))
        });
        // The loop ends when the server does.
        for sender in wanted {
            let answer = lab.recent().map_err(|report| report.to_string());
            // Ignore an error: the client may have disconnected.
            let _ = sender.send(answer);
        }
        let ended = server.join();
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn reply(request: &Request, lab: &str, metrics: &impl Fn() -> ScrapeResult) -> Answer {
    if !matches!(request.method.as_str(), "GET" | "HEAD") {
        return Answer::plain(405, "metrics support only GET");
    }
    match request.path() {
        "/metrics" => match metrics() {
            Ok(text) => Answer::new(200, FORMAT, text),
            Err(why) => Answer::plain(500, &why),
        },
        "/" => Answer::plain(200, &format!("lab {lab}: its metrics are at /metrics")),
        _ => Answer::plain(404, "not found: metrics are at /metrics"),
    }
}

/// The lab that currently has this name.
struct Lab {
    name: String,
    sampler: Option<Sampler>,
    /// The last response, and its time.
    last_response: Option<(Instant, Arc<[u8]>)>,
}

impl Lab {
    fn open(name: &str) -> miette::Result<Self> {
        Ok(Self {
            sampler: Some(Sampler::open(name)?),
            name: name.to_owned(),
            last_response: None,
        })
    }

    /// The current response, or a recent one, so that frequent scrapes do not load the nodes.
    fn recent(&mut self) -> miette::Result<Arc<[u8]>> {
        if let Some((at, text)) = &self.last_response
            && at.elapsed() < RECENT
        {
            return Ok(text.clone());
        }
        let text: Arc<[u8]> = self.metrics()?.into_bytes().into();
        self.last_response = Some((Instant::now(), text.clone()));
        Ok(text)
    }

    /// The current state in Prometheus' text format. A lab that was taken down is reported as down;
    /// a later one of the same name replaces it.
    fn metrics(&mut self) -> miette::Result<String> {
        let is_there = self.sampler.as_ref().is_some_and(Sampler::is_there);
        if !is_there {
            self.sampler = Sampler::open(&self.name).ok();
        }
        let sample = self.sampler.as_mut().map(|sampler| {
            sampler.ask_for_pipelines(true);
            (sampler.network().summary(), sampler.sample())
        });
        let families = families::of(&self.name, sample.as_ref());
        let text = TextEncoder::new().encode_to_string(&families);
        text.into_diagnostic().wrap_err("cannot encode the metrics")
    }
}
