//! A checker for the subset of JSON Schema that derived schemas use.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

/// Maximum number of mistakes reported.
const MOST_MISTAKES: usize = 20;

/// Keywords that the checker evaluates, and annotations. It rejects a schema with other keywords
/// instead of ignoring them.
pub const KEYWORDS: [&str; 22] = [
    "$defs",
    "$id",
    "$ref",
    "$schema",
    "additionalProperties",
    "anyOf",
    "const",
    "description",
    "enum",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "oneOf",
    "prefixItems",
    "properties",
    "required",
    "title",
    "type",
    "x-command",
    "x-version",
];

/// Violations of the schema `root` in a value, as `PATH: MISTAKE`.
pub(super) fn mistakes(root: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    Checker { root }.check(root, value, "$", &mut found);
    found.truncate(MOST_MISTAKES);
    found
}

struct Checker<'a> {
    root: &'a Value,
}

impl Checker<'_> {
    fn check(&self, schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
        if found.len() >= MOST_MISTAKES {
            return;
        }
        let keys = schema.as_object().into_iter().flat_map(Map::keys);
        let unknown = keys.filter(|key| !KEYWORDS.contains(&key.as_str()));
        found.extend(unknown.map(|key| format!("{path}: the checker does not know `{key}`")));
        if let Some(name) = schema["$ref"].as_str() {
            let part = name
                .strip_prefix('#')
                .and_then(|name| self.root.pointer(name));
            return match part {
                Some(part) => self.check(part, value, path, found),
                None => found.push(format!("{path}: the schema has no {name}")),
            };
        }
        // Check `oneOf` as `anyOf`: the alternatives of derived schemas exclude each other.
        for key in ["anyOf", "oneOf"] {
            if let Some(any) = schema[key].as_array() {
                return self.check_any(any, value, path, found);
            }
        }
        let own = kind(value);
        let is_kind = |wanted: &Value| {
            wanted
                .as_str()
                .is_some_and(|wanted| wanted == own || (wanted == "number" && own == "integer"))
        };
        let is_right = match &schema["type"] {
            Value::Null => true,
            Value::Array(kinds) => kinds.iter().any(is_kind),
            one => is_kind(one),
        };
        if !is_right {
            found.push(format!("{path}: found {own}, expected {}", schema["type"]));
            return;
        }
        if let Some(wanted) = schema.get("const").filter(|wanted| *wanted != value) {
            found.push(format!("{path}: found {value}, expected {wanted}"));
        }
        if let Some(wanted) = schema["enum"].as_array()
            && !wanted.contains(value)
        {
            found.push(format!(
                "{path}: found {value}, expected {}",
                schema["enum"]
            ));
        }
        match value {
            Value::Object(_) => self.check_object(schema, value, path, found),
            Value::Array(items) => self.check_array(schema, items, path, found),
            Value::Number(number) => check_range(schema, number, path, found),
            _ => {}
        }
    }

    /// Reports the mistakes of the closest alternative.
    fn check_any(&self, any: &[Value], value: &Value, path: &str, found: &mut Vec<String>) {
        let each = any.iter().map(|one| {
            let mut found = Vec::new();
            self.check(one, value, path, &mut found);
            found
        });
        let other_kind = format!("{path}: found {}, expected", kind(value));
        let far = |found: &Vec<String>| {
            let is_other = found.iter().any(|mistake| mistake.starts_with(&other_kind));
            (is_other, found.len())
        };
        found.extend(each.min_by_key(far).unwrap_or_default());
    }

    fn check_array(&self, schema: &Value, items: &[Value], path: &str, found: &mut Vec<String>) {
        let count = items.len() as u64;
        let (least, most) = (schema["minItems"].as_u64(), schema["maxItems"].as_u64());
        if least.is_some_and(|least| count < least) || most.is_some_and(|most| count > most) {
            found.push(format!("{path}: {count} items"));
        }
        let first = schema["prefixItems"].as_array();
        let first = first.map_or(&[][..], Vec::as_slice);
        for (at, item) in items.iter().enumerate() {
            let wanted = first.get(at).unwrap_or(&schema["items"]);
            self.check(wanted, item, &format!("{path}[{at}]"), found);
        }
    }

    fn check_object(&self, schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
        let required = schema["required"].as_array().into_iter().flatten();
        for key in required.filter_map(Value::as_str) {
            if value.get(key).is_none() {
                found.push(format!("{path}: `{key}` is missing"));
            }
        }
        for (key, inner) in value.as_object().into_iter().flatten() {
            let path = format!("{path}.{key}");
            match (
                schema["properties"].get(key),
                &schema["additionalProperties"],
            ) {
                (Some(own), _) => self.check(own, inner, &path, found),
                (None, Value::Bool(false)) => found.push(format!("{path}: unexpected key")),
                (None, others @ Value::Object(_)) => self.check(others, inner, &path, found),
                (None, _) => {}
            }
        }
    }
}

fn check_range(schema: &Value, number: &Number, path: &str, found: &mut Vec<String>) {
    let is_beyond = |key: &str, order| match &schema[key] {
        Value::Number(limit) => compare(number, limit) == Some(order),
        _ => false,
    };
    if is_beyond("minimum", Ordering::Less) {
        found.push(format!("{path}: {number} is below {}", schema["minimum"]));
    }
    if is_beyond("maximum", Ordering::Greater) {
        found.push(format!("{path}: {number} is above {}", schema["maximum"]));
    }
}

fn compare(a: &Number, b: &Number) -> Option<Ordering> {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

/// The schema's name for the type of a value.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A schema with every keyword.
    fn schema() -> Value {
        let number = json!({ "type": "integer", "minimum": 0, "maximum": 9 });
        json!({
            "$defs": { "number": number },
            "type": "object",
            "properties": {
                "number": { "$ref": "#/$defs/number" },
                "one_of": { "oneOf": [{ "type": "string", "const": "a" }, { "type": "null" }] },
                "any_of": { "anyOf": [{ "$ref": "#/$defs/number" }, { "type": "null" }] },
                "enum": { "type": "string", "enum": ["a", "b"] },
                "items": { "type": "array", "items": { "type": "string" }, "maxItems": 2 },
                "pair": {
                    "type": "array",
                    "prefixItems": [{ "type": "string" }, { "type": "integer" }],
                    "minItems": 2,
                },
                "map": { "type": "object", "additionalProperties": { "type": ["null", "number"] } },
                "nothing": { "$ref": "#/$defs/nothing" },
                "odd": { "type": "integer", "not": { "const": 2 } },
            },
            "required": ["number"],
            "additionalProperties": false,
        })
    }

    /// Proves that every keyword can fail.
    #[test]
    fn values_that_break_a_keyword_are_found() {
        let schema = schema();
        let good = json!({
            "number": 9, "one_of": "a", "any_of": null, "enum": "b", "items": ["x", "y"],
            "pair": ["x", 1], "map": { "x": 1.5, "y": 2, "z": null },
        });
        assert_eq!(mistakes(&schema, &good), [] as [&str; 0]);
        for (change, expected) in [
            (json!({ "number": -1 }), "$.number: -1 is below 0"),
            (json!({ "number": 10 }), "$.number: 10 is above 9"),
            (
                json!({ "number": 1.5 }),
                "$.number: found number, expected \"integer\"",
            ),
            (
                json!({ "one_of": "b" }),
                "$.one_of: found \"b\", expected \"a\"",
            ),
            (json!({ "any_of": 10 }), "$.any_of: 10 is above 9"),
            (
                json!({ "enum": "c" }),
                "$.enum: found \"c\", expected [\"a\",\"b\"]",
            ),
            (
                json!({ "items": [1] }),
                "$.items[0]: found integer, expected \"string\"",
            ),
            (json!({ "items": ["x", "y", "z"] }), "$.items: 3 items"),
            (json!({ "pair": ["x"] }), "$.pair: 1 items"),
            (
                json!({ "pair": ["x", "y"] }),
                "$.pair[1]: found string, expected \"integer\"",
            ),
            (
                json!({ "map": { "x": true } }),
                "$.map.x: found boolean, expected [\"null\",\"number\"]",
            ),
            (json!({ "more": 1 }), "$.more: unexpected key"),
            (
                json!({ "nothing": 1 }),
                "$.nothing: the schema has no #/$defs/nothing",
            ),
            (
                json!({ "odd": 2 }),
                "$.odd: the checker does not know `not`",
            ),
        ] {
            let mut bad = good.clone();
            let change = change.as_object().cloned().unwrap_or_default();
            bad.as_object_mut().expect("an object").extend(change);
            assert_eq!(mistakes(&schema, &bad), [expected]);
        }
        assert_eq!(mistakes(&schema, &json!({})), ["$: `number` is missing"]);
        assert_eq!(
            mistakes(&schema, &json!([])),
            ["$: found array, expected \"object\""]
        );
    }
}
