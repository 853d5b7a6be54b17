//! What breaks while a network runs, and when it is whole again.

use core::fmt;
use core::str::FromStr;

use super::config::ConfigError;
use crate::net::{End, Network, NodeRef};
use crate::time::Duration;

/// The longest time, some thirteen days: two of them can be added.
const MOST_PS: u64 = 1 << 60;

/// What breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The link of this number.
    Link(u32),
    /// All links of the node of this name.
    Node(String),
}

/// A fault: `link 12 down at 5us for 3us`, `router g0-c0s1 down at 5us`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What breaks.
    pub what: Broken,
    /// When, after the beginning of the run.
    pub at: Duration,
    /// For how long; `None`: for good.
    pub lasts: Option<Duration>,
}

/// Why a text is no fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// It is built differently.
    #[error(
        "`{0}` is no fault: write `link NUMBER down at TIME` or `router NAME down at TIME`, and \
         `for TIME` if it is to come back (times such as 500ns, 5us, 1ms)"
    )]
    Form(String),
    /// A time without end, or none.
    #[error("`{0}` is no time: a whole number with ns, us, ms or s")]
    Time(String),
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let form = || FaultError::Form(text.to_owned());
        let words: Vec<&str> = text.split_whitespace().collect();
        let (what, rest) = match words[..] {
            ["link", number, ref rest @ ..] => {
                let number = number.parse().map_err(|_| form())?;
                (Broken::Link(number), rest)
            }
            ["router", name, ref rest @ ..] => (Broken::Node(name.to_owned()), rest),
            _ => return Err(form()),
        };
        let (at, lasts) = match *rest {
            ["down", "at", at] => (time(at)?, None),
            ["down", "at", at, "for", lasts] => (time(at)?, Some(time(lasts)?)),
            _ => return Err(form()),
        };
        Ok(Self { what, at, lasts })
    }
}

fn time(text: &str) -> Result<Duration, FaultError> {
    let wrong = || FaultError::Time(text.to_owned());
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let ps: u64 = match &text[digits.len()..] {
        "ns" => 1_000,
        "us" => 1_000_000,
        "ms" => 1_000_000_000,
        "s" => 1_000_000_000_000,
        _ => return Err(wrong()),
    };
    let ps = number.checked_mul(ps).filter(|ps| *ps < MOST_PS);
    ps.map(Duration::from_ps).ok_or_else(wrong)
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            Broken::Link(number) => write!(f, "link {number}")?,
            Broken::Node(name) => write!(f, "router {name}")?,
        }
        write!(f, " down at {} ns", self.at.as_ns())?;
        match self.lasts {
            Some(lasts) => write!(f, " for {} ns", lasts.as_ns()),
            None => Ok(()),
        }
    }
}

/// A link goes down or comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Switch {
    /// The first cycle in which it is so.
    pub cycle: u64,
    /// Number of the link.
    pub link: u32,
    /// Its ends.
    pub ends: [End; 2],
    /// Whether it goes down.
    pub down: bool,
}

/// All that happens to links, in the order of time.
///
/// # Errors
/// A fault of something that the network does not have.
pub(crate) fn schedule(
    faults: &[Fault],
    network: &dyn Network,
    cycle: Duration,
) -> Result<Vec<Switch>, ConfigError> {
    let mut switches = Vec::new();
    for fault in faults {
        let unknown = || ConfigError::NoSuchPart(fault.to_string());
        let links: Vec<u32> = match &fault.what {
            Broken::Link(number) if (*number as usize) < network.link_count() => vec![*number],
            Broken::Link(_) => return Err(unknown()),
            Broken::Node(name) => {
                let mut nodes = network.nodes().into_iter();
                let is_it = |node: &NodeRef| network.node_name(*node) == name.as_str();
                let node = nodes.find(is_it).ok_or_else(unknown)?;
                let at_node = |link: &usize| {
                    let (a, b) = network.ends(*link);
                    a.node == node || b.node == node
                };
                let links = (0..network.link_count()).filter(at_node);
                links.map(|link| link as u32).collect()
            }
        };
        let cycle_at = |at: Duration| at.as_ps().div_ceil(cycle.as_ps());
        for link in links {
            let ends = network.ends(link as usize).into();
            let mut add = |at, down| {
                let cycle = cycle_at(at);
                switches.push(Switch {
                    cycle,
                    link,
                    ends,
                    down,
                });
            };
            add(fault.at, true);
            if let Some(lasts) = fault.lasts {
                add(fault.at + lasts, false);
            }
        }
    }
    switches.sort_by_key(|switch| (switch.cycle, !switch.down, switch.link));
    Ok(switches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_written_as_they_are_said() {
        let fault: Fault = "link 12 down at 5us for 3us".parse().unwrap();
        assert_eq!(fault.what, Broken::Link(12));
        assert_eq!(fault.at, Duration::from_us(5));
        assert_eq!(fault.lasts, Some(Duration::from_us(3)));
        let fault: Fault = "router g0-c0s1 down at 500ns".parse().unwrap();
        assert_eq!(fault.what, Broken::Node("g0-c0s1".into()));
        assert_eq!((fault.at, fault.lasts), (Duration::from_ns(500), None));
        for wrong in [
            "",
            "link",
            "link x down at 5us",
            "link 3 at 5us",
            "link 3 down at 5",
            "link 3 down at 5us for ever",
            "link 3 down at 99999999999999s",
            "router a down at 5us for",
        ] {
            assert!(wrong.parse::<Fault>().is_err(), "{wrong}");
        }
    }
}
