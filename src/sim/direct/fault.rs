//! Faults of links and routers during a run, and their repair.

use core::fmt;
use core::str::FromStr;

use super::config::ConfigError;
use crate::net::{End, Network, NodeRef};
use crate::time::Duration;

/// Longest time in a fault, in seconds; the sum of two still fits.
const MOST_S: u64 = 1_000_000;
const PS_PER_S: u64 = 1_000_000_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    Link(u32),
    /// All links of the router with this name.
    Router(String),
}

/// A fault: `link 12 down at 5us for 3us`, `router g0-c0s1 down at 5us`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub(crate) what: Broken,
    /// Time of the fault, from the start of the run.
    pub(crate) at: Duration,
    /// Duration of the fault; `None`: permanent.
    pub(crate) lasts: Option<Duration>,
}

/// Why a text is not a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    #[error(
        "invalid fault `{0}`: expected `link NUMBER down at TIME` or `router NAME down at TIME`, \
         optionally followed by `for TIME` (times such as 500ns, 5us, 1ms)"
    )]
    Form(String),
    #[error("invalid time `{0}`: expected a whole number with ns, us, ms or s")]
    Time(String),
    #[error("`{0}` is too large: faults begin within {MOST_S}s and last at most as long")]
    TooLarge(String),
    #[error("`{0}` has zero duration: omit `for` to make it permanent")]
    Nothing(String),
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
            ["router", name, ref rest @ ..] => (Broken::Router(name.to_owned()), rest),
            _ => return Err(form()),
        };
        let (at, lasts) = match *rest {
            ["down", "at", at] => (time(at)?, None),
            ["down", "at", at, "for", lasts] => (time(at)?, Some(time(lasts)?)),
            _ => return Err(form()),
        };
        if lasts == Some(Duration::ZERO) {
            return Err(FaultError::Nothing(text.to_owned()));
        }
        Ok(Self { what, at, lasts })
    }
}

fn time(text: &str) -> Result<Duration, FaultError> {
    let wrong = || FaultError::Time(text.to_owned());
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let ps = match unit {
        "ns" => 1_000,
        "us" => 1_000_000,
        "ms" => 1_000_000_000,
        "s" => PS_PER_S,
        _ => return Err(wrong()),
    };
    let digits = text.strip_suffix(unit).filter(|digits| !digits.is_empty());
    // A number that does not parse has too many digits: reject it as too large.
    let number = digits.ok_or_else(wrong)?.parse().ok();
    let ps = number.and_then(|number: u64| number.checked_mul(ps));
    ps.filter(|ps| *ps <= MOST_S * PS_PER_S)
        .map(Duration::from_ps)
        .ok_or_else(|| FaultError::TooLarge(text.to_owned()))
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            Broken::Link(number) => write!(f, "link {number}")?,
            Broken::Router(name) => write!(f, "router {name}")?,
        }
        write!(f, " down at {} ns", self.at.as_ns())?;
        match self.lasts {
            Some(lasts) => write!(f, " for {} ns", lasts.as_ns()),
            None => Ok(()),
        }
    }
}

/// A link that goes down or is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Switch {
    /// The first cycle of the new state.
    pub(crate) cycle: u64,
    pub(crate) link: u32,
    pub(crate) ends: [End; 2],
    /// Whether the link goes down.
    pub(crate) down: bool,
    /// Index of the fault that causes it.
    pub(crate) fault: usize,
}

/// All link changes, in time order.
///
/// # Errors
/// If the network lacks the part that a fault names.
pub(crate) fn schedule(
    faults: &[Fault],
    network: &dyn Network,
    cycle: Duration,
) -> Result<Vec<Switch>, ConfigError> {
    let mut switches = Vec::new();
    for (number, fault) in faults.iter().enumerate() {
        let unknown = || ConfigError::NoSuchPart(fault.to_string());
        let links: Vec<u32> = match &fault.what {
            Broken::Link(number) if (*number as usize) < network.link_count() => vec![*number],
            Broken::Link(_) => return Err(unknown()),
            Broken::Router(name) => {
                let mut nodes = network.nodes().into_iter();
                let is_it = |node: &NodeRef| {
                    matches!(node, NodeRef::Chip(_)) && network.node_name(*node) == name.as_str()
                };
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
                    fault: number,
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
    fn faults_are_parsed_from_text() {
        let fault: Fault = "link 12 down at 5us for 3us".parse().unwrap();
        assert_eq!(fault.what, Broken::Link(12));
        assert_eq!(fault.at, Duration::from_us(5));
        assert_eq!(fault.lasts, Some(Duration::from_us(3)));
        let fault: Fault = "router g0-c0s1 down at 500ns".parse().unwrap();
        assert_eq!(fault.what, Broken::Router("g0-c0s1".into()));
        assert_eq!((fault.at, fault.lasts), (Duration::from_ns(500), None));
        let longest: Fault = "link 3 down at 1000000s for 1000000s".parse().unwrap();
        assert_eq!(Some(longest.at), longest.lasts);
        for (wrong, why) in [
            ("", "invalid fault"),
            ("link", "invalid fault"),
            ("link x down at 5us", "invalid fault"),
            ("link 3 at 5us", "invalid fault"),
            ("link 3 down at 5", "invalid time"),
            ("link 3 down at us", "invalid time"),
            ("link 3 down at 5us for ever", "invalid time"),
            ("link 3 down at 5us for 0ns", "has zero duration"),
            ("link 3 down at 1000001s", "begin within 1000000s"),
            ("link 3 down at 99999999999999s", "is too large"),
            ("link 3 down at 99999999999999999999ns", "is too large"),
            ("router a down at 5us for", "invalid fault"),
        ] {
            let error = wrong.parse::<Fault>().expect_err(wrong).to_string();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }
}
