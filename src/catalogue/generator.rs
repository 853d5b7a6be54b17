//! Networks generated from options.

use super::options::{Kind, OptionError, OptionSpec, OptionValues};
use crate::net::{Clock, Generated, MAX_DILATION, OwnSettings, Profile, Settings};

/// Generates networks of a machine from options.
#[derive(Debug)]
pub struct Generator {
    pub name: &'static str,
    /// Purpose of the network, in one line.
    pub about: &'static str,
    /// Options besides the [common](COMMON_OPTIONS) ones.
    pub options: &'static [OptionSpec],
    /// Generates the network from the given options, the common ones included.
    ///
    /// # Errors
    /// Why the network cannot be generated.
    pub generate: fn(&OptionValues) -> Generated,
    /// Options to try, likeliest first, to find a network with that outline.
    pub sizes: fn(&Outline) -> Vec<OptionValues>,
}

/// Numbers that characterise the network behind a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    pub routers: usize,
    pub nics: usize,
    /// Maximum number of links of a NIC.
    pub nic_links: usize,
    /// Maximum number of NICs of a router.
    pub nics_of_router: usize,
    /// Maximum number of neighbours of a router with NICs.
    pub peers: usize,
    /// Pairs of adjacent routers.
    pub joined: usize,
    /// All links; `None` if parallel links were merged.
    pub links: Option<usize>,
}

impl OptionValues {
    /// Options with one value each.
    pub fn of<const N: usize>(options: [(&'static str, String); N]) -> Self {
        let mut given = Self::default();
        for (name, value) in options {
            given.add(name, vec![value]);
        }
        given
    }
}

/// Options that every generator accepts.
pub const COMMON_OPTIONS: [OptionSpec; 3] = [
    OptionSpec::new(
        "profile",
        "PROFILE",
        Kind::Words(&[Profile::ALL[0].0, Profile::ALL[1].0]),
        "Depths of buffers and windows: live (for processes) or paper (as on the chip) [default: \
         live]",
    ),
    OptionSpec::new(
        "paced",
        "DILATION",
        Kind::Number(1, MAX_DILATION as u64),
        "Run the clock at 1/DILATION of real time [default: free-running]",
    ),
    OptionSpec::new(
        "name",
        "NAME",
        Kind::Text,
        "Name of the network [default: derived from its shape]",
    ),
];

/// The values of the [common options](COMMON_OPTIONS): the name of the network, empty if its shape
/// determines it, and its settings, with defaults for all others.
///
/// # Errors
/// If a value is invalid.
pub fn common<Own: OwnSettings>(
    given: &OptionValues,
) -> Result<(String, Settings<Own>), OptionError> {
    let mut settings = Settings::default();
    let word = |text: &str| {
        let found = Profile::ALL.iter().find(|(name, _)| *name == text);
        let found = found.map(|(_, profile)| *profile);
        found.ok_or_else(|| "unknown profile".to_owned())
    };
    if let Some(profile) = given.get_with("profile", word)? {
        settings.profile = profile;
    }
    if let Some(dilation) = given.get("paced")? {
        settings.clock = Clock::Paced { dilation };
    }
    let name = given.get("name")?.unwrap_or_default();
    Ok((name, settings))
}
