//! What the provider does not support. Each refusal appears by name in libfabric's log
//! (`FI_LOG_LEVEL=warn`).

use super::*;

/// libfabric's bits and their names.
type Names = [(u64, &'static str)];

/// Unsupported capabilities.
const CAPABILITIES: &Names = &[
    (FI_MULTICAST, "FI_MULTICAST"),
    (FI_COLLECTIVE, "FI_COLLECTIVE"),
    (FI_TRIGGER, "FI_TRIGGER"),
    (FI_FENCE, "FI_FENCE"),
    (FI_HMEM, "FI_HMEM"),
    (FI_RMA_PMEM, "FI_RMA_PMEM"),
    (FI_SOURCE_ERR, "FI_SOURCE_ERR"),
    (FI_SHARED_AV, "FI_SHARED_AV"),
    (FI_NAMED_RX_CTX, "FI_NAMED_RX_CTX"),
];
/// Unsupported flags of operations, including an endpoint's default flags.
const FLAGS: &Names = &[
    (FI_TRIGGER, "FI_TRIGGER"),
    (FI_FENCE, "FI_FENCE"),
    (FI_COMMIT_COMPLETE, "FI_COMMIT_COMPLETE"),
    (FI_MATCH_COMPLETE, "FI_MATCH_COMPLETE"),
];

fn names_of(bits: u64, names: &Names) -> Vec<&'static str> {
    let found = names.iter().filter(|(bit, _)| bits & bit != 0);
    found.map(|&(_, name)| name).collect()
}

/// Logs that something is not supported. Returns `errno`.
pub fn refuse(what: &str, errno: i32) -> i32 {
    library::log(&format!("not supported: {what}"));
    errno
}

/// Flags of counters that count operations of peers.
pub const REMOTE: u64 = FI_REMOTE_READ | FI_REMOTE_WRITE;

/// Refuses a counter of peers' operations in a domain that does not count them.
pub fn no_remote_counters() -> i32 {
    let what = "counters of remote operations in a domain without FI_RMA_EVENT";
    refuse(what, libc::EOPNOTSUPP)
}

/// Whether all wanted capabilities are among the `supported` ones; logs the others.
pub fn has(wanted: u64, supported: u64) -> bool {
    let lacking = wanted & !supported;
    if lacking != 0 {
        match names_of(lacking, CAPABILITIES) {
            names if names.is_empty() => refuse(&format!("capabilities {lacking:#x}"), 0),
            names => refuse(&names.join(", "), 0),
        };
    }
    lacking == 0
}

/// Checks the flags of an operation.
///
/// # Errors
/// `EOPNOTSUPP`; the log has the names.
pub fn check_flags(flags: u64) -> Result<(), i32> {
    match names_of(flags, FLAGS) {
        names if names.is_empty() => Ok(()),
        names => Err(refuse(&names.join(", "), libc::EOPNOTSUPP)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_bits_have_names() {
        let caps = FI_MSG | FI_TRIGGER | FI_SHARED_AV;
        assert_eq!(names_of(caps, CAPABILITIES), ["FI_TRIGGER", "FI_SHARED_AV"]);
        assert!(!has(caps, info::CAPS));
        assert!(has(info::CAPS, info::CAPS));
        assert_eq!(check_flags(FI_FENCE), Err(libc::EOPNOTSUPP));
        assert_eq!(check_flags(FI_DELIVERY_COMPLETE | FI_COMPLETION), Ok(()));
        let all = CAPABILITIES.iter().fold(0, |all, (bit, _)| all | bit);
        assert_eq!(all & info::CAPS, 0, "a supported one is listed");
    }
}
