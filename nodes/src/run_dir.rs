//! Files of running labs: the control sockets `RUN/LAB/NODE.sock`, the sockets `NODE.door` of NICs
//! for local programs, and the pid files `NODE.pid`.
//!
//! `RUN` is `$PHITWIRE_RUN_DIR` or, by default, `/run/phitwire` for root, and
//! `$XDG_RUNTIME_DIR/phitwire-UID` or `/tmp/phitwire-UID` for other users. Directories made here
//! are private to the user, whatever the umask.

use std::env;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::unistd::Uid;

/// Mode bits of a directory in which users other than the owner may create files.
const OTHERS_MAY_WRITE: u32 = 0o022;
/// Mode bit of a directory in which only a file's owner may remove it.
const STICKY: u32 = 0o1000;
/// Mode bits that `chmod` sets.
const ALL_MODE_BITS: u32 = 0o7777;

/// Longest path of a Unix socket, in bytes.
const MAX_SOCKET_PATH: usize = 107;

/// Why a lab's directory, or a node's files in it, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RunDirError {
    #[error(
        "`{0}` is not a valid {1} name: use letters, digits, `.`, `_` and `-`, beginning with a \
         letter or digit"
    )]
    BadName(String, &'static str),
    #[error(
        "the socket path {0} is longer than {MAX_SOCKET_PATH} bytes; set PHITWIRE_RUN_DIR to a \
         shorter directory"
    )]
    PathTooLong(PathBuf),
    /// Another process runs the node.
    #[error(
        "node `{node}` of lab `{lab}` is already running as process {pid}; stop it first (`kill \
         {pid}` or `netns-scripts/down.sh --lab {lab}`)"
    )]
    Running {
        lab: String,
        node: String,
        pid: String,
    },
    /// Other users could have put files into this directory.
    #[error("{path} must be a directory writable only by you: {why}")]
    NotOurs {
        path: PathBuf,
        /// The reason, with the remedy.
        why: NotOurs,
    },
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

/// Why other users could have put files into a directory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOurs {
    /// A symbolic link, whose creator decides where it leads.
    #[error("it is a symbolic link; set PHITWIRE_RUN_DIR to a directory that you own")]
    Link,
    #[error("it is a file; set PHITWIRE_RUN_DIR to a directory that you own")]
    File,
    #[error("it belongs to user {0}; set PHITWIRE_RUN_DIR to a directory that you own")]
    Owner(u32),
    /// Shared by all users, such as `/tmp`.
    #[error(
        "its mode is {mode:o}; set PHITWIRE_RUN_DIR to a directory that you own, such as \
         {path}/phitwire"
    )]
    Shared {
        path: PathBuf,
        /// Mode bits of the directory.
        mode: u32,
    },
    /// Writable by its group or by all users.
    #[error("its mode is {mode:o}; run `chmod go-w {path}`")]
    Writable {
        path: PathBuf,
        /// Mode bits of the directory.
        mode: u32,
    },
}

impl NotOurs {
    /// The reason why a directory with this metadata is not private to us, if any.
    fn of(path: &Path, found: &fs::Metadata) -> Option<Self> {
        let mode = found.mode() & ALL_MODE_BITS;
        let path = path.to_owned();
        if found.is_symlink() {
            Some(Self::Link)
        } else if !found.is_dir() {
            Some(Self::File)
        } else if found.uid() != Uid::effective().as_raw() {
            Some(Self::Owner(found.uid()))
        } else if mode & OTHERS_MAY_WRITE == 0 {
            None
        } else if mode & STICKY != 0 {
            Some(Self::Shared { path, mode })
        } else {
            Some(Self::Writable { path, mode })
        }
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> RunDirError {
    let path = path.to_owned();
    move |source| RunDirError::Io { path, source }
}

/// The directory with the subdirectories of all labs.
pub fn run_dir() -> PathBuf {
    if let Some(dir) = env::var_os("PHITWIRE_RUN_DIR").filter(|dir| !dir.is_empty()) {
        return dir.into();
    }
    let uid = Uid::effective();
    if uid.is_root() {
        return "/run/phitwire".into();
    }
    let base = env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty());
    PathBuf::from(base.unwrap_or_else(|| "/tmp".into())).join(format!("phitwire-{uid}"))
}

/// Names of the labs that have a directory.
pub fn labs() -> Vec<String> {
    let entries = fs::read_dir(run_dir()).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

fn check_name(name: &str, what: &'static str) -> Result<(), RunDirError> {
    let fits = name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    if fits {
        Ok(())
    } else {
        Err(RunDirError::BadName(name.to_owned(), what))
    }
}

/// Checks that no other user can have put files into `directory`, if it exists.
fn check_ours(directory: &Path) -> Result<(), RunDirError> {
    let found = match fs::symlink_metadata(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(at(directory))?,
    };
    match NotOurs::of(directory, &found) {
        None => Ok(()),
        Some(why) => Err(RunDirError::NotOurs {
            path: directory.to_owned(),
            why,
        }),
    }
}

#[derive(Clone, Debug)]
pub struct LabDir {
    lab: String,
    path: PathBuf,
}

impl LabDir {
    /// The directory of `lab` below the [`run_dir`]; it need not exist.
    ///
    /// # Errors
    /// When `lab` is not a valid file name, or the [`run_dir`] is not private to us.
    pub fn new(lab: &str) -> Result<Self, RunDirError> {
        Self::below(&run_dir(), lab)
    }

    /// The directory of `lab` below `run`.
    ///
    /// # Errors
    /// When `lab` is not a valid file name, or `run` is not private to us: in `/tmp`, another user
    /// could have created it first.
    pub fn below(run: &Path, lab: &str) -> Result<Self, RunDirError> {
        check_name(lab, "lab")?;
        check_ours(run)?;
        Ok(Self {
            lab: lab.to_owned(),
            path: run.join(lab),
        })
    }

    pub fn lab(&self) -> &str {
        &self.lab
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The control socket of a node.
    ///
    /// # Errors
    /// When `node` is not a valid file name, or the path is too long for a socket.
    pub fn socket(&self, node: &str) -> Result<PathBuf, RunDirError> {
        self.socket_named(node, "sock")
    }

    /// The socket on which local programs attach to a NIC.
    ///
    /// # Errors
    /// As for [`socket`](Self::socket).
    pub fn door(&self, node: &str) -> Result<PathBuf, RunDirError> {
        self.socket_named(node, "door")
    }

    fn socket_named(&self, node: &str, kind: &str) -> Result<PathBuf, RunDirError> {
        check_name(node, "node")?;
        let path = self.path.join(format!("{node}.{kind}"));
        if path.as_os_str().len() > MAX_SOCKET_PATH {
            return Err(RunDirError::PathTooLong(path));
        }
        Ok(path)
    }

    /// Names of the nodes that have a control socket, sorted; empty if the lab does not exist.
    ///
    /// # Errors
    /// When the directory exists but cannot be read.
    pub fn nodes(&self) -> Result<Vec<String>, RunDirError> {
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(at(&self.path)(error)),
        };
        let mut nodes: Vec<String> = entries
            .filter_map(|entry| {
                Some(
                    entry
                        .ok()?
                        .file_name()
                        .to_str()?
                        .strip_suffix(".sock")?
                        .into(),
                )
            })
            .collect();
        nodes.sort();
        Ok(nodes)
    }

    /// Identifies this incarnation of the lab, as opposed to later labs of the same name.
    ///
    /// # Errors
    /// When the lab does not exist.
    pub fn this(&self) -> Result<ThisLab, RunDirError> {
        Ok(ThisLab {
            path: self.path.clone(),
            directory: File::open(&self.path).map_err(at(&self.path))?,
        })
    }

    /// Claims `node` for this process: creates the lab's directory, locks the pid file, and removes
    /// the socket that a killed process left behind.
    ///
    /// # Errors
    /// [`RunDirError::Running`] when another process holds the claim.
    pub fn claim(&self, node: &str) -> Result<Claim, RunDirError> {
        let sockets = [self.socket(node)?, self.door(node)?];
        let pid_path = self.path.join(format!("{node}.pid"));
        // Another user may have created the directory first: check its owner before opening files.
        make(&self.path).map_err(at(&self.path))?;
        for directory in self.path.parent().into_iter().chain([&*self.path]) {
            check_ours(directory)?;
        }
        let mut pid_file = lock(&self.path, &pid_path).map_err(|error| match error {
            TryLockError::WouldBlock => RunDirError::Running {
                lab: self.lab.clone(),
                node: node.to_owned(),
                pid: fs::read_to_string(&pid_path)
                    .unwrap_or_default()
                    .trim()
                    .to_owned(),
            },
            TryLockError::Error(error) => at(&pid_path)(error),
        })?;
        pid_file.set_len(0).map_err(at(&pid_path))?;
        writeln!(pid_file, "{}", std::process::id()).map_err(at(&pid_path))?;
        for socket in &sockets {
            match fs::remove_file(socket) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(at(socket)(error));
                }
                _ => {}
            }
        }
        let [socket, door] = sockets;
        Ok(Claim {
            socket,
            door,
            pid_path,
            lab_path: self.path.clone(),
            file: pid_file,
        })
    }
}

/// Creates a directory and its missing parents, private to us. A umask can only clear bits of the
/// mode.
fn make(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

/// Opens and locks the pid file in the lab's directory, which is created if missing. A process that
/// exits removes its pid file, and the directory if that is then empty. So the locked file is used
/// only if it is still the one at this path.
fn lock(directory: &Path, path: &Path) -> Result<File, TryLockError> {
    loop {
        make(directory).map_err(TryLockError::Error)?;
        let file = match OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
        {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(TryLockError::Error(error)),
        };
        file.try_lock()?;
        if is_named(&file, path) {
            return Ok(file);
        }
    }
}

/// Whether `path` leads to `file`. No other file can have its inode number while it is open.
fn is_named(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(ours), Ok(named)) => (ours.dev(), ours.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// One incarnation of a lab; a later lab of the same name is a different one.
#[derive(Debug)]
pub struct ThisLab {
    path: PathBuf,
    directory: File,
}

impl ThisLab {
    /// Whether this incarnation of the lab still exists.
    pub fn is_there(&self) -> bool {
        is_named(&self.directory, &self.path)
    }
}

/// A node's claim in a lab, held by this process. Dropping it removes the node's sockets and pid
/// file, and the lab's directory if it is empty. Files of another lab of that name stay.
#[derive(Debug)]
pub struct Claim {
    socket: PathBuf,
    door: PathBuf,
    pid_path: PathBuf,
    lab_path: PathBuf,
    file: File,
}

impl Claim {
    /// Whether the claim still holds. The lab may have been taken down and recreated with another
    /// process for this node.
    pub fn is_held(&self) -> bool {
        is_named(&self.file, &self.pid_path)
    }

    /// Path of the control socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Path of the socket for local programs.
    pub fn door(&self) -> &Path {
        &self.door
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.is_held() {
            return;
        }
        // Ignore errors: nothing depends on the removal.
        let _ = fs::remove_file(&self.socket);
        let _ = fs::remove_file(&self.door);
        let _ = fs::remove_file(&self.pid_path);
        let _ = fs::remove_dir(&self.lab_path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A private run directory, whatever the umask.
    fn private_directory() -> tempfile::TempDir {
        use std::os::unix::fs::PermissionsExt;
        tempfile::Builder::new()
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir()
            .unwrap()
    }

    #[test]
    fn a_live_process_keeps_its_claim_and_files_of_a_dead_one_are_replaced() {
        let run = private_directory();
        let lab = LabDir::below(run.path(), "lab").unwrap();
        let claim = lab.claim("r0").unwrap();
        fs::write(claim.socket(), "").unwrap();
        assert_eq!(lab.nodes().unwrap(), ["r0"]);
        let refusal = lab.claim("r0").expect_err("held").to_string();
        assert!(
            refusal.contains(&std::process::id().to_string()),
            "{refusal}"
        );
        lab.claim("r1").expect("the claim of another node is free");
        // After a process was killed, the lock is gone but the files remain.
        let (socket, pid_path) = (claim.socket.clone(), claim.pid_path.clone());
        drop(claim);
        assert!(!socket.exists() && !pid_path.exists());
        make(lab.path()).unwrap();
        fs::write(&socket, "").unwrap();
        fs::write(&pid_path, "1\n").unwrap();
        let claim = lab.claim("r0").expect("the stale socket is replaced");
        assert!(!socket.exists());
        drop(claim);
        assert!(!lab.path().exists(), "no file is left");
    }

    #[test]
    fn another_lab_of_the_name_is_not_this_one_and_keeps_what_it_has() {
        let run = private_directory();
        let lab = LabDir::below(run.path(), "lab").unwrap();
        let (claim, this) = (lab.claim("manage").unwrap(), lab.this().unwrap());
        assert!(claim.is_held() && this.is_there());
        fs::rename(lab.path(), run.path().join("moved")).unwrap();
        assert!(
            !claim.is_held() && !this.is_there(),
            "the claim and its file are gone"
        );
        let other = lab
            .claim("manage")
            .expect("no process manages the new directory");
        assert!(other.is_held() && !claim.is_held() && !this.is_there());
        drop(claim);
        assert!(other.is_held(), "the old claim removes nothing");
        lab.claim("manage").expect_err("its claim is taken");
    }

    #[test]
    fn a_directory_of_others_is_not_used() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        let why = |run: &Path| match LabDir::below(run, "lab") {
            Err(RunDirError::NotOurs { path, why }) if path == run => Some(why),
            _ => None,
        };
        let early = LabDir::below(&run, "lab").expect("a missing directory is created later");
        fs::create_dir(&run).unwrap();
        let modes = [
            (0o700, None),
            (0o755, None),
            (0o770, Some("its mode is 770; run `chmod go-w ")),
            (
                0o1777,
                Some(
                    "its mode is 1777; set PHITWIRE_RUN_DIR to a directory that you own, such as ",
                ),
            ),
        ];
        for (mode, refusal) in modes {
            fs::set_permissions(&run, fs::Permissions::from_mode(mode)).unwrap();
            let why = why(&run).map(|why| why.to_string());
            match refusal {
                None => assert_eq!(why, None, "{mode:o}"),
                Some(text) => assert!(why.is_some_and(|why| why.starts_with(text)), "{mode:o}"),
            }
        }
        let claim = early.claim("r0");
        assert!(matches!(claim, Err(RunDirError::NotOurs { path, .. }) if path == run));
        assert!(!early.path().join("r0.pid").exists());
        let link = dir.path().join("link");
        symlink(dir.path(), &link).unwrap();
        assert_eq!(why(&link), Some(NotOurs::Link));
        fs::write(dir.path().join("file"), "").unwrap();
        assert_eq!(why(&dir.path().join("file")), Some(NotOurs::File));
    }

    #[test]
    fn names_that_leave_the_directory_and_paths_too_long_are_refused() {
        let run = private_directory();
        for name in ["", "..", "a/b", "-x", "é", ".hidden"] {
            assert!(LabDir::below(run.path(), name).is_err(), "{name}");
        }
        let lab = LabDir::below(run.path(), "lab").unwrap();
        assert!(matches!(lab.socket("a/b"), Err(RunDirError::BadName(..))));
        let deep = run.path().join("x".repeat(100));
        let lab = LabDir::below(&deep, "lab").unwrap();
        assert!(matches!(lab.socket("r0"), Err(RunDirError::PathTooLong(_))));
        assert!(lab.nodes().unwrap().is_empty());
    }
}
