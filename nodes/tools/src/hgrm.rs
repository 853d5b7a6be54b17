//! Latencies in the text format of [HdrHistogram](http://hdrhistogram.org), for its plotters: one
//! line per percentile.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;
use phitwire::nic::LatencyCounts;

use crate::whole_file;

/// Number of lines for each halving of the distance to 100 %, as in HdrHistogram's own tools.
const LINES_PER_HALF: u32 = 5;
/// Significant digits of values.
const DIGITS: u8 = 3;

/// The text of the file. Values of `counts` are divided by `per_unit`: with 1,000, nanoseconds are
/// printed as microseconds.
pub fn text(counts: &LatencyCounts, per_unit: f64) -> String {
    let highest = counts.buckets.last().map_or(2, |&(value, _)| value.max(2));
    let mut histogram =
        Histogram::<u64>::new_with_bounds(1, highest, DIGITS).expect("valid bounds and precision");
    for &(value, count) in &counts.buckets {
        // Saturation changes nothing, since all values are within the bounds.
        histogram.saturating_record_n(value.min(counts.max_ns.max(1)), count);
    }
    let mut text = format!(
        "{:>12} {:>14} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let mut seen = 0;
    for step in histogram.iter_quantiles(LINES_PER_HALF) {
        seen += step.count_since_last_iteration();
        let (value, quantile) = (
            step.value_iterated_to() as f64 / per_unit,
            step.quantile_iterated_to(),
        );
        // Writing to a String cannot fail.
        let _ = match quantile < 1.0 {
            true => writeln!(
                text,
                "{value:12.3} {quantile:.12} {seen:10} {:14.2}",
                1.0 / (1.0 - quantile)
            ),
            false => writeln!(text, "{value:12.3} {quantile:.12} {seen:10}"),
        };
    }
    let _ = write!(
        text,
        "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]\n\
         #[Max     = {:12.3}, Total count    = {:12}]\n\
         #[Buckets = {:12}, SubBuckets     = {:12}]\n",
        histogram.mean() / per_unit,
        histogram.stdev() / per_unit,
        histogram.max() as f64 / per_unit,
        histogram.len(),
        histogram.buckets(),
        sub_buckets(),
    );
    text
}

/// Buckets per power of two at this precision.
const fn sub_buckets() -> u64 {
    (2 * 10_u64.pow(DIGITS as u32)).next_power_of_two()
}

/// The file name for one of several rows: the row's size precedes the extension.
pub fn file_of(file: &Path, row: &str) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let ending = file.extension().map_or_else(String::new, |ending| {
        format!(".{}", ending.to_string_lossy())
    });
    file.with_file_name(format!("{stem}-{row}{ending}"))
}

/// Writes the latencies of all rows: one file, or one per row if there are several.
///
/// # Errors
/// The name of the file that cannot be written, and the reason.
pub fn write<'a>(
    file: &Path,
    rows: impl IntoIterator<Item = (String, &'a LatencyCounts)>,
    per_unit: f64,
) -> Result<(), (PathBuf, std::io::Error)> {
    let rows: Vec<_> = rows.into_iter().collect();
    for (row, counts) in &rows {
        let file = match rows.len() {
            1 => file.to_owned(),
            _ => file_of(file, row),
        };
        whole_file::write(&file, text(counts, per_unit)).map_err(|error| (file, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines as a plotter reads them: value, percentile, count.
    fn read(text: &str) -> Vec<(f64, f64, u64)> {
        let lines = text.lines().skip(2).filter(|line| !line.starts_with('#'));
        let read = |line: &str| {
            let cells: Vec<&str> = line.split_whitespace().collect();
            let number = |at: usize| cells[at].parse::<f64>().expect("a number");
            if cells.len() == 4 {
                let inverse = 1.0 / (1.0 - number(1));
                assert!(
                    (number(3) - inverse).abs() <= 0.005 + 1e-6 * inverse,
                    "{line}"
                );
            }
            (number(0), number(1), number(2) as u64)
        };
        lines.map(read).collect()
    }

    #[test]
    fn written_distributions_are_read_back() {
        let buckets: Vec<_> = (1..=1_000).map(|n| (n * 1_000, 3)).collect();
        let counts = LatencyCounts {
            buckets,
            max_ns: 1_000_000,
        };
        let text = text(&counts, 1e3);
        assert!(text.starts_with("       Value     Percentile TotalCount 1/(1-Percentile)\n\n"));
        let lines = read(&text);
        for pair in lines.windows(2) {
            assert!(pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1 && pair[0].2 <= pair[1].2);
        }
        let last = lines.last().expect("lines");
        assert_eq!((last.1, last.2), (1.0, 3_000));
        for &(value, percentile, seen) in &lines {
            // Both are precise to a thousandth of the value, or of all messages.
            assert!(
                (value - 1_000.0 * percentile).abs() <= 0.002 * 1_000.0,
                "{value} {percentile}"
            );
            assert!(
                seen as f64 >= 3_000.0 * percentile - 1e-6,
                "{seen} {percentile}"
            );
        }
        assert!(lines.iter().any(|line| line.1 == 0.5));
        assert!(text.contains("#[Mean    =      500."), "{text}");
        assert!(text.contains("Total count    =         3000]"), "{text}");
    }

    #[test]
    fn of_nothing_there_is_a_file_too() {
        let text = text(&LatencyCounts::default(), 1e3);
        assert!(text.contains("Total count    =            0]"), "{text}");
    }

    #[test]
    fn rows_have_files_of_their_own() {
        let named = |file: &str| file_of(Path::new(file), "64").display().to_string();
        assert_eq!(named("a/lat.hgrm"), "a/lat-64.hgrm");
        assert_eq!(named("lat"), "lat-64");
    }
}
