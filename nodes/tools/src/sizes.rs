//! Sizes on a command line: numbers and geometric ranges.

/// Largest number of sizes.
const MOST: usize = 1_000;

/// One size or several, in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes(pub Vec<u32>);

fn size(text: &str) -> Result<u32, String> {
    let (digits, unit) = match text.strip_suffix(['K', 'k']) {
        Some(digits) => (digits, 1 << 10),
        None => match text.strip_suffix(['M', 'm']) {
            Some(digits) => (digits, 1 << 20),
            None => (text, 1),
        },
    };
    let number = digits.parse::<u32>().ok();
    let size = number.and_then(|number| number.checked_mul(unit));
    size.filter(|&size| size > 0).ok_or_else(|| {
        format!("invalid number `{text}`: expected 1 to 4294967295, such as 8 or 64K")
    })
}

/// Reads sizes such as `8`, `8,64,4K` or `8..64K:x2`.
///
/// # Errors
/// Why they are invalid.
pub fn parse_sizes(text: &str) -> Result<Sizes, String> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let Some((from, rest)) = part.split_once("..") else {
            all.push(size(part)?);
            continue;
        };
        let wrong = || format!("`{part}`: expected FROM..TO:xFACTOR, with a factor of at least 2");
        let (to, factor) = rest.split_once(":x").ok_or_else(wrong)?;
        let factor = factor.parse::<u32>().ok().filter(|&factor| factor > 1);
        let factor = factor.ok_or_else(wrong)?;
        let (from, to) = (size(from)?, size(to)?);
        if from > to {
            return Err(format!("empty range: {from} is above {to}"));
        }
        let steps = std::iter::successors(Some(from), |size| size.checked_mul(factor));
        all.extend(steps.take_while(|&size| size <= to));
    }
    match all.len() <= MOST {
        true => Ok(Sizes(all)),
        false => Err(format!("more than {MOST} sizes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_numbers_and_geometric_ranges() {
        let sizes = |text: &str| parse_sizes(text).expect(text).0;
        assert_eq!(sizes("8"), [8]);
        assert_eq!(sizes("8,4K,1M"), [8, 4_096, 1 << 20]);
        assert_eq!(sizes("8..64:x2,100"), [8, 16, 32, 64, 100]);
        assert_eq!(sizes("1..20:x4"), [1, 4, 16]);
        for wrong in [
            "", "0", "8..", "8..64", "8..64:2", "8..64:x1", "64..8:x2", "8G", "5000M",
        ] {
            assert!(parse_sizes(wrong).is_err(), "{wrong}");
        }
    }
}
