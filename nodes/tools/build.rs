//! Passes the commit of the sources to the build, if it can be determined.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let commit = git(&["rev-parse", "--short=10", "HEAD"]);
    if let Some(commit) = commit {
        println!("cargo::rustc-env=PHITWIRE_COMMIT={commit}");
    }
    // Any commit or change of branch touches one of these files. A missing file must not be listed,
    // since it would always count as changed.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", name]);
        if let Some(path) = path.filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

/// The first line of git's output; `None` without git, or outside of a checkout of this project.
fn git(words: &[&str]) -> Option<String> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?;
    if !ours.join(".git").exists() {
        return None;
    }
    let said = Command::new("git").args(words).output().ok()?;
    let line = String::from_utf8(said.stdout).ok()?;
    (said.status.success() && !line.trim().is_empty()).then(|| line.trim().to_owned())
}
