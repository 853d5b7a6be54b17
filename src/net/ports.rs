//! Sets of ports of one chip, written as `0-3, 32-35`.

use core::fmt;

use thiserror::Error;

use super::shown::Shown;
use crate::node::MAX_PORTS;

/// A set of physical ports of one chip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PortSet(u64);

/// Why a text does not name a set of ports.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PortSetError {
    #[error("`{}` is not a port number or a range like `0-3`", Shown(.0))]
    NotANumber(String),
    #[error("port {0} does not exist: a chip has ports 0 to {last}", last = MAX_PORTS - 1)]
    OutOfRange(u32),
    #[error("the range {0}-{1} is reversed")]
    Backwards(u32, u32),
    #[error("port {0} is listed twice")]
    Twice(u8),
}

impl PortSet {
    pub const EMPTY: Self = Self(0);
    pub const ALL: Self = Self(u64::MAX);

    /// The set whose bit mask is `bits` (bit *i* = port *i*).
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The `count` ports from `first` on; omits ports that no chip has.
    pub const fn range(first: u8, count: u8) -> Self {
        let mut bits = 0;
        let mut port = first as u32;
        while port < first as u32 + count as u32 && port < MAX_PORTS as u32 {
            bits |= 1 << port;
            port += 1;
        }
        Self(bits)
    }

    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether `port` is in the set; false for a port that no chip has.
    pub const fn contains(self, port: u8) -> bool {
        (port as usize) < MAX_PORTS && self.0 >> port & 1 == 1
    }

    /// The set plus `port`; a port that no chip has is ignored.
    #[must_use]
    pub const fn with(self, port: u8) -> Self {
        if (port as usize) < MAX_PORTS {
            Self(self.0 | 1 << port)
        } else {
            self
        }
    }

    /// Ports in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            (left != 0).then(|| {
                let port = left.trailing_zeros() as u8;
                left &= left - 1;
                port
            })
        })
    }

    /// Parses `0-3, 32-35`; an empty text is the empty set.
    ///
    /// # Errors
    /// A [`PortSetError`] that names the invalid part of the text.
    pub fn parse(text: &str) -> Result<Self, PortSetError> {
        let number = |s: &str| {
            s.parse::<u32>()
                .map_err(|_| PortSetError::NotANumber(s.trim().to_owned()))
        };
        let mut set = Self::EMPTY;
        for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (first, last) = match part.split_once('-') {
                Some((a, b)) => (number(a.trim())?, number(b.trim())?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(PortSetError::Backwards(first, last));
            }
            if last >= MAX_PORTS as u32 {
                return Err(PortSetError::OutOfRange(last));
            }
            for port in first as u8..=last as u8 {
                if set.contains(port) {
                    return Err(PortSetError::Twice(port));
                }
                set = set.with(port);
            }
        }
        Ok(set)
    }
}

impl FromIterator<u8> for PortSet {
    fn from_iter<T: IntoIterator<Item = u8>>(ports: T) -> Self {
        ports.into_iter().fold(Self::EMPTY, Self::with)
    }
}

/// The ports of the first set that are not in the second.
impl core::ops::Sub for PortSet {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl fmt::Display for PortSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.0;
        let mut separator = "";
        while left != 0 {
            let first = left.trailing_zeros();
            let run = (left >> first).trailing_ones();
            let last = first + run - 1;
            match run {
                1 => write!(f, "{separator}{first}")?,
                _ => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ", ";
            left = if last == 63 {
                0
            } else {
                left & (u64::MAX << (last + 1))
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn invalid_port_sets_say_why() {
        assert_eq!(
            PortSet::parse("0-x"),
            Err(PortSetError::NotANumber("x".into()))
        );
        assert_eq!(PortSet::parse("60-64"), Err(PortSetError::OutOfRange(64)));
        assert_eq!(PortSet::parse("7-3"), Err(PortSetError::Backwards(7, 3)));
        assert_eq!(PortSet::parse("1,1"), Err(PortSetError::Twice(1)));
        assert_eq!(
            PortSet::parse("-1"),
            Err(PortSetError::NotANumber(String::new()))
        );
    }

    #[test]
    fn runs_are_written_as_ranges() {
        assert_eq!(PortSet::from_bits(0xf_0000_000f).to_string(), "0-3, 32-35");
        assert_eq!(PortSet::ALL.to_string(), "0-63");
        assert_eq!(PortSet::range(62, 9).to_string(), "62-63");
    }

    proptest! {
        #[test]
        fn every_set_survives_its_own_text(bits: u64) {
            let set = PortSet::from_bits(bits);
            prop_assert_eq!(PortSet::parse(&set.to_string()), Ok(set));
            prop_assert_eq!(set.iter().count() as u32, set.len());
        }
    }
}
