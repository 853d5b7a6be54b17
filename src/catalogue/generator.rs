//! Networks made from options.

use super::options::{Given, Kind, OptionError, OptionSpec};
use crate::net::{Clock, Generated, MAX_DILATION, OwnSettings, Profile, Settings};

/// What makes networks of a machine from options.
#[derive(Debug)]
pub struct Generator {
    /// The word by which it is asked for.
    pub name: &'static str,
    /// What it makes, in one line.
    pub about: &'static str,
    /// Its own options, besides the [common](COMMON_OPTIONS) ones.
    pub options: &'static [OptionSpec],
    /// Makes the network of these options, its own and common ones, or says why there is none.
    pub generate: fn(&Given) -> Generated,
    /// Options whose networks may have that outline, the likeliest first: all that are worth trying.
    pub sizes: fn(&Outline) -> Vec<Given>,
}

/// What a graph tells at a glance of the network that it may be of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Its routers.
    pub routers: usize,
    /// Its network interfaces.
    pub nics: usize,
    /// Links of a network interface, at most.
    pub nic_links: usize,
    /// Network interfaces at one router, at most.
    pub nics_of_router: usize,
    /// Routers that one with network interfaces is joined to, at most.
    pub peers: usize,
    /// Pairs of routers that are joined.
    pub joined: usize,
    /// All links; `None` where those between the same two nodes are told as one.
    pub links: Option<usize>,
}

impl Given {
    /// Options with a value each.
    pub fn of<const N: usize>(options: [(&'static str, String); N]) -> Self {
        let mut given = Self::default();
        for (name, value) in options {
            given.add(name, vec![value]);
        }
        given
    }
}

/// The options that all generators have; [`common`] reads them.
pub const COMMON_OPTIONS: [OptionSpec; 3] = [
    OptionSpec::new(
        "profile",
        "PROFILE",
        Kind::Words(&[Profile::ALL[0].0, Profile::ALL[1].0]),
        "Depths of buffers and windows: for processes, or the chip's own [default: live]",
    ),
    OptionSpec::new(
        "paced",
        "DILATION",
        Kind::Number(1, MAX_DILATION as u64),
        "Pace the clock: one emulated nanosecond takes N real ones [default: free-running]",
    ),
    OptionSpec::new(
        "name",
        "NAME",
        Kind::Text,
        "Name of the network [default: made from its shape]",
    ),
];

/// What the [common options](COMMON_OPTIONS) say: the name of the network, empty if it is to be
/// made from the shape, and its settings, which are the usual ones in all else.
///
/// # Errors
/// A value that is none of its option.
pub fn common<Own: OwnSettings>(given: &Given) -> Result<(String, Settings<Own>), OptionError> {
    let mut settings = Settings::default();
    let word = |text: &str| {
        let found = Profile::ALL.iter().find(|(name, _)| *name == text);
        let found = found.map(|(_, profile)| *profile);
        found.ok_or_else(|| "it is no profile".to_owned())
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
