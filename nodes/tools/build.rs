//! Tells the commands which commit they were built from, where that can be known.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let commit = git(&["rev-parse", "--short=10", "HEAD"]);
    if let Some(commit) = commit {
        println!("cargo::rustc-env=PHITWIRE_COMMIT={commit}");
    }
    // A commit or another branch changes one of these; a file that is not there would always count
    // as changed.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", name]);
        if let Some(path) = path.filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

/// What git says in one line: nothing without git, and outside of a checkout of this project.
fn git(words: &[&str]) -> Option<String> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?;
    if !ours.join(".git").exists() {
        return None;
    }
    let said = Command::new("git").args(words).output().ok()?;
    let line = String::from_utf8(said.stdout).ok()?;
    (said.status.success() && !line.trim().is_empty()).then(|| line.trim().to_owned())
}
