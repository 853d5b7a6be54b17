//! Frames that reached this machine but that the kernel did not deliver.
//!
//! A socket whose receive buffer is full drops incoming messages: the process had no time to read,
//! or was suspended. The kernel counts these per socket, in *messages*. A train of frames that
//! arrives in one piece, as segmentation offload sends them over UDP, is one message of an unknown
//! number of frames. The kernel's counts have 32 bits, and those of an interface restart with a new
//! interface, so both are read periodically and summed here.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::mem::size_of;
use std::os::fd::RawFd;

/// Index of the drops in `SO_MEMINFO` (`SK_MEMINFO_DROPS`), and the length of the array.
const MEMINFO_DROPS: usize = 8;
const MEMINFO_WORDS: usize = 16;

#[derive(Debug, Default)]
pub(super) struct SocketDrops {
    last: Cell<u32>,
    sum: Cell<u64>,
}

impl SocketDrops {
    /// Messages dropped since the socket was opened.
    pub fn read(&self, fd: RawFd) -> u64 {
        if let Some(now) = socket_drops(fd) {
            self.add(now);
        }
        self.sum.get()
    }

    fn add(&self, now: u32) {
        let more = now.wrapping_sub(self.last.replace(now));
        self.sum.set(self.sum.get() + u64::from(more));
    }
}

/// The kernel's count for a socket, modulo 2^32.
fn socket_drops(fd: RawFd) -> Option<u32> {
    let mut words = [0_u32; MEMINFO_WORDS];
    let mut length = size_of::<[u32; MEMINFO_WORDS]>() as libc::socklen_t;
    // SAFETY: pointer and length are those of an array that lives through the call; the kernel
    // writes at most `length` bytes and returns how many.
    let result = unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            words.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    let written = length as usize / size_of::<u32>();
    (result == 0 && written > MEMINFO_DROPS).then(|| words[MEMINFO_DROPS])
}

/// Counts received frames that interfaces drop before any socket sees them: the queues of a busy
/// processor were full, or no socket was open for them.
#[derive(Debug)]
pub(super) struct InterfaceDrops {
    /// The last count and the sum, by interface name.
    interfaces: RefCell<BTreeMap<String, (u64, u64)>>,
}

impl InterfaceDrops {
    /// Starts counting drops of these interfaces.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        let mut interfaces: BTreeMap<_, _> = names.into_iter().map(|name| (name, (0, 0))).collect();
        for_each_drop(|name, now| {
            if let Some(seen) = interfaces.get_mut(name) {
                seen.0 = now;
            }
        });
        Self {
            interfaces: RefCell::new(interfaces),
        }
    }

    /// Frames dropped so far by all of the interfaces.
    pub fn read(&self) -> u64 {
        let mut interfaces = self.interfaces.borrow_mut();
        if interfaces.is_empty() {
            return 0;
        }
        for_each_drop(|name, now| {
            if let Some((last, sum)) = interfaces.get_mut(name) {
                // A lower count belongs to a new interface of that name, which counts from zero:
                // add all of it.
                *sum += now.checked_sub(*last).unwrap_or(now);
                *last = now;
            }
        });
        interfaces.values().map(|&(_, sum)| sum).sum()
    }
}

/// Calls `each` with the name of every interface in this thread's namespace and its receive drops.
fn for_each_drop(mut each: impl FnMut(&str, u64)) {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    for (name, drops) in text.lines().filter_map(drops_of_line) {
        each(name, drops);
    }
}

/// Parses a line of `/proc/thread-self/net/dev`: a name, a colon, then the received bytes, packets,
/// errors and drops, followed by other columns.
fn drops_of_line(line: &str) -> Option<(&str, u64)> {
    let (name, numbers) = line.split_once(':')?;
    let drops = numbers.split_whitespace().nth(3)?.parse().ok()?;
    Some((name.trim(), drops))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_32_bits_are_added_up() {
        let drops = SocketDrops::default();
        for now in [7, u32::MAX, 3] {
            drops.add(now);
        }
        assert_eq!(drops.sum.get(), (1 << 32) + 3);
    }

    #[test]
    fn the_lines_of_the_kernel_are_read_and_its_head_is_not() {
        assert_eq!(
            drops_of_line("    p0: 1234    10    0    56    0     0          0         0      1 2"),
            Some(("p0", 56))
        );
        for line in [
            "Inter-|   Receive                         |  Transmit",
            " face |bytes    packets errs drop fifo frame",
            "p0: 1 2",
            "p0: 1 2 3 x 5",
            "",
        ] {
            assert_eq!(drops_of_line(line), None, "{line}");
        }
        let mut seen = Vec::new();
        for_each_drop(|name, _| seen.push(name.to_owned()));
        assert!(seen.contains(&"lo".to_owned()), "{seen:?}");
    }
}
