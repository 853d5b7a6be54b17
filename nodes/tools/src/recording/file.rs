//! Recording files.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde::Serialize;
use thiserror::Error;

use super::header::{Header, HeaderError};
use super::state::{Fault, Line, State};

/// The longest line of a file in bytes, decompressed.
const LONGEST_LINE: u64 = 64 << 20;
/// Limit of the total size of all lines in bytes, which bounds the memory that a small file can
/// make a reader use.
const MOST_BYTES: u64 = 1 << 30;

/// Why a recording cannot be read.
#[derive(Debug, Error)]
pub enum FileError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is not a recording.
    #[error("not a recording: {0}; `phitwire record` and `phitwire sim --record` write recordings")]
    NoRecording(String),
    #[error("line 1 (header): {0}")]
    Header(#[from] HeaderError),
    /// A line cannot be parsed.
    #[error("line {0}: {1}")]
    Syntax(u64, String),
    /// A line does not follow from those before it.
    #[error("line {0}: {1}")]
    Fault(u64, Fault),
    #[error("line {0}: the uncompressed recording exceeds {1} MiB")]
    TooLarge(u64, u64),
}

#[derive(Debug)]
pub struct Writer<W: Write> {
    out: GzEncoder<W>,
}

impl Writer<File> {
    /// Begins a file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn create(path: &Path, header: &Header) -> io::Result<Self> {
        Self::new(File::create(path)?, header)
    }
}

impl<W: Write> Writer<W> {
    /// Begins a recording.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn new(out: W, header: &Header) -> io::Result<Self> {
        let out = GzEncoder::new(out, Compression::fast());
        let mut writer = Self { out };
        writer.json(header)?;
        Ok(writer)
    }

    fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, value)?;
        self.out.write_all(b"\n")
    }

    /// Adds a line.
    ///
    /// # Errors
    /// If the line cannot be written.
    pub fn line(&mut self, line: &Line) -> io::Result<()> {
        self.json(line)
    }

    /// Flushes all lines so far, so that readers of the file see them.
    ///
    /// # Errors
    /// If the lines cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// If the rest cannot be written.
    pub fn finish(self) -> io::Result<W> {
        self.out.finish()
    }
}

#[derive(Debug)]
pub struct Recording {
    pub header: Header,
    pub moments: u64,
    /// All lines that can be read, as a complete compressed file.
    pub packed: Vec<u8>,
    /// Why the recording was truncated, if it was.
    pub cut: Option<String>,
}

/// Reads and checks a whole recording. A truncated one is read up to the cut. The result is kept
/// compressed, so that a small file does not take much memory.
///
/// # Errors
/// See [`FileError`].
pub fn read(from: impl Read) -> Result<Recording, FileError> {
    let mut input = BufReader::new(from);
    if !input.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        return Err(FileError::NoRecording(
            "not compressed with gzip".to_owned(),
        ));
    }
    let mut lines = Lines {
        input: BufReader::with_capacity(1 << 16, MultiGzDecoder::new(input)),
        number: 0,
        bytes: 0,
    };
    let first = match lines.next()? {
        Next::Line(first) => first,
        Next::End => return Err(FileError::NoRecording("the file is empty".to_owned())),
        Next::Cut(why) => return Err(FileError::NoRecording(why)),
    };
    let header: Header = serde_json::from_slice(&first).map_err(|error| {
        FileError::NoRecording(format!("invalid header in the first line: {error}"))
    })?;
    header.check()?;
    let mut state = State::new(&header);
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    let mut pack = |text: &[u8]| -> io::Result<()> {
        packer.write_all(text)?;
        packer.write_all(b"\n")
    };
    pack(&first)?;
    let (mut moments, mut cut) = (0, None);
    loop {
        match lines.next()? {
            Next::Line(text) => {
                let line: Line = serde_json::from_slice(&text)
                    .map_err(|error| FileError::Syntax(lines.number, error.to_string()))?;
                state
                    .apply(&line)
                    .map_err(|fault| FileError::Fault(lines.number, fault))?;
                pack(&text)?;
                moments += 1;
            }
            Next::End => break,
            Next::Cut(why) => {
                cut = Some(why);
                break;
            }
        }
    }
    Ok(Recording {
        header,
        moments,
        packed: packer.finish()?,
        cut,
    })
}

/// The lines of a compressed file.
struct Lines<R> {
    input: BufReader<R>,
    /// Number of the last line read, from 1 on.
    number: u64,
    bytes: u64,
}

enum Next {
    Line(Vec<u8>),
    End,
    Cut(String),
}

impl<R: Read> Lines<R> {
    fn next(&mut self) -> Result<Next, FileError> {
        let mut line = Vec::new();
        let room = LONGEST_LINE.min(MOST_BYTES - self.bytes);
        self.number += 1;
        let number = self.number;
        let read = (&mut self.input)
            .take(room + 1)
            .read_until(b'\n', &mut line);
        if line.len() as u64 > room {
            return Err(FileError::TooLarge(number, room >> 20));
        }
        self.bytes += line.len() as u64;
        Ok(match read {
            Ok(0) => Next::End,
            Ok(_) if line.last() == Some(&b'\n') => {
                line.pop();
                Next::Line(line)
            }
            Ok(_) => Next::Cut(format!("the recording is truncated in line {number}")),
            Err(error) => Next::Cut(format!(
                "the recording ends or is damaged in line {number}: \
                                             {error}"
            )),
        })
    }
}
