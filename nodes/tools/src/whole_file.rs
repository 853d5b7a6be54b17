//! Atomic file writes: a file appears complete or not at all.
//!
//! The content is written to a new file in the target's directory, which replaces the target only
//! when complete. So a full disk, or any other error, leaves an older file of that name unchanged.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Path, PathBuf};

/// Maximum number of names tried for the new file; killed processes may have left some.
const NAMES: u32 = 16;

/// Writes a file. Some targets are overwritten directly: special files (a pipe, a terminal), files
/// named by the kernel (`/dev/stdout`), and files that cannot be replaced (in a read-only folder, a
/// mount point, or of another owner that replacement would change).
///
/// # Errors
/// The kernel's error; the old content is then unchanged, unless it was overwritten directly.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let bytes = bytes.as_ref();
    match replaced(path, bytes) {
        Some(result) => result,
        None => fs::write(path, bytes),
    }
}

/// Replaces the file; `None` if it must be overwritten directly.
fn replaced(path: &Path, bytes: &[u8]) -> Option<io::Result<()>> {
    // Resolve a symbolic link, so that it keeps pointing to its target.
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(_) if fs::symlink_metadata(path).is_ok() => return None,
        Err(_) => path.to_owned(),
    };
    let before = fs::metadata(&target).ok();
    let is_kernels = ["/dev", "/proc"].iter().any(|of| path.starts_with(of));
    if is_kernels || before.as_ref().is_some_and(|before| !before.is_file()) {
        return None;
    }
    let (file, temporary_path) = match create_temporary(&target) {
        Ok(created) => created,
        Err(error) => return is_full(&error).then_some(Err(error)),
    };
    let result = match before.map_or(Ok(()), |before| become_like(&file, &before)) {
        Err(_) => None,
        Ok(()) => Some(fill(file, bytes)),
    };
    let result = match result {
        Some(Ok(())) => match fs::rename(&temporary_path, &target) {
            Ok(()) => return Some(Ok(())),
            Err(error) => is_full(&error).then_some(Err(error)),
        },
        other => other,
    };
    // Remove the useless partial file.
    let _ = fs::remove_file(&temporary_path);
    result
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    )
}

/// Creates a file in the same directory as another, under an unused name.
fn create_temporary(target: &Path) -> io::Result<(File, PathBuf)> {
    let mut number = 0;
    loop {
        let temporary_path = temporary_path(target, number);
        match File::create_new(&temporary_path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && number + 1 < NAMES => {
                number += 1;
            }
            created => return created.map(|file| (file, temporary_path)),
        }
    }
}

/// Gives a file the owner and permissions of the one that it replaces.
fn become_like(file: &File, before: &Metadata) -> io::Result<()> {
    let now = file.metadata()?;
    if (now.uid(), now.gid()) != (before.uid(), before.gid()) {
        fchown(file, Some(before.uid()), Some(before.gid()))?;
    }
    file.set_permissions(before.permissions())
}

fn fill(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    // Sync, because some file systems report only late that they are full.
    file.sync_all()
}

fn temporary_path(target: &Path, number: u32) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}-{number}.part", std::process::id()));
    target.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt, symlink};

    use super::*;

    fn names(dir: &Path) -> Vec<OsString> {
        let entries = fs::read_dir(dir).expect("a folder");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_replaces_an_older_one_and_keeps_its_permissions() {
        let dir = tempfile::tempdir().expect("a folder");
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        write(&file, "old").expect("it is written");
        fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).expect("it is ours");
        symlink("file", &link).expect("a link");
        write(&link, "new").expect("it is written");
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "new");
        let mode = fs::metadata(&file).expect("it is there").mode() & 0o777;
        assert_eq!(mode, 0o640);
        let is_link = fs::symlink_metadata(&link).expect("it is there");
        assert!(is_link.is_symlink(), "a link stays one");
        assert_eq!(names(dir.path()), ["file", "link"]);
    }

    #[test]
    fn special_files_are_written_directly() {
        if let Err(error) = write(Path::new("/dev/full"), "text") {
            assert_eq!(error.kind(), ErrorKind::StorageFull);
        }
        assert!(!fs::metadata("/dev/full").is_ok_and(|full| full.is_file()));
    }

    #[test]
    fn failures_leave_only_the_older_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("file");
        write(&file, "old").expect("it is written");
        // Another process's partial file has this name and must stay untouched.
        let half = temporary_path(&file, 0);
        fs::write(&half, "half").expect("it is written");
        write(&file, "new").expect("there are other names");
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "new");
        assert_eq!(fs::read_to_string(&half).expect("it is there"), "half");
        assert!(write(&dir.path().join("none/file"), "new").is_err());
        assert_eq!(names(dir.path()).len(), 2);
    }

    #[test]
    fn a_link_to_nothing_goes_on_leading_there() {
        let dir = tempfile::tempdir().expect("a folder");
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        symlink("file", &link).expect("a link");
        write(&link, "text").expect("it is written");
        let is_link = fs::symlink_metadata(&link).expect("it is there");
        assert!(is_link.is_symlink(), "a link stays one");
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "text");
        // A deleted file still has a name under `/proc`.
        let open = File::create(dir.path().join("gone")).expect("it is ours");
        fs::remove_file(dir.path().join("gone")).expect("it is ours");
        let kernels = dir.path().join("kernels");
        let number = std::os::fd::AsRawFd::as_raw_fd(&open);
        symlink(format!("/proc/self/fd/{number}"), &kernels).expect("a link");
        write(&kernels, "text").expect("it is written");
        assert_eq!(open.metadata().expect("it is open").len(), 4);
        assert_eq!(names(dir.path()), ["file", "kernels", "link"]);
    }

    #[test]
    fn a_long_name_is_one() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("n".repeat(250));
        write(&file, "text").expect("it is written");
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "text");
    }

    #[test]
    fn a_file_of_another_user_keeps_its_owner() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("file");
        write(&file, "old").expect("it is written");
        // Only root can change the owner; for others it stays the same.
        let owner = match std::os::unix::fs::chown(&file, Some(65_534), None) {
            Ok(()) => 65_534,
            Err(_) => fs::metadata(&file).expect("it is there").uid(),
        };
        write(&file, "new").expect("it is written");
        assert_eq!(fs::metadata(&file).expect("it is there").uid(), owner);
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "new");
    }
}
