//! Descriptions of networks from files and standard input, whoever wrote them: no more bytes are
//! read than a description may have, and nothing is waited for that may never come.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use miette::{IntoDiagnostic as _, Report, WrapErr as _, miette};
use phitwire::machine;
use phitwire::net::{Effort, MAX_DESCRIPTION_BYTES, Network, harmless};

/// Reads and checks the description in a file; `-` is standard input.
///
/// # Errors
/// What is no file or cannot be read, and a description with mistakes.
pub fn open(file: &Path) -> miette::Result<Box<dyn Network>> {
    let (name, bytes) = bytes_of(file)?;
    let read = machine::read_with(&name, &bytes, Effort::Bounded);
    read.map(|read| read.network).map_err(Report::new)
}

/// Name and bytes of a description: all of them, or one more than it may have.
///
/// # Errors
/// What is no file, or cannot be read.
pub fn bytes_of(file: &Path) -> miette::Result<(String, Vec<u8>)> {
    let name = harmless(&file.display().to_string()).replace('\n', "\\n");
    let bytes = match is_handed_over(file) {
        true if file == Path::new("-") => limited(io::stdin().lock()),
        true => File::open(file).and_then(limited),
        false => regular(file, &name)?.and_then(limited),
    };
    let bytes = bytes
        .into_diagnostic()
        .wrap_err_with(|| format!("cannot read {name}"))?;
    Ok((name, bytes))
}

/// Standard input and what else the shell has opened, such as `<(COMMAND)`: whoever started us
/// feeds it.
fn is_handed_over(file: &Path) -> bool {
    ["-", "/dev/stdin"].map(Path::new).contains(&file)
        || file.starts_with("/dev/fd")
        || file.starts_with("/proc/self/fd")
}

/// Opens a regular file; what else there may be in its place could let us wait, or read, for ever.
fn regular(file: &Path, name: &str) -> miette::Result<io::Result<File>> {
    // Opening a pipe to which nobody writes would wait for somebody.
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(file);
    let opened = match opened.and_then(|opened| Ok((opened.metadata()?.file_type(), opened))) {
        Ok(opened) => opened,
        Err(error) => return Ok(Err(error)),
    };
    let what = match opened.0 {
        kind if kind.is_file() => return Ok(Ok(opened.1)),
        kind if kind.is_dir() => "a directory",
        kind if kind.is_fifo() => "a named pipe",
        kind if kind.is_char_device() || kind.is_block_device() => "a device",
        _ => "no file",
    };
    Err(miette!(
        help = "name a file; what a command writes is read from standard input: `COMMAND | phitwire ... -`",
        "cannot read {name}: it is {what}, and a description is a file of at most {MAX_DESCRIPTION_BYTES} bytes"
    ))
}

/// All bytes, or one more than a description may have.
fn limited(from: impl io::Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_DESCRIPTION_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}
