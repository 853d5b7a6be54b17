//! `phitwire view`: a running lab, or a recording, in a browser.

use std::fs::File;
use std::io::Read as _;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use miette::{IntoDiagnostic, WrapErr, miette};
use phitwire::net::short_message;
use phitwire_nodes::output;
use phitwire_nodes::stop::Stop;
use serde_json::json;

use super::by_signal::ended;
use super::print;
use crate::input_file::{FileKind, InputFile};
use crate::recording::{FileError, Recording, read};
use crate::view::{Actions, Guard, Live, Page, Shown, serve};
use crate::watch::Sampler;

/// The default address. If its port is taken, any free port is used.
const LISTEN: &str = "127.0.0.1:7410";

#[derive(Debug, Args)]
pub struct ViewArgs {
    /// Lab; without effect if a recording is shown
    #[arg(long, required_unless_present = "file", env = super::LAB, hide_env_values = true)]
    lab: Option<String>,
    /// Show a recording of `phitwire record` or `phitwire sim --record` instead
    file: Option<PathBuf>,
    /// Address to listen on. Beyond loopback, browsers need the token in the printed address;
    /// nothing is encrypted [default: 127.0.0.1:7410]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Sampling interval
    #[arg(long, value_name = "MS", default_value_t = 200, value_parser = clap::value_parser!(u64).range(50..=60_000))]
    interval: u64,
}

/// A random string, for a token or a secret.
///
/// # Errors
/// If the kernel provides no random bytes.
pub(super) fn secret() -> miette::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut bytes))
        .into_diagnostic()
        .wrap_err("cannot read random bytes from /dev/urandom")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Reads the recording in a file, and warns if it is truncated.
pub(super) fn open(file: &Path) -> miette::Result<Recording> {
    let input = InputFile::open(file, FileKind::RECORDING)?;
    let name = input.name.clone();
    let said = |error: FileError| short_message(error.to_string());
    let recording = read(input.stream()).map_err(|error| miette!("{name}: {}", said(error)))?;
    if let Some(cut) = &recording.cut {
        output::print_error(&format!("{name}: {cut}; showing what precedes it"));
    }
    Ok(recording)
}

fn listen(args: &ViewArgs) -> miette::Result<(TcpListener, SocketAddr)> {
    let bind = |at: SocketAddr| {
        let bound = TcpListener::bind(at).and_then(|bound| Ok((bound.local_addr()?, bound)));
        let (at, listener) = bound.map_err(|error| miette!("cannot listen on {at}: {error}"))?;
        Ok((listener, at))
    };
    if let Some(at) = args.listen {
        return bind(at);
    }
    let usual: SocketAddr = LISTEN.parse().expect("the default address is valid");
    bind(usual).or_else(|_| bind(SocketAddr::new(usual.ip(), 0)))
}

pub fn run(args: &ViewArgs) -> miette::Result<ExitCode> {
    let stop = Stop::at_signals().into_diagnostic()?;
    let recorded = args.file.as_deref().map(open).transpose()?;
    let lab = args.lab.as_deref().filter(|_| recorded.is_none());
    let sampler = lab.map(Sampler::open).transpose()?;
    let (listener, at) = listen(args)?;
    let guard = Guard::new(at, secret()?, secret()?);
    let token = guard.token().map(|token| format!("?token={token}"));
    let address = format!("http://{at}/{}", token.unwrap_or_default());
    let (name, mode) = match (&recorded, &sampler) {
        (Some(recording), _) => (recording.header.name.clone(), "file"),
        (_, Some(sampler)) => (sampler.lab().to_owned(), "live"),
        _ => return Err(miette!("specify a lab or a recording")),
    };
    let page = Page {
        title: name.clone(),
        config: json!({ "mode": mode, "interval": args.interval }),
        nonce: secret()?,
    };
    print(&format!("{name}: {address}\nPress Ctrl-C to stop\n"))?;
    match (recorded, sampler) {
        (Some(recording), _) => {
            let shown = Shown::Recording(recording.packed.into());
            serve(&listener, &guard, &page, &shown, &stop).into_diagnostic()?;
        }
        (_, Some(sampler)) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let begin_ms = now.map_or(0, |since| since.as_millis() as u64);
            let live = Arc::new(Live::new(&sampler, begin_ms));
            let scripts = super::lab::own_scripts().ok();
            let actions =
                Actions::of(&name, scripts.as_deref()).map_err(|error| miette!("{error}"))?;
            let shown = Shown::Lab(Arc::clone(&live), actions);
            let interval = Duration::from_millis(args.interval);
            let served = thread::scope(|scope| {
                let server = scope.spawn(|| serve(&listener, &guard, &page, &shown, &stop));
                live.watch(sampler, interval, || {
                    stop.requests() == 0 && !server.is_finished()
                });
                server.join()
            });
            let served = served.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            served.into_diagnostic()?;
        }
        _ => {}
    }
    Ok(ended(false))
}
