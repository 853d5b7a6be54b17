//! This program's door and job.

use std::collections::hash_map::DefaultHasher;
use std::env;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::engine::wire::Address;

/// Variables in which launchers pass a program's rank.
const RANKS: [&str; 6] = [
    "PHITWIRE_RANK",
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "SLURM_PROCID",
    "PMI_ID",
];
/// The job of programs without `PHITWIRE_JOB`.
const ANY_JOB: u64 = 0x7068_6974_7769_7265;

/// Door and job that a program attaches to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Path of the door, the socket of a NIC.
    pub door: PathBuf,
    /// The number that the programs of the job share.
    pub job: u64,
    /// Whether the NIC may reach this program's own memory.
    pub reach: bool,
}

impl Place {
    /// Reads the environment: `PHITWIRE_DOOR`, a socket; otherwise `PHITWIRE_LAB`, a lab over whose
    /// NICs the job's programs are distributed by rank. `None` if neither is set, or the door does
    /// not exist.
    pub fn of_environment() -> Option<Self> {
        let door = match env::var_os("PHITWIRE_DOOR") {
            Some(door) => PathBuf::from(door),
            None => {
                let lab = run_dir().join(env::var_os("PHITWIRE_LAB")?);
                let rank = RANKS
                    .iter()
                    .find_map(|name| env::var(name).ok()?.parse().ok());
                dealt(doors(&lab), rank.unwrap_or(0))?
            }
        };
        // Allow reach by default: without it, all data go through the segment.
        let reach = env::var_os("PHITWIRE_REACH").is_none_or(|reach| reach != "0");
        door.exists().then(|| Self {
            door,
            job: job(),
            reach,
        })
    }

    /// The source address of endpoints that are not open yet. It names the door, since a NIC
    /// assigns the rest of an address when it attaches a program; address vectors reject it.
    pub fn source(&self) -> [u8; Address::BYTES] {
        let [a, b, c, d, e, f, g, _] = hash(&self.door).to_le_bytes();
        [a, b, c, Address::OF_A_DOOR, d, e, f, g]
    }

    pub fn name(&self) -> String {
        let stem = self.door.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }
}

fn run_dir() -> PathBuf {
    if let Some(dir) = env::var_os("PHITWIRE_RUN_DIR") {
        return PathBuf::from(dir);
    }
    // The owner of /proc/self is this program's user.
    let user = std::fs::metadata("/proc/self")
        .map_or(0, |meta| std::os::unix::fs::MetadataExt::uid(&meta));
    match user {
        0 => PathBuf::from("/run/phitwire"),
        user => match env::var_os("XDG_RUNTIME_DIR") {
            Some(dir) => Path::new(&dir).join(format!("phitwire-{user}")),
            None => PathBuf::from(format!("/tmp/phitwire-{user}")),
        },
    }
}

/// The doors of a lab, in numerical order.
pub fn doors(lab: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(lab).into_iter().flatten().flatten();
    let mut doors: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "door"))
        .collect();
    doors.sort_by_key(|path| {
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let (head, number) = name.split_at(name.len() - digits);
        (head.to_owned(), number.parse::<u64>().unwrap_or(0))
    });
    doors
}

fn dealt(mut doors: Vec<PathBuf>, rank: usize) -> Option<PathBuf> {
    match doors.len() {
        0 => None,
        count => Some(doors.swap_remove(rank % count)),
    }
}

/// Time limit for peers that do not reply to probes, from `PHITWIRE_PATIENCE`: seconds, 0 for none.
pub fn patience() -> Option<Duration> {
    let seconds = env::var("PHITWIRE_PATIENCE").ok()?;
    match seconds.parse::<u32>() {
        Ok(seconds) => Some(Duration::from_secs(seconds.into())),
        Err(_) => {
            eprintln!(
                "phitwire: invalid PHITWIRE_PATIENCE '{seconds}': expected whole seconds, or 0 for \
                no limit"
            );
            None
        }
    }
}

/// `PHITWIRE_JOB`: a number, or any text, which is hashed.
fn job() -> u64 {
    match env::var("PHITWIRE_JOB") {
        Ok(text) => text.parse().unwrap_or_else(|_| hash(&text)),
        Err(_) => ANY_JOB,
    }
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_names_its_door_and_is_no_peer() {
        let at = |door: &str| Place {
            door: door.into(),
            job: 1,
            reach: true,
        };
        let source = at("/lab/nic0.door").source();
        assert_eq!(source, at("/lab/nic0.door").source());
        assert_ne!(source, at("/lab/nic1.door").source());
        assert_eq!(Address::of_bytes(source), None);
    }

    #[test]
    fn doors_are_dealt_by_number() {
        let lab = tempfile::tempdir().expect("a directory");
        for name in ["nic10.door", "nic2.door", "nic0.door", "nic2.pcap"] {
            std::fs::write(lab.path().join(name), "").expect("a file");
        }
        let names = |rank| {
            let door = dealt(doors(lab.path()), rank).expect("there are doors");
            door.file_stem()
                .map(|name| name.to_string_lossy().into_owned())
        };
        assert_eq!(names(0).as_deref(), Some("nic0"));
        assert_eq!(names(1).as_deref(), Some("nic2"));
        assert_eq!(names(2).as_deref(), Some("nic10"));
        assert_eq!(names(4).as_deref(), Some("nic2"));
    }
}
