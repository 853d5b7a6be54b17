//! From bytes to TOML, within the limits of a description.

use core::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, Error};

use super::limits::{MAX_DESCRIPTION_BYTES, MAX_RECOVERED_BYTES};
use super::mistake::{Location, Mistake, MistakeKind as K, Mistakes, Problems};

/// A description as TOML, and its syntax errors.
pub(crate) struct Parsed<'t> {
    pub(crate) table: Spanned<DeTable<'t>>,
    pub(crate) errors: Vec<Error>,
}

/// Parses `text`. Reports all syntax errors of texts of usual size, but only the first of larger
/// ones: every line of a megabyte may be an error.
///
/// # Errors
/// If the text is too large.
pub(crate) fn parse<'t>(file: &str, text: &'t str) -> Result<Parsed<'t>, Problems> {
    if text.len() > MAX_DESCRIPTION_BYTES {
        return Err(too_large(file));
    }
    if text.len() <= MAX_RECOVERED_BYTES {
        let (table, errors) = DeTable::parse_recoverable(text);
        return Ok(Parsed { table, errors });
    }
    Ok(match DeTable::parse(text) {
        Ok(table) => Parsed {
            table,
            errors: Vec::new(),
        },
        Err(error) => Parsed {
            table: Spanned::new(0..0, DeTable::new()),
            errors: vec![error],
        },
    })
}

/// The text of a description.
///
/// # Errors
/// If there are too many bytes, or if they are not UTF-8; then the error names the first invalid
/// one.
pub(crate) fn text<'t>(file: &str, bytes: &'t [u8]) -> Result<&'t str, Problems> {
    if bytes.len() > MAX_DESCRIPTION_BYTES {
        return Err(too_large(file));
    }
    core::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let shown = String::from_utf8_lossy(bytes);
        let mistake = K::NotText.at(
            Location::Text(at..at + 1),
            format!("invalid UTF-8: byte {:#04x}", bytes[at]),
        );
        problem(
            file,
            &shown,
            mistake.help("descriptions are TOML, encoded in UTF-8"),
        )
    })
}

fn too_large(file: &str) -> Problems {
    let message = format!("the description exceeds {MAX_DESCRIPTION_BYTES} bytes");
    let mistake = K::TooLarge.at(Location::Text(0..0), message).help(
        "the largest network of one slice takes 5.5 million bytes; slices are separate networks, \
         so describe one of several identical ones",
    );
    problem(file, "", mistake)
}

/// A single mistake of a description, at bytes of its text.
fn problem(file: &str, text: &str, mistake: Mistake) -> Problems {
    let mut mistakes = Mistakes::default();
    mistakes.push(mistake);
    Problems::new(file, text, mistakes, span_in_text)
}

/// The bytes of a mistake when only the text is known.
pub(crate) fn span_in_text(location: &Location) -> Range<usize> {
    match location {
        Location::Text(span) => span.clone(),
        _ => 0..0,
    }
}
