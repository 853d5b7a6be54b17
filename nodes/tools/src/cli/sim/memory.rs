//! The memory that a run needs, estimated before the network is built.

use phitwire::net::Network;
use phitwire::sim::direct::Links;
use phitwire_nodes::output::print_error;

/// Bytes per link end, including its share of the router: 6 to 11 KiB were measured on networks of
/// 4,000 to 40,000 link ends.
const DIRECT: u64 = 10 << 10;
/// The same for links that carry frames: 17 to 20 KiB.
const ENCODED: u64 = 20 << 10;
/// The same with NICs: 29 KiB on the T3E, up to 53 KiB on Aries.
const WITH_NICS: u64 = 50 << 10;

/// Warns if a network needs more memory than is available, before it is built.
pub(super) fn warn(network: &dyn Network, links: Links) {
    let of_end = match links {
        Links::Direct => DIRECT,
        Links::Encoded(_) => ENCODED,
    };
    warn_of(network, of_end);
}

/// The same for a network with its NICs.
pub(super) fn warn_with_nics(network: &dyn Network) {
    warn_of(network, WITH_NICS);
}

fn warn_of(network: &dyn Network, of_end: u64) {
    let needed = 2 * network.link_count() as u64 * of_end;
    // Without /proc there is nothing to compare with.
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    if let Some(available) = available(&meminfo).filter(|&available| needed > available) {
        let [needed, available] = [needed, available].map(|bytes| bytes as f64 / 1e9);
        print_error(&format!(
            "this network needs about {needed:.1} GB of memory, but only {available:.1} GB are \
             available"
        ));
    }
}

/// The available bytes in the text of `/proc/meminfo`.
fn available(meminfo: &str) -> Option<u64> {
    let mut lines = meminfo.lines();
    let rest = lines.find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = rest.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::available;

    #[test]
    fn the_available_memory_is_read() {
        let text = "MemTotal:       24683684 kB\nMemAvailable:   21370000 kB\nBuffers: 1 kB\n";
        assert_eq!(available(text), Some(21_370_000 << 10));
        assert_eq!(available("MemTotal: 5 kB\n"), None);
        assert_eq!(available("MemAvailable: many kB\n"), None);
    }
}
