//! Files that hold the options of a run: TOML, or the output of `phitwire sim --json`.

use std::ops::Range;
use std::sync::Arc;

use miette::{Diagnostic, SourceSpan};
use phitwire::net::{Excerpt, excerpt, short_message};
use serde_json::Value;
use thiserror::Error;
use toml::de::{DeTable, DeValue};

use crate::input_file::InputFile;

/// Maximum number of options in a file: more than `phitwire sim` has.
const MOST_OPTIONS: usize = 200;

/// An option in a file.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) setting: Setting,
    /// Positions of the name and of the value in the text.
    pub(super) spans: [Range<usize>; 2],
}

/// The value of an option in a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Setting {
    Switch(bool),
    /// A text, or a number as text.
    Word(String),
    List(Vec<String>),
    /// Another type, by its name.
    Other(&'static str),
}

/// The options of a run, from a file.
#[derive(Debug)]
pub(super) struct ConfigFile {
    name: String,
    text: String,
    pub(super) entries: Vec<Entry>,
}

/// A mistake in a file.
#[derive(Debug, Diagnostic, Error)]
#[error("{message}")]
pub(super) struct ConfigError {
    message: String,
    #[source_code]
    text: Arc<Excerpt>,
    #[label("here")]
    span: SourceSpan,
    #[help]
    help: Option<String>,
}

impl ConfigFile {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or is neither TOML nor the output of `phitwire sim --json`.
    pub(super) fn read(input: InputFile) -> miette::Result<Self> {
        let name = input.name.clone();
        let mut file = Self {
            name,
            text: input.text()?,
            entries: Vec::new(),
        };
        let entries = match is_json(&file.text) {
            true => file.of_json()?,
            false => file.of_toml()?,
        };
        file.entries = entries;
        Ok(file)
    }

    /// A mistake at `span` of the text.
    pub(super) fn mistake(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        help: Option<String>,
    ) -> ConfigError {
        let (text, span) = excerpt(&self.name, &self.text, span);
        ConfigError {
            message: short_message(message.into()),
            text: Arc::new(text),
            span,
            help,
        }
    }

    fn of_toml(&self) -> Result<Vec<Entry>, ConfigError> {
        let table = DeTable::parse(&self.text).map_err(|error| {
            let message = error.message().lines().collect::<Vec<_>>().join(" ");
            let help = "write OPTION = VALUE in each line (TOML), such as load = 0.3".to_owned();
            self.mistake(error.span().unwrap_or(0..0), message, Some(help))
        })?;
        let entries = table.get_ref().iter().map(|(key, value)| Entry {
            name: key.get_ref().to_string(),
            setting: Setting::of_toml(value.get_ref()),
            spans: [key.span(), value.span()],
        });
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by_key(|entry| entry.spans[0].start);
        Ok(entries)
    }

    fn of_json(&self) -> Result<Vec<Entry>, ConfigError> {
        let value: Value = serde_json::from_str(&self.text).map_err(|error| {
            let span = self.offset(error.line(), error.column());
            self.mistake(span..span, format!("invalid JSON: {error}"), None)
        })?;
        let points = value
            .as_array()
            .map_or(std::slice::from_ref(&value), |all| &all[..]);
        let options = points
            .first()
            .and_then(|point| point["options"].as_object());
        let Some(options) = options else {
            let help = "write the options in TOML, or pass the output of `phitwire sim --json`";
            let message =
                "the JSON has no `options`: it is not the output of `phitwire sim --json`";
            return Err(self.mistake(0..0, message, Some(help.to_owned())));
        };
        if points
            .iter()
            .any(|point| point["options"].as_object() != Some(options))
        {
            let help = Some("keep the points of one run".to_owned());
            return Err(self.mistake(
                0..0,
                "the points come from runs with different options",
                help,
            ));
        }
        if options.len() > MOST_OPTIONS {
            let message = format!("{} options, at most {MOST_OPTIONS} expected", options.len());
            return Err(self.mistake(0..0, message, None));
        }
        let from = self.text.find("\"options\"").unwrap_or(0);
        let entry = |(name, value): (&String, &Value)| {
            let quoted = format!("\"{name}\"");
            let at = self.text[from..].find(&quoted).map_or(from, |at| from + at);
            let span = at..at + quoted.len();
            Entry {
                name: name.clone(),
                setting: Setting::of_json(value),
                spans: [span.clone(), span],
            }
        };
        Ok(options.iter().map(entry).collect())
    }

    /// The offset of a line and column, both from 1.
    fn offset(&self, line: usize, column: usize) -> usize {
        let before = self.text.split_inclusive('\n').take(line.saturating_sub(1));
        before.map(str::len).sum::<usize>() + column.saturating_sub(1)
    }
}

/// Whether a text is JSON: an object or a list of objects. TOML can begin with `[`, but not with
/// `[{`.
fn is_json(text: &str) -> bool {
    let text = text.trim_start();
    let inner = text.strip_prefix('[').map_or(text, str::trim_start);
    inner.starts_with('{')
}

impl Setting {
    fn of_toml(value: &DeValue<'_>) -> Self {
        match value {
            DeValue::Boolean(is_on) => Self::Switch(*is_on),
            DeValue::Array(items) => {
                let words = items.iter().map(|item| toml_word(item.get_ref()));
                let words: Option<Vec<_>> = words.collect();
                words.map_or(Self::Other("a list that contains other types"), Self::List)
            }
            DeValue::Table(_) => Self::Other("a table"),
            DeValue::Datetime(_) => Self::Other("a date"),
            word => toml_word(word).map_or(Self::Other("another type"), Self::Word),
        }
    }

    fn of_json(value: &Value) -> Self {
        match value {
            Value::Bool(is_on) => Self::Switch(*is_on),
            Value::Array(items) => {
                let words: Option<Vec<_>> = items.iter().map(json_word).collect();
                words.map_or(Self::Other("a list that contains other types"), Self::List)
            }
            Value::Object(_) => Self::Other("an object"),
            Value::Null => Self::Other("null"),
            word => json_word(word).map_or(Self::Other("another type"), Self::Word),
        }
    }

    /// The type of the value, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Switch(_) => "a boolean",
            Self::Word(_) => "a single value",
            Self::List(_) => "a list",
            Self::Other(kind) => kind,
        }
    }
}

/// A text, or a number in decimal notation.
fn toml_word(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Float(float) => Some(float.as_str().to_owned()),
        DeValue::Integer(number) => {
            let read = i128::from_str_radix(number.as_str(), number.radix());
            Some(read.map_or_else(|_| number.as_str().to_owned(), |read| read.to_string()))
        }
        _ => None,
    }
}

fn json_word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
