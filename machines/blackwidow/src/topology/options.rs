//! Folded Clos networks from command options.

use super::generate::{BlackWidowSpec, Rank, Taper};
use super::model::{ClosSettings, parse_rate};
use phitwire::catalogue::{Generator, Kind, OptionSpec, OptionValues, Outline, common, readable};
use phitwire::net::{Generated, MAX_METRES};

/// Generates folded Clos networks from options.
pub const GENERATOR: Generator = Generator {
    name: "blackwidow",
    about: "A folded Clos with sidelinks: R1, R1.5, R2, R2.5, R3 or R3.5",
    options: OPTIONS,
    generate,
    sizes,
};

const ANY: Kind = Kind::Number(0, u32::MAX as u64);
const METRES: Kind = Kind::Number(1, MAX_METRES as u64);
const RATE: fn(&str) -> Result<(), String> = |text| parse_rate(text).map(drop);

const OPTIONS: &[OptionSpec] = &[
    number(
        "processors",
        "PROCESSORS",
        "Number of processors, 1 to 32768",
    )
    .required(),
    number(
        "subtree",
        "SUBTREE",
        "Processors per rank-1 subtree, 1 to 32 [default: 32]",
    ),
    OptionSpec::new(
        "rank",
        "RANK",
        Kind::Text,
        "Size class: 1, 1.5, 2, 2.5, 3 or 3.5 [default: the smallest that holds all processors]",
    )
    .checked(readable::<Rank>),
    OptionSpec::new(
        "slices",
        "SLICES",
        Kind::Number(1, 4),
        "Number of slices (separate networks, one per port of every processor) [default: 1]",
    ),
    OptionSpec::new(
        "taper",
        "F[,F2[,F3]]",
        Kind::Text,
        "Fractions of up and side links to keep, such as 0.5 or 1/2: up to three, for ranks 1, 2 \
         and 3 [default: 1]",
    )
    .up_to(3)
    .checked(readable::<Taper>),
    number(
        "uplinks",
        "UPLINKS",
        "Up or side links of each rank-1 router before tapering [default: one per processor]",
    ),
    number(
        "virtual-radix",
        "VIRTUAL_RADIX",
        "Ports of each virtual router of ranks 2 and 3; two of radix 32 share a chip [default: 32]",
    ),
    number(
        "group",
        "GROUP",
        "Rank-1 subtrees per rank-2 subtree, above R2 [default: half the virtual radix]",
    ),
    number(
        "parallel",
        "PARALLEL",
        "Parallel links from a rank-1 router to each of its rank-2 routers: 1, 2, 4, ... \
         [default: 1]",
    ),
    OptionSpec::new(
        "rate",
        "RATE",
        Kind::Text,
        "Lane rate in Gb/s: 6.25, 5.0, 3.125, 2.5, 1.5625 or 1.25 [default: 6.25]",
    )
    .checked(RATE),
    OptionSpec::new(
        "router-rate",
        "ROUTER_RATE",
        Kind::Text,
        "Lane rate between routers, in Gb/s [default: same as --rate]",
    )
    .checked(RATE),
    OptionSpec::new(
        "metres",
        "METRES",
        METRES,
        "Metres of cable, at 5 ns each in virtual time, 1 to 200 [default: unspecified]",
    ),
    OptionSpec::new(
        "router-metres",
        "ROUTER_METRES",
        METRES,
        "Metres of cable between routers [default: same as --metres]",
    ),
    number(
        "lane-retry-threshold",
        "LANE_RETRY_THRESHOLD",
        "Retries after which a lane is given up; 0 for never [default: 0]",
    ),
];

/// A number whose range the generator checks.
const fn number(name: &'static str, value_name: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec::new(name, value_name, ANY, help)
}

/// Candidate networks of the outline's size, for every rank, radix and number of uplinks.
fn sizes(outline: &Outline) -> Vec<OptionValues> {
    let subtree = outline.nics_of_router;
    if !(1..=32).contains(&subtree) || !(1..=4).contains(&outline.nic_links) {
        return Vec::new();
    }
    let ranks = ["1", "1.5", "2", "2.5", "3", "3.5"];
    let mut all = Vec::new();
    for radix in [32, 64, 16, 8] {
        for parallel in [1, 2, 4, 8] {
            let peers = outline.peers;
            let uplinks = [
                None,
                Some(peers),
                Some(parallel * peers),
                outline.links.map(|_| peers / 2),
            ];
            for uplinks in uplinks.into_iter().filter(|uplinks| *uplinks != Some(0)) {
                for rank in ranks {
                    let mut given = OptionValues::of([
                        ("processors", outline.nics.to_string()),
                        ("rank", rank.to_owned()),
                    ]);
                    let of = |usual: usize, value: usize| (value != usual).then_some(value);
                    for (name, value) in [
                        ("subtree", of(32, subtree)),
                        ("slices", of(1, outline.nic_links)),
                        ("virtual-radix", of(32, radix)),
                        ("parallel", of(1, parallel)),
                        ("uplinks", uplinks),
                    ] {
                        if let Some(value) = value {
                            given.add(name, vec![value.to_string()]);
                        }
                    }
                    all.push(given);
                }
            }
        }
    }
    all.sort_by_key(|given| given.names().count());
    all.dedup();
    all
}

fn generate(given: &OptionValues) -> Generated {
    let spec = spec(given)?;
    match spec.generate() {
        Ok(network) => Ok(Box::new(network)),
        Err(error) => Err(error.to_string()),
    }
}

fn spec(given: &OptionValues) -> Result<BlackWidowSpec, String> {
    let usual = BlackWidowSpec::default();
    let (name, mut settings): (String, ClosSettings) = common(given)?;
    if let Some(threshold) = given.get("lane-retry-threshold")? {
        settings.lane_retry_threshold = threshold;
    }
    if let Some(rate) = given.get_with("rate", parse_rate)? {
        settings.own.rate = rate;
    }
    settings.own.metres = given.get("metres")?;
    let mut taper = [Taper::FULL; 3];
    for (slot, wanted) in taper.iter_mut().zip(given.read("taper")?) {
        *slot = wanted;
    }
    Ok(BlackWidowSpec {
        name,
        processors: given.get("processors")?.unwrap_or(usual.processors),
        subtree: given.get("subtree")?.unwrap_or(usual.subtree),
        rank: given.get("rank")?,
        slices: given.get("slices")?.unwrap_or(usual.slices),
        uplinks: given.get("uplinks")?,
        taper,
        virtual_radix: given.get("virtual-radix")?.unwrap_or(usual.virtual_radix),
        group: given.get("group")?,
        parallel: given.get("parallel")?.unwrap_or(usual.parallel),
        router_rate: given.get_with("router-rate", parse_rate)?,
        router_metres: given.get("router-metres")?,
        settings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire::net::{Clock, Profile};

    /// Parses options from a line; several values of an option are separated by commas.
    fn given(line: &str) -> OptionValues {
        let words: Vec<&str> = line.split(' ').collect();
        let mut given = OptionValues::default();
        for pair in words.chunks(2) {
            let all = OPTIONS.iter().chain(&phitwire::catalogue::COMMON_OPTIONS);
            let option = all.into_iter().find(|option| pair[0] == option.name);
            let name = option.expect(pair[0]).name;
            given.add(name, pair[1].split(',').map(str::to_owned).collect());
        }
        given
    }

    #[test]
    fn options_become_a_network() {
        let line = "processors 8 subtree 4 rank 1.5 slices 1 taper 1/2";
        let network = generate(&given(line)).expect("a network");
        let summary = "r1.5-8: R1.5, 8 processors, 1 slice, 2 routers on 2 chips, 10 links";
        assert_eq!(network.summary(), summary);
    }

    #[test]
    fn each_rank_has_a_taper_of_its_own() {
        let spec = spec(&given(
            "processors 8 taper 0.5,1/4 paced 9 profile paper name me",
        ));
        let spec = spec.expect("good options");
        assert_eq!(spec.taper[1], Taper::new(1, 4).expect("a quarter"));
        assert_eq!(spec.taper[2], Taper::FULL);
        assert_eq!(spec.settings.clock, Clock::Paced { dilation: 9 });
        assert_eq!(spec.settings.profile, Profile::Paper);
        assert_eq!(spec.name, "me");
    }

    #[test]
    fn bad_options_are_refused() {
        for bad in ["rank 4", "taper 2", "rate 6", "paced -1", "profile thin"] {
            let refused = spec(&given(bad)).expect_err(bad);
            assert!(refused.starts_with(&format!("--{bad}: ")), "{refused}");
        }
        for (name, bad) in [("rank", "4"), ("taper", "2"), ("rate", "6")] {
            let option = OPTIONS.iter().find(|option| option.name == name);
            let check = option.expect(name).check.expect(name);
            assert!(check(bad).is_err(), "{name} {bad}");
            assert_eq!(check("1").is_ok(), name != "rate");
        }
    }

    #[test]
    fn documented_defaults_are_the_defaults() {
        let said = "subtree 32 slices 1 virtual-radix 32 parallel 1 rate 6.25 \
                    lane-retry-threshold 0";
        let words: Vec<&str> = said.split(' ').collect();
        for pair in words.chunks(2) {
            let option = OPTIONS.iter().find(|option| option.name == pair[0]);
            let default = format!("[default: {}]", pair[1]);
            assert!(
                option.is_some_and(|option| option.help.ends_with(&default)),
                "{pair:?}"
            );
        }
        let same = format!("{:?}", spec(&given(said)));
        assert_eq!(format!("{:?}", spec(&OptionValues::default())), same);
    }
}
