//! Reads any bytes as a description, for the fuzz target and the replay of its corpus.

use phitwire::net::{Effort, MAX_MISTAKES};
use phitwire_machines::CATALOGUE;

/// Maximum number of characters in a line of the report.
const MOST_LETTERS: usize = 3_000;

/// Reads `bytes` as a description and checks the report of its mistakes: bounded in number and
/// length, without control characters. A valid description survives being written and read again.
/// Returns the lines of the report, none for a valid description.
pub fn answer(bytes: &[u8]) -> String {
    match CATALOGUE.read_with("any.toml", bytes, Effort::Bounded) {
        Ok(read) => {
            let text = read.network.write();
            let again = CATALOGUE
                .read("again.toml", &text)
                .expect("what was written can be read");
            assert_eq!(*again, *read.network);
            String::new()
        }
        Err(problems) => {
            let lines = problems.lines();
            assert!((1..=MAX_MISTAKES).contains(&problems.mistakes().len()));
            for line in lines.lines() {
                assert!(line.chars().count() <= MOST_LETTERS, "{line}");
                assert!(!line.contains(char::is_control), "{line:?}");
            }
            lines
        }
    }
}
