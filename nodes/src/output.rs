//! Standard output and error, whose readers may go away at any time: `head`, `less`, a closed terminal.

use std::io::{self, ErrorKind, Write};

use miette::{GraphicalReportHandler, GraphicalTheme, Report};
use phitwire::topology::harmless;

/// Lets error reports be printed without line breaks of their own: commands in them can be copied and run.
pub fn keep_lines_whole() {
    // Only the first in a process counts.
    let _ = miette::set_hook(Box::new(whole_lines));
}

fn whole_lines(_: &(dyn miette::Diagnostic + 'static)) -> Box<dyn miette::ReportHandler> {
    let options = miette::MietteHandlerOpts::new().width(10_000);
    Box::new(options.wrap_lines(false).build())
}

/// Prints to standard output. A reader who has gone away is no error.
///
/// # Errors
/// Any other trouble with it, such as a full disk.
pub fn print(text: &str) -> io::Result<()> {
    forgive(io::stdout().lock(), text)
}

/// Prints a line to standard error, as far as that can be done: there is nobody to tell otherwise.
pub fn complain(line: &str) {
    let _ = forgive(io::stderr().lock(), &format!("{line}\n"));
}

/// A report as `miette` draws it. Without colours, and with everything written out that a terminal would obey, if there
/// is such a thing in it.
pub fn report(report: &Report) -> String {
    let mut plain = String::new();
    let drawn = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
        .render_report(&mut plain, report.as_ref());
    let shown = harmless(&plain);
    match drawn {
        Ok(()) if shown == plain => format!("{report:?}"),
        _ => shown.trim_end().to_owned(),
    }
}

fn forgive(mut to: impl Write, text: &str) -> io::Result<()> {
    match to.write_all(text.as_bytes()).and_then(|()| to.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
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
    fn a_reader_who_has_gone_is_no_error_and_a_full_disk_is_one() {
        assert!(forgive(Failing(ErrorKind::BrokenPipe), "text").is_ok());
        assert!(forgive(Failing(ErrorKind::StorageFull), "text").is_err());
    }
}
