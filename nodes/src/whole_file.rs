//! Files that are there wholly or not at all: what a command writes in one piece.
//!
//! It is written beside the file that it shall be, and takes its place only when all of it is there.
//! So a full disk, or whatever else goes wrong, leaves an older file of that name as it was.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// Writes a file. What is no regular file (a pipe, `/dev/stdout`) is written to as it is, and so is a
/// file in a folder that nothing can be added to.
///
/// # Errors
/// What the kernel says; then what was there before is there still.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    // Where a name leads elsewhere, it goes on leading there.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let before = fs::metadata(&target).ok();
    if before.as_ref().is_some_and(|before| !before.is_file()) {
        return fs::write(path, bytes);
    }
    let beside = beside(&target);
    let file = match File::create_new(&beside) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::PermissionDenied && before.is_some() => {
            return fs::write(path, bytes);
        }
        Err(error) => return Err(error),
    };
    let written = fill(file, before.as_ref(), bytes.as_ref());
    let written = written.and_then(|()| fs::rename(&beside, &target));
    if written.is_err() {
        // It is of no use to anybody.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn fill(mut file: File, before: Option<&Metadata>, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    if let Some(before) = before {
        file.set_permissions(before.permissions())?;
    }
    // Some file systems find out late that they are full.
    file.sync_all()
}

/// A name beside a file that no other process takes.
fn beside(target: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
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
    fn a_file_takes_the_place_of_an_older_one_and_its_rights() {
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
    fn what_is_no_regular_file_is_written_to() {
        if let Err(error) = write(Path::new("/dev/full"), "text") {
            assert_eq!(error.kind(), ErrorKind::StorageFull);
        }
        assert!(!fs::metadata("/dev/full").is_ok_and(|full| full.is_file()));
    }

    #[test]
    fn what_goes_wrong_leaves_the_older_file_and_nothing_else() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("file");
        write(&file, "old").expect("it is written");
        // Somebody else's half has the name: nothing of theirs is touched.
        let half = beside(&file);
        fs::write(&half, "half").expect("it is written");
        assert!(write(&file, "new").is_err());
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "old");
        assert_eq!(fs::read_to_string(&half).expect("it is there"), "half");
        assert!(write(&dir.path().join("none/file"), "new").is_err());
    }
}
