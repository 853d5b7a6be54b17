//! Maps the global ports of a group to other groups.

use core::fmt;
use core::str::FromStr;

/// The global link arrangements of the literature (Camarero, Vallejo and Beivide, *Topological
/// Characterization of Hamming and Dragonfly Networks*, 2014; Hastings et al., *Comparing Global
/// Link Arrangements for Dragonfly Networks*, 2015). A group has one slot per other group, and the
/// arrangement maps each slot to a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Arrangement {
    /// Slot k of group i leads to group k if k < i, otherwise to group k + 1 ("consecutive").
    #[default]
    Absolute,
    /// Slot k of group i leads to group i + k + 1 ("palm tree").
    Relative,
    /// Slots 0, 1, 2, 3, ... of group i lead to groups i + 1, i - 1, i + 2, i - 2, ...
    Circulant,
}

impl Arrangement {
    pub const ALL: [(&'static str, Self); 3] = [
        ("absolute", Self::Absolute),
        ("relative", Self::Relative),
        ("circulant", Self::Circulant),
    ];

    /// Name in descriptions and on command lines.
    pub const fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }

    /// The slot of group `from` that leads to group `to`, among `groups` groups; `from` and `to`
    /// differ.
    pub const fn position(self, groups: u16, from: u16, to: u16) -> u16 {
        let ahead = (to + groups - from) % groups;
        match self {
            Self::Absolute if to < from => to,
            Self::Absolute => to - 1,
            Self::Relative => ahead - 1,
            Self::Circulant if ahead <= groups / 2 => 2 * (ahead - 1),
            Self::Circulant => 2 * (groups - ahead) - 1,
        }
    }
}

impl fmt::Display for Arrangement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Arrangement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(name, _)| *name == text);
        found.map(|(_, arrangement)| *arrangement).ok_or_else(|| {
            format!("unknown arrangement \"{text}\": expected absolute, relative or circulant")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Arrangement::{Absolute, Circulant, Relative};
    use super::*;

    #[test]
    fn each_port_position_of_a_group_leads_to_another_group() {
        for groups in 2..=20 {
            for (_, arrangement) in Arrangement::ALL {
                for from in 0..groups {
                    let mut positions: Vec<u16> = (0..groups)
                        .filter(|&to| to != from)
                        .map(|to| arrangement.position(groups, from, to))
                        .collect();
                    positions.sort_unstable();
                    let all: Vec<u16> = (0..groups - 1).collect();
                    assert_eq!(positions, all, "{arrangement} {groups} {from}");
                }
            }
        }
    }

    /// Figures 2 to 4 of Hastings et al.: nine groups, shown for group 0 and a later one.
    #[test]
    fn arrangements_match_the_literature() {
        let row = |arrangement: Arrangement, from| -> Vec<u16> {
            let mut row: Vec<(u16, u16)> = (0..9)
                .filter(|&to| to != from)
                .map(|to| (arrangement.position(9, from, to), to))
                .collect();
            row.sort_unstable();
            row.into_iter().map(|(_, to)| to).collect()
        };
        assert_eq!(row(Absolute, 0), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(row(Absolute, 3), [0, 1, 2, 4, 5, 6, 7, 8]);
        assert_eq!(row(Relative, 3), [4, 5, 6, 7, 8, 0, 1, 2]);
        assert_eq!(row(Circulant, 0), [1, 8, 2, 7, 3, 6, 4, 5]);
        assert_eq!(row(Circulant, 3), [4, 2, 5, 1, 6, 0, 7, 8]);
    }
}
