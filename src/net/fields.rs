//! Reads the fields of TOML tables, and collects all mistakes; none of them is fatal.

use core::ops::{Range, RangeInclusive};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::files::Files;
use super::mistake::{Location, MistakeKind as K, Mistakes};
use super::shown::Shown;

/// Collects mistakes while fields are read.
#[derive(Debug, Default)]
pub struct Fields {
    pub mistakes: Mistakes,
    /// Files that the text may name.
    pub files: Files,
}

/// A value with its position in the text.
pub type Value<'r, 't> = &'r Spanned<DeValue<'t>>;

/// One table whose fields are being read; finish it once every known key is taken.
pub struct Section<'r, 't> {
    table: &'r DeTable<'t>,
    span: Range<usize>,
    what: &'static str,
    known: Vec<&'static str>,
}

impl<'r, 't> Section<'r, 't> {
    /// A table at `span` whose fields are unread; messages call it `what`.
    pub(crate) fn new(table: &'r DeTable<'t>, span: Range<usize>, what: &'static str) -> Self {
        Self {
            table,
            span,
            what,
            known: Vec::with_capacity(16),
        }
    }

    /// The table's position in the text.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// The value of a key, if the table has it. Marks the key as known.
    pub fn take(&mut self, key: &'static str) -> Option<Value<'r, 't>> {
        self.known.push(key);
        self.table.get(key)
    }

    /// All keys and values of a table whose keys are numbers.
    pub fn entries(
        &self,
    ) -> impl Iterator<Item = (&'r Spanned<std::borrow::Cow<'t, str>>, Value<'r, 't>)> + use<'r, 't>
    {
        self.table.iter()
    }

    /// Whether the table has the key; does not mark it as known.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }
}

impl Fields {
    /// Reports an error of the TOML.
    pub(crate) fn syntax(&mut self, error: &toml::de::Error) {
        let message = error.message().lines().collect::<Vec<_>>().join(" ");
        let kind = if message.starts_with("duplicate key") {
            K::DuplicateName
        } else {
            K::Syntax
        };
        self.mistakes.push(
            kind.at(Location::Text(error.span().unwrap_or(0..0)), message)
                .help(match kind {
                    K::DuplicateName => "a table cannot repeat a key: rename or remove one",
                    _ => "descriptions are written in TOML; see https://toml.io",
                }),
        );
    }

    /// Reports a wrong value, and how to fix it.
    pub fn bad(&mut self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.mistakes
            .push(K::BadValue.at(Location::Text(span), message).help(help));
    }

    /// Reports unknown keys.
    pub fn finish(&mut self, section: Section<'_, '_>) {
        for key in section.table.keys() {
            let name: &str = key.get_ref();
            if section.known.contains(&name) {
                continue;
            }
            self.mistakes.add(|| {
                // Do not compare a long name: every known key is far shorter.
                let comparable = section.known.iter().filter(|_| name.len() <= MOST_COMPARED);
                let near = comparable.min_by_key(|known| distance(known, name));
                let help = match near.filter(|known| distance(known, name) <= 2) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!(
                        "{} accepts the keys {}",
                        section.what,
                        section.known.join(", ")
                    ),
                };
                K::UnknownKey
                    .at(
                        Location::Text(key.span()),
                        format!("{} has no key `{}`", section.what, Shown(name)),
                    )
                    .label("unknown key")
                    .help(help)
            });
        }
    }

    /// Reports a missing key, with an example of its value.
    pub fn missing(&mut self, section: &Section<'_, '_>, key: &str, example: &str) {
        // Mark only the start: the first line of a section identifies it.
        let span = section.span();
        self.mistakes.push(
            K::MissingKey
                .at(
                    Location::Text(span.start..span.end.min(span.start + 1)),
                    format!("{} lacks the key `{key}`", section.what),
                )
                .help(format!("write `{key} = {example}`")),
        );
    }

    /// The value of a required key; if missing, reports it with an example.
    pub fn need<'r, 't>(
        &mut self,
        section: &mut Section<'r, 't>,
        key: &'static str,
        example: &str,
    ) -> Option<Value<'r, 't>> {
        let value = section.take(key);
        if value.is_none() {
            self.missing(section, key, example);
        }
        value
    }

    /// The table of a key, if present.
    pub fn part<'r, 't>(
        &mut self,
        section: &mut Section<'r, 't>,
        key: &'static str,
        what: &'static str,
    ) -> Option<Section<'r, 't>> {
        let value = section.take(key)?;
        self.table(value, what)
    }

    /// A whole number within `range`, of an optional key.
    pub fn number(
        &mut self,
        section: &mut Section<'_, '_>,
        key: &'static str,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        let value = section.take(key)?;
        self.integer(value, range)
    }

    fn wrong_type(&mut self, value: Value<'_, '_>, wanted: &str) {
        let found = value.get_ref().type_str();
        let article = match found.starts_with(['a', 'i']) {
            true => "an",
            false => "a",
        };
        self.bad(
            value.span(),
            format!("found {article} {found}"),
            format!("write {wanted}"),
        );
    }

    pub fn text<'r>(&mut self, value: Value<'r, '_>) -> Option<&'r str> {
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.wrong_type(value, "a string in quotation marks");
        }
        text
    }

    pub fn word<T: Copy>(&mut self, value: Value<'_, '_>, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(value)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let all: Vec<String> = words
                .iter()
                .map(|(word, _)| format!("\"{word}\""))
                .collect();
            self.bad(
                value.span(),
                format!("unknown value \"{}\"", Shown(text)),
                format!("write {}", all.join(" or ")),
            );
        }
        found.map(|(_, meaning)| *meaning)
    }

    /// A whole number within `range`.
    pub fn integer(&mut self, value: Value<'_, '_>, range: RangeInclusive<u64>) -> Option<u64> {
        self.integer_within(value, range.clone(), range)
    }

    /// A whole number within `range`. Messages state `right` as the valid range; the caller rejects
    /// a number outside that later, with a specific reason.
    pub fn integer_within(
        &mut self,
        value: Value<'_, '_>,
        range: RangeInclusive<u64>,
        right: RangeInclusive<u64>,
    ) -> Option<u64> {
        let Some(integer) = value.get_ref().as_integer() else {
            self.wrong_type(value, "a whole number");
            return None;
        };
        let number = i128::from_str_radix(integer.as_str(), integer.radix()).unwrap_or(i128::MAX);
        match u64::try_from(number)
            .ok()
            .filter(|number| range.contains(number))
        {
            Some(number) => Some(number),
            None => {
                let (least, most) = right.into_inner();
                let remedy = match least == most {
                    true => format!("only {least} is allowed here"),
                    false => format!("write a number from {least} to {most}"),
                };
                let message = format!("{} is out of range", Shown(integer.as_str()));
                self.bad(value.span(), message, remedy);
                None
            }
        }
    }

    /// The text of a number, whole or not.
    pub fn number_text<'r>(&mut self, value: Value<'r, '_>) -> Option<&'r str> {
        match value.get_ref() {
            DeValue::Float(float) => Some(float.as_str()),
            DeValue::Integer(integer) => Some(integer.as_str()),
            _ => {
                self.wrong_type(value, "a number");
                None
            }
        }
    }

    pub fn items<'r, 't>(&mut self, value: Value<'r, 't>) -> &'r [Spanned<DeValue<'t>>] {
        match value.get_ref().as_array() {
            Some(array) => array,
            None => {
                self.wrong_type(value, "an array: [ ... ]");
                &[]
            }
        }
    }

    /// The valid numbers, 0 to `most`, of an array.
    pub fn numbers(&mut self, value: Value<'_, '_>, most: u8) -> Vec<u8> {
        let items = self.items(value).iter();
        let numbers = items.filter_map(|item| self.integer(item, 0..=u64::from(most)));
        numbers.map(|number| number as u8).collect()
    }

    /// An array of `N` numbers from 0 to `most`; `None`, without a report, if its length differs.
    pub fn array<const N: usize>(&mut self, value: Value<'_, '_>, most: u8) -> Option<[u8; N]> {
        self.numbers(value, most).try_into().ok()
    }

    pub fn table<'r, 't>(
        &mut self,
        value: Value<'r, 't>,
        what: &'static str,
    ) -> Option<Section<'r, 't>> {
        match value.get_ref().as_table() {
            Some(table) => Some(Section::new(table, value.span(), what)),
            None => {
                self.wrong_type(value, "a table: { ... } or a separate section");
                None
            }
        }
    }

    pub fn tables<'r, 't>(
        &mut self,
        value: Value<'r, 't>,
        what: &'static str,
    ) -> Vec<Section<'r, 't>> {
        self.items(value)
            .iter()
            .filter_map(|item| self.table(item, what))
            .collect()
    }
}

/// Longest key, in bytes, to compare with the known ones.
const MOST_COMPARED: usize = 40;

/// Edit distance: letters to insert, remove or replace to turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = core::mem::replace(&mut row[0], i + 1);
        for (j, cb) in b.chars().enumerate() {
            let replaced = diagonal + usize::from(ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.chars().count()]
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("slices", "slices"), 0);
        assert_eq!(distance("slice", "slices"), 1);
        assert_eq!(distance("ports", "prots"), 2);
        assert_eq!(distance("", "abc"), 3);
    }
}
