//! This program's door and job.

use std::collections::hash_map::DefaultHasher;
use std::env;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use phitwire_client::attach::PATIENCE;
use phitwire_client::doors;

use crate::engine::slots::{LEAST_RECEIVES, RECEIVES};
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
/// Variables in which launchers pass the number of ranks.
const SIZES: [&str; 4] = [
    "PHITWIRE_RANKS",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "SLURM_NTASKS",
];
/// Posted receives of a NIC, for all programs there.
const NIC_RECEIVES: usize = 1024;
/// Number of a program's endpoints that get a full share of receives.
const FIRST_ENDPOINTS: usize = 2;
/// Receives of each further endpoint: a program that has a NIC for itself may have 32 of them.
const LATER_RECEIVES: usize = 16;
/// The job of programs without `PHITWIRE_JOB`.
const ANY_JOB: u64 = 0x7068_6974_7769_7265;

/// Door and job that a program attaches to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachTarget {
    /// Path of the door, the socket of a NIC.
    pub door: PathBuf,
    /// The number that the programs of the job share.
    pub job: u64,
    /// Whether the NIC may reach this program's own memory.
    pub reach: bool,
    /// Receives that an endpoint keeps posted.
    pub receives: usize,
}

impl AttachTarget {
    /// Reads the environment: `PHITWIRE_DOOR`, a socket; otherwise `PHITWIRE_LAB`, a lab over whose
    /// NICs the job's programs are distributed by rank.
    ///
    /// # Errors
    /// Neither is set, or the door does not exist: the reason, with the paths.
    pub fn of_environment() -> Result<Self, String> {
        let number = |names: &[&str]| {
            let mut all = names.iter();
            all.find_map(|name| env::var(name).ok()?.parse().ok())
        };
        let ranks: usize = number(&SIZES).unwrap_or(1);
        let lab = env::var_os("PHITWIRE_LAB").map(|lab| run_dir().join(lab));
        let rank = number(&RANKS).unwrap_or(0);
        let (door, doors) = door_of(env::var_os("PHITWIRE_DOOR").map(PathBuf::from), lab, rank)?;
        let ranks_here = ranks.div_ceil(doors);
        // Allow reach by default: without it, all data go through the segment.
        let reach = env::var_os("PHITWIRE_REACH").is_none_or(|reach| reach != "0");
        Ok(Self {
            door,
            job: job(),
            reach,
            receives: receives_among(ranks_here),
        })
    }

    /// The target for one more endpoint of a program that has `others` already: after the first
    /// ones, each has few receives.
    pub fn for_another_endpoint(&self, others: usize) -> Self {
        let receives = match others < FIRST_ENDPOINTS {
            true => self.receives,
            false => LATER_RECEIVES,
        };
        Self {
            receives,
            ..self.clone()
        }
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

/// Receives per rank if this many ranks share a NIC.
fn receives_among(ranks: usize) -> usize {
    (NIC_RECEIVES / ranks.max(1)).clamp(LEAST_RECEIVES, RECEIVES)
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

/// The door of a program, and the number of doors over which its job is distributed.
fn door_of(
    door: Option<PathBuf>,
    lab: Option<PathBuf>,
    rank: usize,
) -> Result<(PathBuf, usize), String> {
    if let Some(door) = door {
        return match door.exists() {
            // All ranks of the job may be there.
            true => Ok((door, 1)),
            false => Err(format!(
                "the door {} does not exist: check PHITWIRE_DOOR, and whether the lab is up{}",
                door.display(),
                doors::note_of_others(&door)
            )),
        };
    }
    let Some(lab) = lab else {
        return Err("no door: set PHITWIRE_DOOR to a NIC's, or PHITWIRE_LAB to a lab".into());
    };
    let doors = doors::of_lab(&lab);
    let count = doors.len();
    let door = dealt(doors, rank).ok_or_else(|| {
        format!(
            "no NIC has a door in {}: check PHITWIRE_LAB and PHITWIRE_RUN_DIR, and whether the \
             lab is up",
            lab.display()
        )
    })?;
    Ok((door, count))
}

fn dealt(mut doors: Vec<PathBuf>, rank: usize) -> Option<PathBuf> {
    match doors.len() {
        0 => None,
        count => Some(doors.swap_remove(rank % count)),
    }
}

/// Time limit for peers that do not reply to probes, from `PHITWIRE_PATIENCE`: seconds, 0 for none.
pub fn patience() -> Option<Duration> {
    seconds("PHITWIRE_PATIENCE", "whole seconds, or 0 for no limit")
}

/// Time limit for each step of attaching and registering, from `PHITWIRE_ATTACH_PATIENCE`: in
/// seconds, counted only while the program runs.
pub fn attach_patience() -> Duration {
    let limit = seconds("PHITWIRE_ATTACH_PATIENCE", "whole seconds, at least 1");
    limit.filter(|limit| !limit.is_zero()).unwrap_or(PATIENCE)
}

/// The whole seconds of a variable, if it is set to `expected`.
fn seconds(name: &str, expected: &str) -> Option<Duration> {
    let value = env::var(name).ok()?;
    match value.parse::<u32>() {
        Ok(seconds) => Some(Duration::from_secs(seconds.into())),
        Err(_) => {
            eprintln!("phitwire: invalid {name} '{value}': expected {expected}");
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
        let at = |door: &str| AttachTarget {
            door: door.into(),
            job: 1,
            reach: true,
            receives: RECEIVES,
        };
        let source = at("/lab/nic0.door").source();
        assert_eq!(source, at("/lab/nic0.door").source());
        assert_ne!(source, at("/lab/nic1.door").source());
        assert_eq!(Address::of_bytes(source), None);
    }

    #[test]
    fn ranks_of_a_nic_share_its_receives() {
        let receives = [0, 1, 4, 5, 8, 16].map(receives_among);
        assert_eq!(receives, [256, 256, 256, 204, 128, 64]);
        assert_eq!(16 * receives_among(16), NIC_RECEIVES);
        // With `mpi.sh --apart`, which passes twice the number of ranks.
        assert_eq!(8 * 2 * receives_among(2 * 8), NIC_RECEIVES);
        assert_eq!(receives_among(100), LEAST_RECEIVES);
    }

    #[test]
    fn many_endpoints_of_a_program_share_a_nic() {
        let target = AttachTarget {
            door: "/lab/nic0.door".into(),
            job: 1,
            reach: true,
            receives: RECEIVES,
        };
        // OpenSHMEM's contexts are endpoints. One without a receive would get no answers.
        let all = (0..34).map(|others| target.for_another_endpoint(others).receives);
        assert_eq!(all.sum::<usize>(), NIC_RECEIVES);
        assert_eq!(target.for_another_endpoint(1).receives, RECEIVES);
    }

    #[test]
    fn doors_are_dealt_by_number() {
        let lab = tempfile::tempdir().expect("a directory");
        for name in ["nic10.door", "nic2.door", "nic0.door", "nic2.pcap"] {
            std::fs::write(lab.path().join(name), "").expect("a file");
        }
        let names = |rank| {
            let door = dealt(doors::of_lab(lab.path()), rank).expect("there are doors");
            door.file_stem()
                .map(|name| name.to_string_lossy().into_owned())
        };
        assert_eq!(names(0).as_deref(), Some("nic0"));
        assert_eq!(names(1).as_deref(), Some("nic2"));
        assert_eq!(names(2).as_deref(), Some("nic10"));
        assert_eq!(names(4).as_deref(), Some("nic2"));
    }

    #[test]
    fn a_missing_door_is_named() {
        let lab = tempfile::tempdir().expect("a directory");
        let at = |name: &str| lab.path().join(name);
        let error = |door, lab| door_of(door, lab, 0).expect_err("there is none");
        assert!(error(None, None).contains("set PHITWIRE_DOOR"));
        let empty = error(None, Some(at("")));
        assert!(empty.contains(&*at("").to_string_lossy()), "{empty}");
        std::fs::write(at("nic0.door"), "").expect("a file");
        let missing = error(Some(at("nic9.door")), None);
        assert!(missing.contains("nic9.door does not exist"), "{missing}");
        assert!(missing.ends_with("doors there: nic0.door"), "{missing}");
        let found = door_of(None, Some(at("")), 3);
        assert_eq!(found, Ok((at("nic0.door"), 1)));
    }
}
