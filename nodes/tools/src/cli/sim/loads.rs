//! The loads of a run.

use phitwire::sim::direct::Load;

const MOST_POINTS: usize = 10_000;

/// The loads of a run, and whether they were given as a list or range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loads {
    pub(super) all: Vec<Load>,
    pub(super) is_sweep: bool,
}

/// A decimal fraction in millionths, exactly.
fn millionths(text: &str) -> Result<u32, String> {
    let wrong = || {
        format!(
            "invalid load `{text}`: expected a number above 0 and at most 1 with up to six \
             decimals, or FROM..TO:STEP, such as 0.1..0.9:0.2"
        )
    };
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if rest.len() > 6 || !digits(whole) || !digits(rest) || whole.len() + rest.len() == 0 {
        return Err(wrong());
    }
    let number = format!("0{whole}{rest:0<6}");
    number.parse().map_err(|_| wrong())
}

fn load(text: &str) -> Result<Load, String> {
    Load::from_millionths(millionths(text)?)
        .ok_or_else(|| format!("load `{text}` is out of range: it must be above 0 and at most 1"))
}

/// Reads loads and ranges of loads, separated by commas.
pub(super) fn parse_loads(text: &str) -> Result<Loads, String> {
    let mut all = Vec::new();
    for part in text.split(',') {
        all.extend(range(part)?);
        if all.len() > MOST_POINTS {
            return Err(format!("more than {MOST_POINTS} loads"));
        }
    }
    all.sort_unstable_by_key(|load| load.millionths());
    all.dedup();
    Ok(Loads {
        all,
        is_sweep: text.contains(',') || text.contains(".."),
    })
}

/// A load, or the loads of a range.
fn range(text: &str) -> Result<Vec<Load>, String> {
    let Some((from, rest)) = text.split_once("..") else {
        return Ok(vec![load(text)?]);
    };
    let (to, step) = rest
        .split_once(':')
        .ok_or_else(|| format!("`{text}` has no step: write FROM..TO:STEP"))?;
    let (from, to, step) = (load(from)?, load(to)?, load(step)?);
    let mut all = Vec::new();
    let mut next = from.millionths();
    while next <= to.millionths() {
        if all.len() == MOST_POINTS {
            return Err(format!("more than {MOST_POINTS} loads"));
        }
        all.extend(Load::from_millionths(next));
        next += step.millionths();
    }
    if all.is_empty() {
        return Err(format!("empty load range {text}"));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads(text: &str) -> Vec<u32> {
        let loads = parse_loads(text).expect(text);
        loads.all.iter().map(|load| load.millionths()).collect()
    }

    #[test]
    fn loads_are_read_exactly() {
        assert_eq!(loads("0.3"), [300_000]);
        assert_eq!(loads("1"), [1_000_000]);
        assert_eq!(loads(".000001"), [1]);
        assert_eq!(loads("0.2..1.0:0.4"), [200_000, 600_000, 1_000_000]);
        assert_eq!(loads("0.05..1.0:0.05").len(), 20);
        let mixed = "0.9,0.1..0.3:0.1,0.2,1";
        assert_eq!(
            loads(mixed),
            [100_000, 200_000, 300_000, 900_000, 1_000_000]
        );
        for wrong in [
            "",
            ".",
            "0",
            "1.1",
            "-1",
            "0.1234567",
            "0.1..0.2",
            "0.2..0.1:0.1",
            "0.1,",
            "x",
        ] {
            assert!(parse_loads(wrong).is_err(), "{wrong}");
        }
        for wrong in ["0.1:0.9:0.1", "0.1-0.9:0.1", "10%", "0.1..0.9"] {
            let refused = parse_loads(wrong).expect_err(wrong);
            assert!(refused.contains("FROM..TO:STEP"), "{refused}");
        }
    }
}
