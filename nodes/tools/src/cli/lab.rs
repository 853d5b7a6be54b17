//! `phitwire lab`: runs the scripts of `netns-scripts`, which own namespaces, interfaces and
//! qdiscs. This process finds the script and executes it in its place.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Args, Subcommand};
use miette::miette;

/// Environment variable with the directory of the scripts.
const SCRIPTS: &str = "PHITWIRE_SCRIPTS";
/// A file that exists only in that directory.
const MARK: &str = "lib.sh";

#[derive(Args, Debug)]
pub struct LabArgs {
    #[command(subcommand)]
    script: Script,
}

/// Each command passes its arguments to its script; COMMAND --help lists them.
#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
enum Script {
    /// Bring up a lab: namespaces, links and processes of a topology (up.sh)
    Up(Words),
    /// Take down a lab, whatever its state (down.sh)
    Down(Words),
    /// Show processes, links and their impairments (status.sh)
    Status(Words),
    /// Lose, delay, reorder, duplicate or corrupt frames on links, with tc netem (impair.sh)
    Impair(Words),
    /// Start, stop, kill or restart the process of a node (node.sh)
    Node(Words),
    /// Run an MPI program over a lab (mpi.sh)
    Mpi(Words),
    /// Bring up, measure and take down a small network (quickstart.sh)
    Quickstart(Words),
    /// Run a command in a user namespace, where labs work without root (rootless.sh)
    Rootless(Words),
    /// Run a command where tc netem works, if necessary in user-mode Linux (with-netem.sh)
    WithNetem(Words),
}

/// Arguments of a script.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
struct Words {
    /// Passed to the script; --help lists them
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    words: Vec<OsString>,
}

impl Script {
    fn parts(self) -> (&'static str, Vec<OsString>) {
        let (file, words) = match self {
            Self::Up(words) => ("up.sh", words),
            Self::Down(words) => ("down.sh", words),
            Self::Status(words) => ("status.sh", words),
            Self::Impair(words) => ("impair.sh", words),
            Self::Node(words) => ("node.sh", words),
            Self::Mpi(words) => ("mpi.sh", words),
            Self::Quickstart(words) => ("quickstart.sh", words),
            Self::Rootless(words) => ("rootless.sh", words),
            Self::WithNetem(words) => ("with-netem.sh", words),
        };
        (file, words.words)
    }
}

/// Replaces this process with the script, which gets its signals, output and exit status.
///
/// # Errors
/// If there are no scripts, or the kernel cannot run one.
pub fn run(args: LabArgs) -> miette::Result<ExitCode> {
    let (file, words) = args.script.parts();
    let own = env::current_exe().ok();
    let script = own_scripts()?.join(file);
    let mut command = Command::new(&script);
    command.args(words);
    // Make the lab run this build instead of one that the scripts would build first.
    if let Some(directory) = own.as_deref().and_then(Path::parent)
        && env::var_os("PHITWIRE_BIN_DIR").is_none()
        && directory.join("phitwire-msgrate").exists()
    {
        command.env("PHITWIRE_BIN_DIR", directory);
    }
    let error = command.exec();
    Err(miette!("{}: {error}", script.display()))
}

/// The scripts that belong to this command.
///
/// # Errors
/// If there are none.
pub fn own_scripts() -> miette::Result<PathBuf> {
    let named = env::var_os(SCRIPTS).map(PathBuf::from);
    scripts(named, env::current_exe().ok().as_deref())
}

/// The directory of the scripts: from the environment, next to the sources of this build, or where
/// packages install them.
fn scripts(named: Option<PathBuf>, own: Option<&Path>) -> miette::Result<PathBuf> {
    if let Some(named) = named {
        return match named.join(MARK).exists() {
            true => Ok(named),
            false => Err(miette!(
                help = "set it to the directory netns-scripts of the phitwire sources",
                "{SCRIPTS} is {}, which has no {MARK}",
                named.display()
            )),
        };
    }
    let above = own.into_iter().flat_map(Path::ancestors).skip(1);
    let candidates = above.flat_map(|dir| {
        ["netns-scripts", "share/phitwire/netns-scripts"].map(|below| dir.join(below))
    });
    let mut found = candidates.filter(|dir| dir.join(MARK).exists());
    found.next().ok_or_else(|| {
        miette!(
            help = format!("set {SCRIPTS}=DIRECTORY to netns-scripts of the phitwire sources"),
            "cannot find the lab scripts near this executable"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_found_from_a_build_a_prefix_and_the_environment() {
        let root = tempfile::tempdir().expect("a scratch directory");
        let path = |below: &str| root.path().join(below);
        for below in [
            "source/netns-scripts",
            "usr/share/phitwire/netns-scripts",
            "empty",
        ] {
            std::fs::create_dir_all(path(below)).expect("a directory");
        }
        for below in ["source/netns-scripts", "usr/share/phitwire/netns-scripts"] {
            std::fs::write(path(below).join(MARK), "").expect("a file");
        }
        let from = |own: &str| scripts(None, Some(&path(own))).ok();
        assert_eq!(
            from("source/target/release/phitwire"),
            Some(path("source/netns-scripts"))
        );
        assert_eq!(
            from("usr/bin/phitwire"),
            Some(path("usr/share/phitwire/netns-scripts"))
        );
        assert_eq!(from("empty/phitwire"), None);
        let named = |below: &str| scripts(Some(path(below)), None);
        assert_eq!(
            named("source/netns-scripts").ok(),
            Some(path("source/netns-scripts"))
        );
        let error = named("empty").expect_err("nothing is there").to_string();
        assert!(error.contains("PHITWIRE_SCRIPTS"), "{error}");
    }
}
