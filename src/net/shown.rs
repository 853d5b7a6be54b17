//! Untrusted text in messages: of readable length, without terminal control sequences.

use core::fmt::{self, Write as _};

/// Characters of a quoted value that are shown.
const MOST_QUOTED: usize = 64;
/// Characters of a message that are shown.
const MOST_MESSAGE: usize = 1_000;

/// Whether a character is invisible: it controls a terminal, or the order or appearance of its
/// neighbours.
pub fn is_unseen(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Appends a character, or its code point if it is invisible.
pub(crate) fn push(into: &mut String, letter: char) {
    match letter {
        '\t' => into.push_str("\\t"),
        '\n' => into.push_str("\\n"),
        '\r' => into.push_str("\\r"),
        _ if is_unseen(letter) => {
            // Writing into a String never fails.
            let _ = write!(into, "\\u{{{:x}}}", u32::from(letter));
        }
        _ => into.push(letter),
    }
}

/// A value quoted in a message: shortened and escaped.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'t>(pub &'t str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = String::new();
        let mut letters = self.0.chars();
        letters
            .by_ref()
            .take(MOST_QUOTED)
            .for_each(|letter| push(&mut shown, letter));
        f.write_str(&shown)?;
        match letters.as_str() {
            "" => Ok(()),
            _ => write!(f, "... ({} bytes)", self.0.len()),
        }
    }
}

/// Truncates and escapes a whole message. Quoted values in it must already be shortened.
pub fn message(text: String) -> String {
    let is_long = text.len() > MOST_MESSAGE && text.chars().nth(MOST_MESSAGE).is_some();
    if !is_long && !text.contains(is_unseen) {
        return text;
    }
    let mut shown = String::new();
    let mut letters = text.chars();
    letters
        .by_ref()
        .take(MOST_MESSAGE)
        .for_each(|letter| push(&mut shown, letter));
    if !letters.as_str().is_empty() {
        shown.push_str("...");
    }
    shown
}

/// Escapes a text of several lines, such as a report, but keeps its line ends.
pub fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => shown.push('\n'),
            _ => push(&mut shown, letter),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_control_characters_are_escaped() {
        let text = "a\u{1b}[31m\u{202e}b\u{9b}\u{7f}\0\n\u{feff}é";
        let shown = Shown(text).to_string();
        assert_eq!(
            shown,
            "a\\u{1b}[31m\\u{202e}b\\u{9b}\\u{7f}\\u{0}\\n\\u{feff}é"
        );
        assert_eq!(message(text.to_owned()), shown);
        assert_eq!(harmless("a\r\n\u{1b}b\n"), "a\\r\n\\u{1b}b\n");
    }

    #[test]
    fn long_values_are_cut_with_a_note() {
        let text = "x".repeat(MOST_QUOTED);
        assert_eq!(Shown(&text).to_string(), text);
        let text = "é".repeat(MOST_QUOTED + 1);
        let shown = Shown(&text).to_string();
        assert!(
            shown.ends_with("é... (130 bytes)") && shown.len() < 150,
            "{shown}"
        );
        assert_eq!(message("x".repeat(5_000)).len(), MOST_MESSAGE + 3);
    }
}
