//! Replies: the requested data, or why the request was refused.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::protocol::Holder;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Whether the request was carried out.
    pub ok: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// Why the request was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The refusal with its machine-readable reason, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
}

impl From<Result<Value, Refusal>> for Reply {
    fn from(result: Result<Value, Refusal>) -> Self {
        match result {
            Ok(data) => Self {
                ok: true,
                data: Some(data),
                error: None,
                refusal: None,
            },
            Err(refusal) => Self {
                ok: false,
                data: None,
                error: Some(refusal.text.clone()),
                refusal: refusal.code.is_some().then_some(refusal),
            },
        }
    }
}

impl Reply {
    /// The requested data, or the refusal.
    ///
    /// # Errors
    /// The refusal, which always has a text but not always a code.
    pub fn into_result(self) -> Result<Value, Refusal> {
        match self {
            Self { ok: true, data, .. } => Ok(data.unwrap_or(Value::Null)),
            Self { refusal, error, .. } => Err(refusal.unwrap_or_else(|| {
                let text = error.unwrap_or_else(|| "refused".to_owned());
                text.into()
            })),
        }
    }
}

/// Machine-readable reason of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// Another client holds the NIC: [`Refusal::holder`].
    Taken,
    /// A run without a holder is in progress: [`Refusal::run`].
    Busy,
    /// As [`Busy`](Self::Busy), but the run only waits for its last replies.
    Ending,
    /// The run is unknown, because this process started after it.
    UnknownRun,
    /// The line is not a known request.
    NotUnderstood,
    /// The request, or its reply, is too long for a line.
    TooLong,
    /// A restarted NIC cannot send yet, but will be able to soon.
    Early,
    /// A reason that this client does not know.
    #[serde(other)]
    Other,
}

/// A refusal, for display and for programs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    pub text: String,
    /// The reason, where programs act upon it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// The client that holds, or held, the NIC or unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
    /// The run in progress, and its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<(RunKind, u64)>,
}

/// Kinds of runs, named like the commands that end them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunKind {
    Traffic,
    Collective,
}

impl fmt::Display for RunKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Traffic => "traffic",
            Self::Collective => "collective",
        })
    }
}

impl Refusal {
    /// A refusal that programs act upon.
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self {
            code: Some(code),
            ..Self::from(text.into())
        }
    }
}

impl From<String> for Refusal {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

impl From<&str> for Refusal {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_refusal_arrives_as_it_was_sent() {
        let refusals = [
            Refusal::from("no such port"),
            Refusal::new(Code::NotUnderstood, "invalid request"),
            Refusal {
                run: Some((RunKind::Traffic, 9)),
                ..Refusal::new(Code::Busy, "traffic run 9 is still in progress")
            },
        ];
        for refusal in refusals {
            let line = serde_json::to_string(&Reply::from(Err(refusal.clone()))).expect("a line");
            let reply: Reply = serde_json::from_str(&line).expect("a reply");
            assert_eq!(reply.error.as_ref(), Some(&refusal.text));
            assert_eq!(reply.into_result(), Err(refusal));
        }
        let done = Reply::from(Ok(json!(7)));
        assert_eq!(done.into_result(), Ok(json!(7)));
    }

    #[test]
    fn reasons_of_another_age_are_refusals_all_the_same() {
        let read = |text| serde_json::from_str::<Reply>(text).expect("a reply");
        let newer = r#"{"ok":false,"error":"a","refusal":{"text":"a","code":"on-strike"}}"#;
        let refusal = read(newer).into_result().expect_err("an error reply");
        assert_eq!(refusal, Refusal::new(Code::Other, "a"));
        let older = r#"{"ok":false,"error":"b"}"#;
        assert_eq!(read(older).into_result(), Err("b".into()));
    }
}
