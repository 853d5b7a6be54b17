//! Untrusted files that commands read. Their size is limited, and reading one never blocks.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use miette::{IntoDiagnostic as _, WrapErr as _, miette};
use phitwire::net::{MAX_DESCRIPTION_BYTES, harmless};

/// A kind of file: its name in messages, and its size limit in bytes.
#[derive(Clone, Copy, Debug)]
pub struct FileKind {
    what: &'static str,
    most: u64,
}

impl FileKind {
    /// Descriptions of networks, and the tables to which they refer.
    pub const DESCRIPTION: Self = Self::new("a description", MAX_DESCRIPTION_BYTES as u64);
    /// Networks in formats of other tools. The largest one written by phitwire takes 40 MB.
    pub const GRAPH: Self = Self::new("a graph", 64 << 20);
    /// Output of `sim --csv`, a few hundred bytes a point.
    pub const POINTS: Self = Self::new("a table of points", 8 << 20);
    /// Options of a run, or the output of `sim --json`, which may hold traces.
    pub const CONFIG: Self = Self::new("the options of a run", 64 << 20);
    /// Output of commands with `--json`.
    pub const JSON: Self = Self::new("a JSON document", 64 << 20);
    /// Recordings, decompressed.
    pub const RECORDING: Self = Self::new("a recording", 1 << 30);

    const fn new(what: &'static str, most: u64) -> Self {
        Self { what, most }
    }

    fn too_large(self, name: &str, bytes: Option<u64>) -> miette::Report {
        let most = self.most;
        match bytes {
            Some(bytes) => miette!("{name} is too large: {bytes} bytes, at most {most}"),
            None => miette!("{name} is too large: more than {most} bytes"),
        }
    }
}

#[derive(Debug)]
pub struct InputFile {
    /// Name of the file in messages.
    pub name: String,
    kind: FileKind,
    file: File,
}

impl InputFile {
    /// Opens a file; `-` is standard input.
    ///
    /// # Errors
    /// If it is a special file, cannot be opened, or exceeds the limit of its kind.
    pub fn open(file: &Path, kind: FileKind) -> miette::Result<Self> {
        let name = shown(file);
        let opened = match is_handed_over(file) {
            true if file == Path::new("-") => dup_of_stdin(),
            true => File::open(file),
            false => regular(file, &name, kind)?,
        };
        let cannot = || format!("cannot read {name}");
        let opened = opened.into_diagnostic().wrap_err_with(cannot)?;
        let about = opened.metadata().into_diagnostic().wrap_err_with(cannot)?;
        if about.is_dir() {
            return Err(kind_is_wrong(&name, "a directory", kind));
        }
        if about.is_file() && about.len() > kind.most {
            return Err(kind.too_large(&name, Some(about.len())));
        }
        Ok(Self {
            name,
            kind,
            file: opened,
        })
    }

    /// Reads the whole file.
    ///
    /// # Errors
    /// If the file cannot be read, or exceeds the limit of its kind.
    pub fn bytes(self) -> miette::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.file.take(self.kind.most + 1).read_to_end(&mut bytes);
        read.into_diagnostic()
            .wrap_err_with(|| format!("cannot read {}", self.name))?;
        match bytes.len() as u64 > self.kind.most {
            true => Err(self.kind.too_large(&self.name, None)),
            false => Ok(bytes),
        }
    }

    /// Reads the whole file as text.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes), and if the content is not UTF-8.
    pub fn text(self) -> miette::Result<String> {
        let name = self.name.clone();
        String::from_utf8(self.bytes()?)
            .into_diagnostic()
            .wrap_err_with(|| format!("{name} is not text"))
    }

    /// A reader of the file's bytes, up to the limit.
    pub fn stream(self) -> impl Read {
        self.file.take(self.kind.most)
    }
}

/// The name of a file in messages.
pub fn shown(file: &Path) -> String {
    harmless(&file.display().to_string()).replace('\n', "\\n")
}

fn dup_of_stdin() -> io::Result<File> {
    use std::os::fd::AsFd as _;
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// Whether `file` is standard input or another descriptor opened by the shell, such as
/// `<(COMMAND)`. Reading those may block.
pub fn is_handed_over(file: &Path) -> bool {
    ["-", "/dev/stdin"].map(Path::new).contains(&file)
        || file.starts_with("/dev/fd")
        || file.starts_with("/proc/self/fd")
}

/// Opens a regular file. Other kinds of files could block, or be read without end.
fn regular(file: &Path, name: &str, kind: FileKind) -> miette::Result<io::Result<File>> {
    // Set O_NONBLOCK, since opening a pipe without a writer would otherwise block.
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
        _ => "not a file",
    };
    Err(kind_is_wrong(name, what, kind))
}

fn kind_is_wrong(name: &str, what: &str, kind: FileKind) -> miette::Report {
    let FileKind { what: wanted, most } = kind;
    miette!(
        help = "specify a file, or pipe a command's output to standard input: `COMMAND | phitwire \
                ... -`",
        "cannot read {name}: it is {what}; expected {wanted} in a file of at most {most} bytes"
    )
}
