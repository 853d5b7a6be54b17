//! Schemas of what the commands print with `--json`: the subset of JSON Schema that they need, and
//! a validator.

use serde_json::Value;

/// Every schema, by name.
const ALL: [(&str, &str); 14] = [
    (
        "bench-collectives",
        include_str!("../schema/bench-collectives.json"),
    ),
    (
        "bench-goodput",
        include_str!("../schema/bench-goodput.json"),
    ),
    (
        "bench-messages",
        include_str!("../schema/bench-messages.json"),
    ),
    ("capture", include_str!("../schema/capture.json")),
    ("channels", include_str!("../schema/channels.json")),
    ("manage", include_str!("../schema/manage.json")),
    ("msgrate", include_str!("../schema/msgrate.json")),
    ("ping", include_str!("../schema/ping.json")),
    ("reproduce", include_str!("../schema/reproduce.json")),
    ("route", include_str!("../schema/route.json")),
    ("sim", include_str!("../schema/sim.json")),
    ("soak", include_str!("../schema/soak.json")),
    ("top", include_str!("../schema/top.json")),
    ("trace", include_str!("../schema/trace.json")),
];

/// Maximum number of mistakes reported.
const MOST_MISTAKES: usize = 20;

#[derive(Clone, Debug)]
pub struct Schema {
    pub name: &'static str,
    pub text: &'static str,
    value: Value,
}

pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|(name, _)| *name).collect()
}

/// The schema of this name.
///
/// # Panics
/// Never: the texts are part of the command, and a test reads them.
pub fn find(name: &str) -> Option<Schema> {
    let (name, text) = *ALL.iter().find(|(known, _)| *known == name)?;
    let value = serde_json::from_str(text).expect("a test reads every schema");
    Some(Schema { name, text, value })
}

impl Schema {
    fn word(&self, key: &str) -> &str {
        self.value[key].as_str().unwrap_or("")
    }

    pub fn title(&self) -> &str {
        self.word("title")
    }

    /// The command that prints such values.
    pub fn command(&self) -> &str {
        self.word("x-command")
    }

    /// Version of the schema, raised when a key changes its meaning or disappears.
    pub fn version(&self) -> u64 {
        self.value["x-version"].as_u64().unwrap_or(0)
    }

    /// Violations of the schema in a value, as `PLACE: WHAT`.
    pub fn mistakes(&self, value: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.check(&self.value, value, "$", &mut found);
        found
    }

    fn check(&self, schema: &Value, value: &Value, place: &str, found: &mut Vec<String>) {
        if found.len() >= MOST_MISTAKES {
            return;
        }
        if let Some(name) = schema["$ref"].as_str() {
            let part = name
                .strip_prefix('#')
                .and_then(|name| self.value.pointer(name));
            return match part {
                Some(part) => self.check(part, value, place, found),
                None => found.push(format!("{place}: the schema has no {name}")),
            };
        }
        if let Some(any) = schema["anyOf"].as_array() {
            let each = any.iter().map(|one| {
                let mut found = Vec::new();
                self.check(one, value, place, &mut found);
                found
            });
            // Report the mistakes of the closest alternative.
            let other_kind = format!("{place}: found {}, expected", kind(value));
            let far = |found: &Vec<String>| {
                let is_other = found.iter().any(|told| told.starts_with(&other_kind));
                (is_other, found.len())
            };
            found.extend(each.min_by_key(far).unwrap_or_default());
            return;
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
            found.push(format!("{place}: found {own}, expected {}", schema["type"]));
            return;
        }
        match value {
            Value::Object(_) => self.check_object(schema, value, place, found),
            Value::Array(items) => {
                let each = items.iter().enumerate();
                each.filter(|_| !schema["items"].is_null())
                    .for_each(|(at, item)| {
                        self.check(&schema["items"], item, &format!("{place}[{at}]"), found);
                    });
            }
            _ => {}
        }
    }

    fn check_object(&self, schema: &Value, value: &Value, place: &str, found: &mut Vec<String>) {
        let required = schema["required"].as_array().into_iter().flatten();
        for key in required.filter_map(Value::as_str) {
            if value.get(key).is_none() {
                found.push(format!("{place}: `{key}` is missing"));
            }
        }
        for (key, inner) in value.as_object().into_iter().flatten() {
            let place = format!("{place}.{key}");
            match (
                schema["properties"].get(key),
                &schema["additionalProperties"],
            ) {
                (Some(own), _) => self.check(own, inner, &place, found),
                (None, Value::Bool(false)) => found.push(format!("{place}: unexpected key")),
                (None, others @ Value::Object(_)) => self.check(others, inner, &place, found),
                (None, _) => {}
            }
        }
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
    use super::*;
    use serde_json::json;

    /// Collects the properties of a schema, at any depth, without a description.
    fn undescribed(schema: &Value, place: &str, found: &mut Vec<String>) {
        if !schema.is_object() {
            return;
        }
        for (key, part) in schema["properties"].as_object().into_iter().flatten() {
            let place = format!("{place}.{key}");
            if part["description"].as_str().is_none_or(str::is_empty) {
                found.push(place.clone());
            }
            undescribed(part, &place, found);
        }
        for inner in ["items", "additionalProperties"] {
            undescribed(&schema[inner], place, found);
        }
        undescribed(&schema["$defs"]["one"], place, found);
    }

    #[test]
    fn all_schemas_are_read_and_say_what_everything_is() {
        for name in names() {
            let schema = find(name).expect(name);
            assert_eq!(
                schema.value["$id"],
                format!("phitwire:{name}:{}", schema.version())
            );
            assert!(
                !schema.title().is_empty() && !schema.command().is_empty(),
                "{name}"
            );
            let mut found = Vec::new();
            undescribed(&schema.value, name, &mut found);
            assert!(found.is_empty(), "{found:?}");
        }
        assert!(find("nothing").is_none());
    }

    #[test]
    fn values_that_are_otherwise_are_found() {
        let schema = find("ping").expect("it is there");
        let good = json!({
            "version": 1, "lab": "x", "from": "nic0", "to": "nic1", "operation": "put of 8 bytes",
            "sent": 1, "answered": 0, "refused": 0, "damaged": 0, "lost": 1,
            "min_us": null, "avg_us": null, "max_us": 3,
        });
        assert_eq!(schema.mistakes(&good), [] as [&str; 0]);
        for (change, told) in [
            (
                json!({ "lost": "one" }),
                "$.lost: found string, expected \"integer\"",
            ),
            (
                json!({ "lost": 1.5 }),
                "$.lost: found number, expected \"integer\"",
            ),
            (json!({ "more": 1 }), "$.more: unexpected key"),
        ] {
            let mut bad = good.clone();
            bad.as_object_mut()
                .expect("an object")
                .extend(change.as_object().expect("one").clone());
            assert_eq!(schema.mistakes(&bad), [told]);
        }
        let mut less = good;
        less.as_object_mut().expect("an object").remove("sent");
        assert_eq!(schema.mistakes(&less), ["$: `sent` is missing"]);
        let rows = find("bench-messages").expect("it is there");
        assert_eq!(
            rows.mistakes(&json!({})),
            ["$: found object, expected \"array\""]
        );
        assert!(rows.mistakes(&json!([{}]))[0].starts_with("$[0]: `benchmark` is missing"));
    }
}
