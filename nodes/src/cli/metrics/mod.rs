//! `phitwire metrics`: how a running lab stands, for Prometheus.
//!
//! - [`families`] turns a sample of the lab into metrics;
//! - here is the server that gives them out: the lab is asked when somebody asks for it.

mod families;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::Cursor;
use std::net::{SocketAddr, TcpListener};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{SendError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clap::Args;
use miette::{IntoDiagnostic, WrapErr, miette};
use prometheus::TextEncoder;
use socket2::SockRef;
use tiny_http::{Header, Method, Request, Response, Server};

use super::manage::INTERRUPTED;
use super::print;
use crate::output;
use crate::stop::Stop;
use crate::watch::Sampler;

/// How long a signal may wait.
const TURN: Duration = Duration::from_millis(100);
/// How long somebody may take to read an answer.
const READ: Duration = Duration::from_secs(10);
/// A connection on which nobody asks for so long has no thread any more.
const IDLE: Duration = Duration::from_secs(5);
/// What is told again to who asks at once.
const RECENT: Duration = Duration::from_millis(100);
/// What words to people are called.
const PLAIN: &str = "text/plain; charset=utf-8";
/// What Prometheus' text format is called.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Debug, Args)]
pub struct MetricsArgs {
    /// The lab
    #[arg(long)]
    lab: String,
    /// Where to listen. Whoever reaches it may read it: nothing else is asked
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9464")]
    listen: SocketAddr,
    /// Print the metrics once and end, and do not listen
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
        .wrap_err("signals cannot be caught")?;
    let listener = TcpListener::bind(args.listen)
        .into_diagnostic()
        .wrap_err_with(|| format!("cannot listen at {}", args.listen))?;
    let address = listener.local_addr().into_diagnostic()?;
    // Connections take this over from who listens.
    let limited = SockRef::from(&listener).set_write_timeout(Some(READ));
    limited.into_diagnostic()?;
    let server = Server::from_listener(listener, None);
    let server = server.map_err(|error| miette!("cannot serve {address}: {error}"))?;
    print(&format!(
        "metrics of lab `{}` at http://{address}/metrics\n",
        args.lab
    ))?;
    if !address.ip().is_loopback() {
        output::complain("whoever reaches this machine can read them");
    }
    serve(&server, &mut lab, &stop);
    Ok(INTERRUPTED.into())
}

/// Until a signal comes.
fn serve(server: &Server, lab: &mut Lab, stop: &Stop) {
    let mut connections = Connections::default();
    while stop.requests() == 0 {
        // Trouble of one connection is its own.
        if let Ok(Some(request)) = server.recv_timeout(TURN) {
            let reply = reply(&request, lab);
            connections.answer(request, reply);
        }
    }
}

/// What a request is answered with. Many may wait for their readers: the text is there once.
type Reply = Response<Cursor<Arc<[u8]>>>;

/// A thread that answers what it is handed, in order.
type Answerer = (Sender<(Request, Reply)>, JoinHandle<()>);

/// A thread for each connection that somebody has asked on: who does not read keeps nobody else waiting.
#[derive(Default)]
struct Connections(BTreeMap<SocketAddr, Answerer>);

impl Connections {
    fn answer(&mut self, request: Request, reply: Reply) {
        // A connection has an address; without one it shares a thread with its like.
        let nobody = SocketAddr::from(([0, 0, 0, 0], 0));
        let peer = request.remote_addr().copied().unwrap_or(nobody);
        let mut left = (request, reply);
        if let Some((known, _)) = self.0.get(&peer) {
            match known.send(left) {
                Ok(()) => return,
                Err(SendError(back)) => left = back,
            }
        }
        self.0.retain(|_, (_, thread)| !thread.is_finished());
        let (tell, told) = channel::<(Request, Reply)>();
        let work = move || {
            while let Ok((request, reply)) = told.recv_timeout(IDLE) {
                // It has gone, or does not read.
                let _ = request.respond(reply);
            }
        };
        let thread = thread::Builder::new().name("reply".to_owned());
        // Without a thread it is dropped with the channel, and told so.
        if let Ok(thread) = thread.spawn(work) {
            let _ = tell.send(left);
            self.0.insert(peer, (tell, thread));
        }
    }
}

fn reply(request: &Request, lab: &mut Lab) -> Reply {
    let plain = |code, text: &str| response(code, PLAIN, text.as_bytes().into());
    if !matches!(request.method(), Method::Get | Method::Head) {
        return plain(405, "metrics are read with GET\n");
    }
    match request.url().split('?').next() {
        Some("/metrics") => match lab.recent() {
            Ok(text) => response(200, FORMAT, text),
            Err(report) => plain(500, &format!("{report}\n")),
        },
        Some("/") => {
            let text = format!("lab {}: its metrics are at /metrics\n", lab.name);
            plain(200, &text)
        }
        _ => plain(404, "there is nothing here: metrics are at /metrics\n"),
    }
}

fn response(code: u16, kind: &str, text: Arc<[u8]>) -> Reply {
    let header = Header::from_bytes("Content-Type", kind);
    let headers = header.into_iter().collect();
    let length = text.len();
    Response::new(code.into(), headers, Cursor::new(text), Some(length), None)
}

/// A lab by its name, whichever has it.
struct Lab {
    name: String,
    sampler: Option<Sampler>,
    /// What was told last, and when.
    told: Option<(Instant, Arc<[u8]>)>,
}

impl Lab {
    fn open(name: &str) -> miette::Result<Self> {
        Ok(Self {
            sampler: Some(Sampler::open(name)?),
            name: name.to_owned(),
            told: None,
        })
    }

    /// How it stands, or stood a moment ago: who asks without a pause shall not keep the nodes from
    /// their work.
    fn recent(&mut self) -> miette::Result<Arc<[u8]>> {
        if let Some((at, text)) = &self.told
            && at.elapsed() < RECENT
        {
            return Ok(text.clone());
        }
        let text: Arc<[u8]> = self.metrics()?.into_bytes().into();
        self.told = Some((Instant::now(), text.clone()));
        Ok(text)
    }

    /// How it stands now, in Prometheus' text format. A lab that has been taken down is not up; one
    /// of its name that comes after it is looked at from then on.
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
        text.into_diagnostic().wrap_err("the metrics")
    }
}
