use std::sync::OnceLock;

use phitwire::catalogue::Catalogue;

static MACHINES: OnceLock<Catalogue> = OnceLock::new();

/// Sets the machines that all commands know. Only the first call has an effect.
pub fn install(machines: Catalogue) {
    let _ = MACHINES.set(machines);
}

/// The machines of this program.
///
/// # Panics
/// Before [`install`].
pub fn machines() -> Catalogue {
    #[cfg(test)]
    install(phitwire_machines::CATALOGUE);
    *MACHINES.get().expect("main installs the machines first")
}
