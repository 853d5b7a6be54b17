//! Network interfaces of the current network namespace.

use pnet::datalink;
use pnet::util::MacAddr;

use super::interface_watch::InterfaceWatch;

/// What the backends need to know of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// The kernel's index of it.
    pub index: u32,
    /// Its hardware address; zero on loopback.
    pub mac: MacAddr,
    /// The longest payload of a frame on it, in bytes.
    pub mtu: usize,
}

/// Looks up an interface by name in the current network namespace.
///
/// # Errors
/// The names of the interfaces that do exist, when this one does not.
pub fn find_interface(name: &str) -> Result<Interface, Vec<String>> {
    let watch = InterfaceWatch::new([name.to_owned()]).ok();
    match watch.as_ref().and_then(|watch| watch.find(name)) {
        Some(found) => Ok(Interface {
            name: name.to_owned(),
            index: found.index,
            mac: found.mac,
            mtu: found.mtu,
        }),
        None => Err(datalink::interfaces().into_iter().map(|i| i.name).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_found_and_a_missing_interface_lists_what_there_is() {
        let lo = find_interface("lo").expect("every namespace has lo");
        assert!(lo.mtu >= 1500 && lo.index > 0);
        let others = find_interface("no-such-if").expect_err("no such interface");
        assert!(others.contains(&"lo".to_owned()));
    }
}
