//! Descriptions of networks from files and standard input, whoever wrote them: no more bytes are
//! read than a description may have, and nothing is waited for that may never come.

use std::borrow::Cow;
use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use miette::{IntoDiagnostic as _, Report, WrapErr as _, miette};
use phitwire::machine;
use phitwire::net::{Effort, Files, MAX_DESCRIPTION_BYTES, Network, Problems, Read, harmless};

/// Reads and checks the description in a file; `-` is standard input.
///
/// # Errors
/// What is no file or cannot be read, and a description with mistakes.
pub fn open(file: &Path) -> miette::Result<Box<dyn Network>> {
    Description::of(file)?.network()
}

/// A description, and what it names: other files, which stand in the folder of its own.
pub struct Description {
    name: String,
    bytes: Vec<u8>,
    files: Files,
    /// Whether it has named any.
    names_files: Rc<Cell<bool>>,
}

impl Description {
    /// The description in a file; `-` is standard input.
    ///
    /// # Errors
    /// What is no file, or cannot be read.
    pub fn of(file: &Path) -> miette::Result<Self> {
        let (name, bytes) = bytes_of(file)?;
        let folder = match is_handed_over(file) {
            true => PathBuf::new(),
            false => file.parent().map_or_else(PathBuf::new, Path::to_owned),
        };
        let names_files = Rc::new(Cell::new(false));
        let is_asked = names_files.clone();
        let files = Files::new(move |name| {
            is_asked.set(true);
            beside(&folder.join(name))
        });
        Ok(Self {
            name,
            bytes,
            files,
            names_files,
        })
    }

    /// What messages call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads and checks it.
    ///
    /// # Errors
    /// Its mistakes.
    pub fn read(&self, effort: Effort) -> Result<Read, Problems> {
        machine::read_beside(&self.name, &self.bytes, effort, &self.files)
    }

    /// The network.
    ///
    /// # Errors
    /// The mistakes of the description.
    pub fn network(&self) -> miette::Result<Box<dyn Network>> {
        let read = self.read(Effort::Bounded);
        read.map(|read| read.network).map_err(Report::new)
    }

    /// The text of the description, whose network this is: as it is or, if it names other files, with
    /// what they say in it.
    pub fn whole(&self, network: &dyn Network) -> Cow<'_, [u8]> {
        match self.names_files.get() {
            true => Cow::Owned(network.write().into_bytes()),
            false => Cow::Borrowed(&self.bytes),
        }
    }
}

/// The bytes of a file that a description names, or why there are none.
fn beside(file: &Path) -> Result<Vec<u8>, String> {
    let name = shown(file);
    let opened = regular(file, &name).map_err(|report| report.to_string())?;
    let read = opened.and_then(limited);
    read.map_err(|error| format!("cannot read {name}: {error}"))
}

fn shown(file: &Path) -> String {
    harmless(&file.display().to_string()).replace('\n', "\\n")
}

/// Name and bytes of a description: all of them, or one more than it may have.
///
/// # Errors
/// What is no file, or cannot be read.
pub fn bytes_of(file: &Path) -> miette::Result<(String, Vec<u8>)> {
    let name = shown(file);
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
