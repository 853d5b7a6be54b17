//! Network interfaces of the current network namespace.

use std::os::fd::AsRawFd;

use pnet::datalink;
use pnet::util::MacAddr;
use socket2::{Domain, Socket, Type};

/// The properties of an interface that the backends need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    pub index: u32,
    /// Hardware address; zero on loopback.
    pub mac: MacAddr,
    /// Longest payload of a frame, in bytes.
    pub mtu: usize,
}

/// Looks up an interface by name in the current network namespace.
///
/// # Errors
/// The names of the existing interfaces, when this one does not exist.
pub fn find_interface(name: &str) -> Result<Interface, Vec<String>> {
    let interfaces = datalink::interfaces();
    let Some(found) = interfaces.iter().find(|i| i.name == name) else {
        return Err(interfaces.into_iter().map(|i| i.name).collect());
    };
    Ok(Interface {
        name: name.to_owned(),
        index: found.index,
        mac: found.mac.unwrap_or_default(),
        mtu: mtu_of(name).unwrap_or(1500),
    })
}

/// The MTU of an interface, read by `SIOCGIFMTU`, which uses the caller's namespace. A `/sys`
/// mounted before the thread entered the namespace would not.
fn mtu_of(name: &str) -> Option<usize> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).ok()?;
    // SAFETY: `ifreq` is plain data (a name and a union of integers), for which zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let bytes = name.as_bytes();
    if bytes.len() >= request.ifr_name.len() {
        return None;
    }
    for (to, &from) in request.ifr_name.iter_mut().zip(bytes) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    // SAFETY: the descriptor is open, and `request` outlives the call and is the structure that
    // SIOCGIFMTU reads and writes. The name in it is shorter than the field, so it ends with a
    // zero.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as _, &mut request) };
    if result < 0 {
        return None;
    }
    // SAFETY: SIOCGIFMTU succeeded, so the kernel wrote `ifru_mtu`.
    usize::try_from(unsafe { request.ifr_ifru.ifru_mtu }).ok()
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
