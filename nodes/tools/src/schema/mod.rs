//! Schemas of JSON output (`--json`), derived from the printed types: JSON Schema, draft 2020-12;
//! and a checker.
//!
//! Doc comments of the printed fields become the descriptions. Objects have no properties beyond
//! those of their type.

mod checker;

pub use checker::KEYWORDS;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value};

/// A kind of JSON output.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    pub name: &'static str,
    /// Version of the schema, raised when a key changes its meaning or is removed.
    pub version: u32,
    /// The command that prints it.
    pub command: &'static str,
    pub title: &'static str,
    derive: fn(SchemaGenerator) -> schemars::Schema,
}

#[derive(Clone, Debug)]
pub struct Schema {
    pub output: Output,
    value: Value,
}

/// A schema with its keys in the order of the output, the subject first.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "$schema")]
    dialect: Option<&'a Value>,
    #[serde(rename = "$id")]
    id: String,
    title: &'a str,
    #[serde(rename = "x-version")]
    version: u32,
    #[serde(rename = "x-command")]
    command: &'a str,
    #[serde(flatten)]
    rules: Map<String, Value>,
    #[serde(rename = "$defs", skip_serializing_if = "Option::is_none")]
    parts: Option<Value>,
}

impl Output {
    /// The output of `command`: a serialised `T`.
    pub const fn of<T: JsonSchema>(
        name: &'static str,
        version: u32,
        command: &'static str,
        title: &'static str,
    ) -> Self {
        Self {
            name,
            version,
            command,
            title,
            derive: SchemaGenerator::into_root_schema_for::<T>,
        }
    }

    pub fn schema(self) -> Schema {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        let settings = settings.with_transform(RecursiveTransform(tidy));
        let value = (self.derive)(settings.into_generator()).to_value();
        Schema {
            output: self,
            value,
        }
    }
}

/// Closes objects, joins the lines of descriptions, and removes annotations about Rust's types or
/// their parsing.
fn tidy(schema: &mut schemars::Schema) {
    schema.remove("format");
    schema.remove("default");
    if let Some(text) = schema.get("description").and_then(Value::as_str) {
        let paragraphs = text.split("\n\n").map(|text| text.replace('\n', " "));
        let text = paragraphs.collect::<Vec<_>>().join("\n\n");
        schema.insert(String::from("description"), text.into());
    }
    if schema.get("properties").is_some() && schema.get("additionalProperties").is_none() {
        schema.insert(String::from("additionalProperties"), false.into());
    }
}

impl Schema {
    pub fn text(&self) -> String {
        let mut rules = self.value.as_object().cloned().unwrap_or_default();
        let parts = rules.remove("$defs");
        // Remove the keys that the head of the document already has.
        for key in ["$schema", "title", "description"] {
            rules.remove(key);
        }
        let Output {
            name,
            version,
            command,
            title,
            ..
        } = self.output;
        let document = Document {
            dialect: self.value.get("$schema"),
            id: format!("phitwire:{name}:{version}"),
            title,
            version,
            command,
            rules,
            parts,
        };
        serde_json::to_string_pretty(&document).expect("keys are strings") + "\n"
    }

    /// Violations of the schema in a value, as `PATH: MISTAKE`.
    pub fn mistakes(&self, value: &Value) -> Vec<String> {
        checker::mistakes(&self.value, value)
    }
}
