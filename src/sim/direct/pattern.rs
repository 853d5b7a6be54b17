//! Traffic patterns: those that NICs also generate, and some that only a simulation can.

use core::fmt;
use core::str::FromStr;

use super::config::{ConfigError, Traffic};
use super::grid::{Grid, GridPattern};
use crate::nic::{self, Groups, Mapping};
use crate::rng::Rng;

/// Default share of messages to hot processors, in percent.
const HOT_PERCENT: u8 = 10;

/// Maps senders to destinations, by the processors' positions in the topology's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// A pattern that NICs also support; a processor that a permutation maps to itself stays
    /// silent.
    Common(nic::TrafficPattern),
    /// Two messages in three to the sender itself, the third to the next processor, as in BookSim.
    Diagonal,
    /// To `i mod n/2` or `i mod n/2 + n/2`, at random, as in BookSim: processors `n/2` apart share
    /// their two destinations.
    Asymmetric,
    /// Processors on row *r* of a router's tiles send to random processors on column *r* of the
    /// same router, so that all flows of a row go through one subswitch.
    RowAdversary,
    /// Destinations by the coordinates of processors in a grid.
    Grid(GridPattern),
}

impl Pattern {
    /// The names of all patterns, without parameters.
    pub const fn names() -> &'static [&'static str] {
        &NAMES
    }

    /// The error for a network that does not have this pattern.
    fn elsewhere(&self) -> PatternError {
        PatternError::Elsewhere {
            pattern: self.to_string(),
            need: match self {
                Self::RowAdversary => "routers with rows and columns of tiles",
                Self::Grid(_) => "processors in a grid",
                _ => "routers in groups",
            },
            accepted: String::new(),
        }
    }
}

impl Default for Pattern {
    fn default() -> Self {
        Self::Common(nic::TrafficPattern::Uniform)
    }
}

/// Why a pattern is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("unknown pattern `{0}`: expected one of {names}", names = NAMES.join(", "))]
    Unknown(String),
    #[error(
        "invalid hotspot `{0}`: expected hotspot, hotspot:TARGET,... or hotspot:TARGET,...:PERCENT"
    )]
    Hotspot(String),
    #[error("{0} participants requested, but the topology has {1} processors")]
    Participants(usize, usize),
    #[error("processor {0} does not participate")]
    NoProcessor(u16),
    /// The pattern does not suit the number of processors.
    #[error(transparent)]
    Spec(#[from] nic::SpecError),
    /// Lists of destinations work only in live runs.
    #[error("a list of destinations cannot be used as a pattern for all processors")]
    List,
    /// The network lacks what the pattern needs, or its model does not provide it.
    #[error("pattern `{pattern}` needs {need}; this network accepts {accepted}")]
    Elsewhere {
        pattern: String,
        need: &'static str,
        /// Names of the patterns that suit the network and its participants.
        accepted: String,
    },
    #[error("pattern `{pattern}` needs {need}, but the grid is {size}")]
    Grid {
        pattern: &'static str,
        need: &'static str,
        size: String,
    },
    #[error("with this pattern no processor of this topology sends")]
    Silent,
}

pub const NAMES: [&str; 21] = [
    "uniform",
    "bit-complement",
    "transpose",
    "bit-reverse",
    "shuffle",
    "permutation",
    "tornado",
    "neighbour",
    "diagonal",
    "asymmetric",
    "hotspot",
    "row-adversary",
    "group-adversarial",
    GridPattern::ALL[0].name(),
    GridPattern::ALL[1].name(),
    GridPattern::ALL[2].name(),
    GridPattern::ALL[3].name(),
    GridPattern::ALL[4].name(),
    GridPattern::ALL[5].name(),
    GridPattern::ALL[6].name(),
    GridPattern::ALL[7].name(),
];

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        match text {
            "neighbor" => return Ok(Self::Common(nic::TrafficPattern::Neighbour)),
            "diagonal" => return Ok(Self::Diagonal),
            "asymmetric" => return Ok(Self::Asymmetric),
            "row-adversary" => return Ok(Self::RowAdversary),
            _ => {}
        }
        let mut grid = GridPattern::ALL.into_iter();
        if let Some(pattern) = grid.find(|pattern| pattern.name() == text) {
            return Ok(Self::Grid(pattern));
        }
        let mut plain = nic::TrafficPattern::PLAIN.into_iter();
        let common = match plain.find(|pattern| pattern.name() == text) {
            Some(plain) => plain,
            None => hotspot(text)?,
        };
        Ok(Self::Common(common))
    }
}

/// `hotspot`, `hotspot:3,7` or `hotspot:3,7:25`.
fn hotspot(text: &str) -> Result<nic::TrafficPattern, PatternError> {
    let Some(rest) = text.strip_prefix("hotspot") else {
        return Err(PatternError::Unknown(text.to_owned()));
    };
    let bad = || PatternError::Hotspot(text.to_owned());
    let mut parts = rest.split(':').skip(1);
    if !rest.is_empty() && !rest.starts_with(':') {
        return Err(PatternError::Unknown(text.to_owned()));
    }
    let targets = match parts.next() {
        Some(list) => list
            .split(',')
            .map(|number| number.parse().map_err(|_| bad()))
            .collect::<Result<Vec<u16>, _>>()?,
        None => vec![0],
    };
    let percent = match parts.next() {
        Some(percent) => percent.trim_end_matches('%').parse().map_err(|_| bad())?,
        None => HOT_PERCENT,
    };
    if parts.next().is_some() || !(1..=100).contains(&percent) {
        return Err(bad());
    }
    Ok(nic::TrafficPattern::Hotspot { targets, percent })
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Diagonal => "diagonal",
            Self::Asymmetric => "asymmetric",
            Self::RowAdversary => "row-adversary",
            Self::Grid(pattern) => pattern.name(),
            Self::Common(nic::TrafficPattern::Hotspot { targets, percent }) => {
                let targets: Vec<String> = targets.iter().map(u16::to_string).collect();
                return write!(f, "hotspot:{}:{percent}", targets.join(","));
            }
            Self::Common(common) => common.name(),
        })
    }
}

/// The processors that a pattern applies to.
#[derive(Clone, Copy, Debug)]
pub struct Population<'a> {
    /// Number of each processor, in the topology's order.
    pub numbers: &'a [u32],
    /// Terminals of each processor.
    pub slices: u32,
    /// Positions of processors, if they form a grid.
    pub grid: Option<&'a Grid>,
}

/// A pattern over the processors of one topology.
#[derive(Clone, Debug)]
pub struct Destinations {
    rule: Rule,
    /// Number of processors of the topology.
    processors: u64,
    /// Number of processors that take part: the first ones.
    participants: u64,
}

#[derive(Clone, Debug)]
pub enum Rule {
    Uniform,
    Map(Mapping),
    Hot {
        targets: Vec<u32>,
        percent: u64,
    },
    Diagonal,
    Asymmetric,
    /// Destinations of terminal `slice * processors + processor`: a section of `list`.
    Lists {
        starts: Vec<u32>,
        list: Vec<u32>,
    },
    /// To any processor of the next group.
    NextGroup(Groups),
}

impl Rule {
    /// [`Rule::NextGroup`] for processors in these groups, in order.
    pub fn next_group(of: impl Iterator<Item = u16>) -> Self {
        Self::NextGroup(Groups::new(of))
    }
}

impl Destinations {
    /// The pattern of `traffic`. `special` makes the rules that depend on the network, from the
    /// number of participants.
    pub fn new(
        traffic: &Traffic,
        population: Population<'_>,
        seed: u64,
        special: impl Fn(&Pattern, u32) -> Option<Rule>,
    ) -> Result<Self, ConfigError> {
        let make = |traffic: &Traffic| Self::of(traffic, population, seed, &special);
        let mut made = make(traffic);
        if let Err(ConfigError::Pattern(PatternError::Elsewhere { accepted, .. })) = &mut made {
            let suits = |name: &&str| {
                let pattern = name.parse();
                pattern.is_ok_and(|pattern| {
                    let traffic = Traffic {
                        pattern,
                        ..traffic.clone()
                    };
                    make(&traffic).is_ok()
                })
            };
            let names: Vec<_> = NAMES.into_iter().filter(suits).collect();
            *accepted = names.join(", ");
        }
        made
    }

    fn of(
        traffic: &Traffic,
        population: Population<'_>,
        seed: u64,
        special: &impl Fn(&Pattern, u32) -> Option<Rule>,
    ) -> Result<Self, ConfigError> {
        let processors = population.numbers.len();
        if processors == 0 {
            return Err(ConfigError::NoTerminals);
        }
        let n = traffic.participants.map_or(processors, |n| n as usize);
        if !(1..=processors).contains(&n) {
            return Err(PatternError::Participants(n, processors).into());
        }
        let pattern = &traffic.pattern;
        let rule = match pattern {
            Pattern::Diagonal => Rule::Diagonal,
            Pattern::Asymmetric => Rule::Asymmetric,
            Pattern::RowAdversary | Pattern::Common(nic::TrafficPattern::GroupAdversarial) => {
                special(pattern, n as u32).ok_or_else(|| pattern.elsewhere())?
            }
            Pattern::Grid(of) => {
                let grid = population.grid;
                let grid = grid.ok_or_else(|| pattern.elsewhere())?;
                grid.rule(*of, n, population.slices)?
            }
            Pattern::Common(nic::TrafficPattern::Uniform) => Rule::Uniform,
            Pattern::Common(nic::TrafficPattern::Hotspot { targets, percent }) => Rule::Hot {
                targets: positions(&population.numbers[..n], targets)?,
                percent: u64::from(*percent),
            },
            Pattern::Common(common) => match common.mapping(n, seed) {
                Ok(Some(mapping)) => Rule::Map(mapping),
                Ok(None) => return Err(PatternError::List.into()),
                Err(error) => return Err(PatternError::Spec(error).into()),
            },
        };
        let destinations = Self {
            rule,
            processors: processors as u64,
            participants: n as u64,
        };
        let terminals = processors as u64 * u64::from(population.slices);
        if (0..terminals).all(|terminal| destinations.is_silent(terminal)) {
            return Err(PatternError::Silent.into());
        }
        Ok(destinations)
    }

    /// Whether a terminal never sends anything.
    pub fn is_silent(&self, terminal: u64) -> bool {
        let i = terminal % self.processors;
        if i >= self.participants {
            return true;
        }
        match &self.rule {
            Rule::Uniform | Rule::Hot { .. } => self.participants == 1,
            Rule::Map(mapping) => mapping.image(i as usize) as u64 == i,
            Rule::Diagonal | Rule::Asymmetric => false,
            Rule::NextGroup(groups) => groups.count() < 2,
            Rule::Lists { starts, .. } => {
                starts[terminal as usize] == starts[terminal as usize + 1]
            }
        }
    }

    /// The processors that a terminal sends to, each once, with its share of the messages; empty if
    /// the terminal is silent.
    pub fn shares(&self, terminal: u64) -> Vec<(u32, f64)> {
        if self.is_silent(terminal) {
            return Vec::new();
        }
        let n = self.participants;
        let i = terminal % self.processors;
        let alike = |to: &mut dyn Iterator<Item = u32>| {
            let to: Vec<u32> = to.collect();
            let share = 1.0 / to.len() as f64;
            to.into_iter().map(|to| (to, share)).collect()
        };
        let others = || (0..n as u32).filter(|&to| u64::from(to) != i);
        match &self.rule {
            Rule::Uniform => alike(&mut others()),
            Rule::Map(mapping) => vec![(mapping.image(i as usize) as u32, 1.0)],
            Rule::Hot { targets, percent } => {
                let hot = *percent as f64 / 100.0 / targets.len() as f64;
                let own = targets.iter().filter(|&&to| u64::from(to) == i).count() as f64;
                let rest = (1.0 - *percent as f64 / 100.0 + own * hot) / (n - 1) as f64;
                let times = |to: u32| targets.iter().filter(|&&hot| hot == to).count() as f64;
                others().map(|to| (to, rest + hot * times(to))).collect()
            }
            Rule::Diagonal if n == 1 => vec![(0, 1.0)],
            Rule::Diagonal => vec![(i as u32, 2.0 / 3.0), (((i + 1) % n) as u32, 1.0 / 3.0)],
            Rule::Asymmetric => {
                let half = (n / 2).max(1);
                alike(&mut (0..n / half).map(|part| (i % half + half * part) as u32))
            }
            Rule::NextGroup(groups) => alike(&mut groups.next_of(i as usize).iter().copied()),
            Rule::Lists { starts, list } => {
                let (from, to) = (starts[terminal as usize], starts[terminal as usize + 1]);
                alike(&mut list[from as usize..to as usize].iter().copied())
            }
        }
    }

    /// Draws the destination of the next message of a terminal that is not silent.
    #[inline]
    pub fn draw(&self, terminal: u64, rng: &mut Rng) -> u32 {
        let n = self.participants;
        let i = terminal % self.processors;
        let another = |rng: &mut Rng| ((i + 1 + rng.below(n - 1)) % n) as u32;
        match &self.rule {
            Rule::Uniform => another(rng),
            Rule::Map(mapping) => mapping.image(i as usize) as u32,
            Rule::Hot { targets, percent } => {
                if rng.chance(*percent, 100) {
                    let target = targets[rng.below(targets.len() as u64) as usize];
                    if u64::from(target) != i {
                        return target;
                    }
                }
                another(rng)
            }
            Rule::Diagonal => {
                if rng.below(3) == 0 {
                    ((i + 1) % n) as u32
                } else {
                    i as u32
                }
            }
            Rule::Asymmetric => {
                let half = (n / 2).max(1);
                ((i % half) + half * rng.below(n / half)) as u32
            }
            Rule::NextGroup(groups) => {
                let next = groups.next_of(i as usize);
                next[rng.below(next.len() as u64) as usize]
            }
            Rule::Lists { starts, list } => {
                let (from, to) = (starts[terminal as usize], starts[terminal as usize + 1]);
                list[(u64::from(from) + rng.below(u64::from(to - from))) as usize]
            }
        }
    }
}

/// Positions of the processors with these numbers, in the list.
fn positions(processors: &[u32], numbers: &[u16]) -> Result<Vec<u32>, PatternError> {
    let position = |&number: &u16| {
        let position = processors.iter().position(|&p| p == u32::from(number));
        position
            .map(|position| position as u32)
            .ok_or(PatternError::NoProcessor(number))
    };
    numbers.iter().map(position).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_many_draws() {
        let numbers: Vec<u32> = (0..9).collect();
        let grid = Grid::new([3, 3], (0..9).map(|at| [at % 3, at / 3]));
        let population = Population {
            numbers: &numbers,
            slices: 1,
            grid: Some(&grid),
        };
        let special = |pattern: &Pattern, _| match pattern {
            Pattern::RowAdversary => None,
            _ => Some(Rule::next_group([0, 0, 1, 1, 1, 2, 2, 2, 2].into_iter())),
        };
        for (name, participants) in [
            ("uniform", 9),
            ("tornado", 8),
            ("hotspot:1,4:30", 7),
            ("hotspot:3,3,5:60", 9),
            ("diagonal", 9),
            ("diagonal", 1),
            ("asymmetric", 9),
            ("asymmetric", 4),
            ("group-adversarial", 9),
            ("grid-transpose", 9),
            ("grid-rotation", 8),
        ] {
            let traffic = Traffic {
                pattern: name.parse().unwrap(),
                participants: Some(participants),
                ..Traffic::default()
            };
            let all = Destinations::new(&traffic, population, 1, special).unwrap();
            let mut rng = Rng::new(1, 1);
            let mut senders = 0;
            for terminal in 0..9 {
                let shares = all.shares(terminal);
                assert_eq!(shares.is_empty(), all.is_silent(terminal), "{name}");
                if shares.is_empty() {
                    continue;
                }
                senders += 1;
                const DRAWS: u32 = 20_000;
                let mut drawn = [0; 9];
                (0..DRAWS).for_each(|_| drawn[all.draw(terminal, &mut rng) as usize] += 1);
                let mut said = [0.0; 9];
                for (to, share) in shares {
                    assert_eq!(said[to as usize], 0.0, "{name}: {to} occurs twice");
                    said[to as usize] = share;
                }
                assert!((said.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{name}");
                for (said, drawn) in said.into_iter().zip(drawn) {
                    let drawn = f64::from(drawn) / f64::from(DRAWS);
                    assert!(
                        (said - drawn).abs() < 0.02,
                        "{name} {terminal} {said} {drawn}"
                    );
                }
            }
            assert!(senders > 0, "{name}");
        }
    }

    #[test]
    fn names_are_read_and_written() {
        for name in NAMES {
            let pattern: Pattern = name.parse().unwrap();
            assert!(pattern.to_string().starts_with(name));
            assert_eq!(pattern.to_string().parse::<Pattern>().unwrap(), pattern);
        }
        assert_eq!(
            "hotspot:3,9:25%".parse::<Pattern>().unwrap().to_string(),
            "hotspot:3,9:25"
        );
        for wrong in [
            "",
            "hot",
            "hotspots",
            "hotspot:",
            "hotspot:1:0",
            "hotspot:1:2:3",
        ] {
            assert!(wrong.parse::<Pattern>().is_err(), "{wrong}");
        }
    }
}
