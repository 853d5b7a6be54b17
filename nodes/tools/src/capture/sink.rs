//! Destination of a capture: a file, a ring of files, or standard output. A file contains only
//! whole blocks, even after an error.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use super::pcapng;

/// Size limits of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes per file.
    pub bytes: u64,
    /// Files of a ring, in which a new file replaces the oldest; 1: no ring.
    pub files: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// Standard output is a terminal.
    #[error(
        "refusing to write a capture to a terminal: redirect it to a file, or into a pipe, `-w - | \
         wireshark -k -i -`"
    )]
    Terminal,
    /// Standard output cannot be a ring.
    #[error("--files needs a file, not standard output: omit --files, or specify a file")]
    NoRing,
    /// The header blocks of a capture exceed the limit.
    #[error(
        "--max-bytes {limit} is too small: the description of the links takes {least} bytes; \
         specify more"
    )]
    TooSmall {
        limit: u64,
        /// The smallest sufficient limit.
        least: u64,
    },
    /// Any other error.
    #[error("{}: {source}{}", path.display(), remedy(source))]
    Io {
        /// The file, or `-`.
        path: PathBuf,
        source: io::Error,
    },
}

/// Advice for an error.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "; the capture ends here and the file is valid up to this point: free some space, \
             capture fewer links, or keep only the latest frames with --max-bytes BYTES --files N"
        }
        ErrorKind::FileTooLarge => "; the capture ends here and the file is valid up to this point",
        _ => "",
    }
}

/// Whether the capture can continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// The file or ring accepts more.
    Left,
    /// The limit is reached.
    Full,
    /// The reader of standard output is gone.
    Unread,
}

enum Target {
    File(File, PathBuf),
    Output,
}

/// A capture being written.
pub struct Sink {
    /// The blocks at the beginning of every file.
    head: Vec<u8>,
    /// Bytes of the statistics that end a file.
    tail: u64,
    limits: Limits,
    target: Target,
    /// The name as given, and the existing files of the ring.
    path: PathBuf,
    ring: VecDeque<PathBuf>,
    files: u64,
    /// Blocks that are not written yet.
    waiting: Vec<u8>,
    /// The interfaces of the frames in these blocks.
    waiting_of: Vec<u32>,
    /// Frames written, by interface.
    frames: Vec<u64>,
    /// Length of the file in bytes, all in whole blocks.
    written: u64,
    room: Room,
}

/// Number of bytes of blocks written at once.
const TOGETHER: usize = 1 << 18;

impl Sink {
    /// Opens a capture into the file `path` (`-`: standard output) that begins with `head` and ends
    /// with `tail` bytes of statistics.
    ///
    /// # Errors
    /// See [`SinkError`].
    pub fn new(path: &Path, head: Vec<u8>, tail: u64, limits: Limits) -> Result<Self, SinkError> {
        let least = head.len() as u64 + tail;
        if least > limits.bytes {
            let limit = limits.bytes;
            return Err(SinkError::TooSmall { limit, least });
        }
        let is_output = path == Path::new("-");
        if is_output && limits.files > 1 {
            return Err(SinkError::NoRing);
        }
        if is_output && io::stdout().is_terminal() {
            return Err(SinkError::Terminal);
        }
        let mut sink = Self {
            head,
            tail,
            limits,
            target: Target::Output,
            path: path.to_owned(),
            ring: VecDeque::new(),
            files: 0,
            waiting: Vec::new(),
            waiting_of: Vec::new(),
            frames: Vec::new(),
            written: 0,
            room: Room::Left,
        };
        if is_output {
            sink.waiting.extend(&sink.head);
        } else {
            sink.next_file()?;
        }
        sink.flush()?;
        Ok(sink)
    }

    pub fn file(&self) -> &Path {
        match &self.target {
            Target::File(_, path) => path,
            Target::Output => &self.path,
        }
    }

    /// Adds the block of a frame of this interface.
    ///
    /// # Errors
    /// See [`SinkError`].
    pub fn add(&mut self, interface: u32, block: &[u8]) -> Result<Room, SinkError> {
        if self.room != Room::Left {
            return Ok(self.room);
        }
        let bytes = self.written + self.waiting.len() as u64 + block.len() as u64 + self.tail;
        if bytes > self.limits.bytes {
            let own = self.head.len() as u64 + block.len() as u64 + self.tail;
            if self.limits.files <= 1 || own > self.limits.bytes {
                self.room = Room::Full;
                return Ok(Room::Full);
            }
            self.flush()?;
            self.next_file()?;
        }
        self.waiting.extend(block);
        self.waiting_of.push(interface);
        if self.waiting.len() >= TOGETHER {
            self.flush()?;
        }
        Ok(self.room)
    }

    /// Writes pending blocks, so that readers of the file can see them.
    ///
    /// # Errors
    /// See [`SinkError`]. A partly written block is cut off the file, and its frame is not counted.
    pub fn flush(&mut self) -> Result<Room, SinkError> {
        let result = match &mut self.target {
            Target::File(file, _) => file.write_all(&self.waiting),
            Target::Output => {
                let mut out = io::stdout().lock();
                out.write_all(&self.waiting).and_then(|()| out.flush())
            }
        };
        let of = std::mem::take(&mut self.waiting_of);
        match (result, &mut self.target) {
            (Ok(()), _) => {
                self.written += self.waiting.len() as u64;
                self.waiting.clear();
                for interface in of {
                    let interface = interface as usize;
                    if self.frames.len() <= interface {
                        self.frames.resize(interface + 1, 0);
                    }
                    self.frames[interface] += 1;
                }
                Ok(self.room)
            }
            (Err(error), Target::Output) if error.kind() == ErrorKind::BrokenPipe => {
                self.waiting.clear();
                self.room = Room::Unread;
                Ok(Room::Unread)
            }
            (Err(source), target) => {
                // Truncate partial blocks: the statistics need the room.
                if let Target::File(file, _) = target {
                    let _ = file.set_len(self.written);
                    let _ = io::Seek::seek(file, io::SeekFrom::Start(self.written));
                }
                self.waiting.clear();
                self.room = Room::Full;
                let path = self.file().to_owned();
                Err(SinkError::Io { path, source })
            }
        }
    }

    /// Ends the capture with its statistics.
    ///
    /// # Errors
    /// See [`SinkError`].
    pub fn finish(&mut self, statistics: &[u8]) -> Result<(), SinkError> {
        self.flush()?;
        self.waiting.extend(statistics);
        self.flush().map(drop)
    }

    /// Frames written of an interface.
    pub fn frames(&self, interface: usize) -> u64 {
        self.frames.get(interface).copied().unwrap_or(0)
    }

    pub fn written(&self) -> u64 {
        self.written
    }

    fn next_file(&mut self) -> Result<(), SinkError> {
        self.files += 1;
        let path = match self.limits.files {
            0 | 1 => self.path.clone(),
            _ => numbered(&self.path, self.files),
        };
        let failed = |source| SinkError::Io {
            path: path.clone(),
            source,
        };
        let file = File::create(&path).map_err(failed)?;
        if self.limits.files > 1 {
            self.ring.push_back(path.clone());
            if self.ring.len() > self.limits.files
                && let Some(oldest) = self.ring.pop_front()
            {
                // Ignore an error: the file may have been removed already.
                let _ = fs::remove_file(oldest);
            }
        }
        self.target = Target::File(file, path);
        self.written = 0;
        self.waiting.extend(&self.head);
        Ok(())
    }
}

/// The name of file number `number` of a ring: `x.pcapng` gives `x-00001.pcapng`.
fn numbered(path: &Path, number: u64) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(extension) => format!("{stem}-{number:05}.{}", extension.to_string_lossy()),
        None => format!("{stem}-{number:05}"),
    };
    path.with_file_name(name)
}

/// Bytes of the statistics of this many interfaces.
pub fn tail(interfaces: usize) -> u64 {
    interfaces as u64 * pcapng::STATISTICS_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: [u8; 8] = [1; 8];

    fn sink(path: &Path, bytes: u64, files: usize) -> Result<Sink, SinkError> {
        Sink::new(path, HEAD.to_vec(), 4, Limits { bytes, files })
    }

    #[test]
    fn a_file_ends_at_its_limit_with_room_for_its_end() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("x.pcapng");
        let mut to = sink(&path, 40, 1).expect("it begins");
        let blocks: Vec<_> = (0..5)
            .map(|_| to.add(0, &[2; 8]).expect("it fits"))
            .collect();
        assert_eq!(blocks[..3], [Room::Left; 3]);
        assert_eq!(blocks[3..], [Room::Full; 2]);
        to.finish(&[3; 4]).expect("the end fits");
        let file = fs::read(&path).expect("it is there");
        assert_eq!(file.len(), 8 + 3 * 8 + 4);
        assert!(matches!(
            sink(&path, 11, 1),
            Err(SinkError::TooSmall { least: 12, .. })
        ));
        assert!(matches!(
            sink(Path::new("-"), 99, 2),
            Err(SinkError::NoRing)
        ));
    }

    #[test]
    fn a_ring_keeps_its_last_files_and_each_is_complete() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut to = sink(&dir.path().join("x.pcapng"), 24, 2).expect("it begins");
        for block in 0..6 {
            assert_eq!(to.add(0, &[block; 8]).expect("it goes on"), Room::Left);
        }
        to.finish(&[9; 4]).expect("it ends");
        let mut names: Vec<_> = fs::read_dir(dir.path())
            .expect("a directory")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["x-00005.pcapng", "x-00006.pcapng"]);
        let last = fs::read(to.file()).expect("the last");
        assert_eq!(last, [&HEAD[..], &[5; 8], &[9; 4]].concat());
        // A block larger than a file must not lead to an endless ring.
        assert_eq!(to.add(0, &[0; 20]).expect("no error"), Room::Full);
    }

    #[test]
    fn a_full_disk_leaves_whole_blocks_and_a_remedy() {
        let Ok(file) = File::options().write(true).open("/dev/full") else {
            return;
        };
        let dir = tempfile::tempdir().expect("a directory");
        let mut to = sink(&dir.path().join("x"), 1 << 20, 1).expect("it begins");
        to.add(1, &[2; 8]).expect("it waits");
        to.flush().expect("it is written");
        to.target = Target::File(file, PathBuf::from("/dev/full"));
        to.add(0, &[2; 8]).expect("it waits");
        let error = to.flush().expect_err("nothing can be written").to_string();
        assert!(
            error.contains("/dev/full") && error.contains("free some space"),
            "{error}"
        );
        assert_eq!(to.add(0, &[2; 8]).expect("no second error"), Room::Full);
        assert_eq!((to.frames(0), to.frames(1)), (0, 1), "what is in the file");
    }
}
