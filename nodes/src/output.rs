//! Standard output and error, whose readers may disappear at any time: `head`, `less`, a closed
//! terminal.

use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;

use miette::{GraphicalReportHandler, GraphicalTheme, Report};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use phitwire::net::harmless;

/// Exit status of a command that ended early because its output was no longer read: the status that
/// a shell reports after SIGPIPE. A command that finished its work has its usual status, read or
/// not.
pub const NOT_READ: u8 = 141;

/// Makes error reports print without added line breaks, so that commands in them can be copied and
/// run.
pub fn keep_lines_whole() {
    // Ignore the error: only the first hook in a process counts.
    let _ = miette::set_hook(Box::new(whole_lines));
}

fn whole_lines(_: &(dyn miette::Diagnostic + 'static)) -> Box<dyn miette::ReportHandler> {
    let options = miette::MietteHandlerOpts::new().width(10_000);
    Box::new(options.wrap_lines(false).build())
}

/// Prints to standard output. A closed reader is not an error.
///
/// # Errors
/// Any other failure, such as a full disk.
pub fn print(text: &str) -> io::Result<()> {
    print_if_read(text).map(|_| ())
}

/// Prints to standard output. Returns whether its reader is still there.
///
/// # Errors
/// Any other failure, such as a full disk.
pub fn print_if_read(text: &str) -> io::Result<bool> {
    forgive(io::stdout().lock(), text)
}

/// Makes this process exit, silently and with [`NOT_READ`], as soon as its standard output is no
/// longer read. For commands that compute for long and produce only output.
///
/// # Errors
/// When the thread cannot be started.
pub fn end_with_reader() -> io::Result<()> {
    let watch = || {
        let out = io::stdout();
        loop {
            // Even without events, `poll` reports a closed reader; other files report nothing.
            let mut descriptors = [PollFd::new(out.as_fd(), PollFlags::empty())];
            match poll(&mut descriptors, PollTimeout::NONE) {
                Ok(1..) => break,
                Ok(_) | Err(Errno::EINTR | Errno::EAGAIN) => {}
                Err(_) => return,
            }
        }
        std::process::exit(NOT_READ.into());
    };
    let thread = std::thread::Builder::new().name("reader".to_owned());
    thread.spawn(watch).map(|_| ())
}

/// Prints a line to standard error. Ignores failure, since it cannot be reported anywhere.
pub fn print_error(line: &str) {
    let _ = forgive(io::stderr().lock(), &format!("{line}\n"));
}

/// Size limit of a report, in bytes. Even a report of every mistake in a description is shorter.
const MOST_REPORT: usize = 128 << 10;

/// A report as drawn by `miette`, without colours and cut to a readable length. Terminal control
/// characters are escaped.
pub fn report(report: &Report) -> String {
    let mut plain = String::new();
    let drawn = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
        .render_report(&mut plain, report.as_ref());
    let shown = harmless(&plain);
    match drawn {
        Ok(()) if shown == plain => cut(format!("{report:?}")),
        _ => cut(shown.trim_end().to_owned()),
    }
}

fn cut(mut text: String) -> String {
    if text.len() > MOST_REPORT {
        let bytes = text.len();
        let mut end = MOST_REPORT;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(&format!("... ({bytes} bytes)"));
    }
    text
}

fn forgive(mut to: impl Write, text: &str) -> io::Result<bool> {
    match to.write_all(text.as_bytes()).and_then(|()| to.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_is_no_error_and_a_full_disk_is_one() {
        assert_eq!(forgive(Vec::new(), "text").ok(), Some(true));
        let gone = forgive(Failing(ErrorKind::BrokenPipe), "text");
        assert_eq!(gone.ok(), Some(false));
        assert!(forgive(Failing(ErrorKind::StorageFull), "text").is_err());
    }
}
