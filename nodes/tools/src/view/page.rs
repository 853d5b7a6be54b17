use std::fmt::Write as _;

use serde_json::{Value, json};

/// HTML and style; the script, its configuration and a nonce are inserted.
const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
/// The script, in parts.
const SCRIPT: [&str; 6] = [
    include_str!("page/data.js"),
    include_str!("page/picture.js"),
    include_str!("page/panels.js"),
    include_str!("page/pipeline.js"),
    include_str!("page/timeline.js"),
    include_str!("page/main.js"),
];

/// The page and its configuration.
#[derive(Clone, Debug)]
pub struct Page {
    pub title: String,
    /// The script's configuration: the source of its data.
    pub config: Value,
    /// A nonce in the page and in its server's policy, so that no other scripts run.
    pub nonce: String,
}

impl Page {
    /// The content security policy: permits this script, and data from the page's origin.
    pub fn policy(&self) -> String {
        format!(
            "default-src 'none'; script-src 'nonce-{}'; style-src 'unsafe-inline'; \
             connect-src 'self' data:; img-src data:; base-uri 'none'; form-action 'none'",
            self.nonce
        )
    }

    pub fn html(&self) -> String {
        self.with("")
    }

    fn with(&self, data: &str) -> String {
        let mut script = String::from("\"use strict\";\n");
        for part in SCRIPT {
            script.push_str(part);
        }
        // Escape the data, so that they cannot contain the end tag of a script.
        let config = self.config.to_string().replace('<', "\\u003c");
        PAGE.replace("@TITLE@", &escaped(&self.title))
            .replace("@POLICY@", &self.policy())
            .replace("@NONCE@", &self.nonce)
            .replace("@STYLE@", STYLE)
            .replace("@CONFIG@", &config)
            .replace("@DATA@", data)
            .replace("@SCRIPT@", &script)
    }
}

/// A page with a whole recording in it, compressed as in its file.
pub fn report(title: &str, packed: &[u8], nonce: String) -> String {
    let page = Page {
        title: title.to_owned(),
        config: json!({ "mode": "embedded" }),
        nonce,
    };
    page.with(&base64(packed))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('@', "&#64;")
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let word = three
            .iter()
            .fold(0_u32, |word, &b| word << 8 | u32::from(b));
        let word = word << (8 * (3 - three.len()));
        for digit in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * digit) & 63) as usize];
            // Writing to a String cannot fail.
            let _ = match digit <= three.len() {
                true => text.write_char(letter.into()),
                false => text.write_char('='),
            };
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_letters() {
        let all =
            ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(
            all,
            [
                "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"
            ]
        );
    }

    #[test]
    fn the_page_has_all_in_it_and_fetches_nothing_from_elsewhere() {
        let page = report("a <b> & @SCRIPT@", b"packed", "nonce".to_owned());
        for left in [
            "@TITLE@", "@SCRIPT@", "@STYLE@", "@CONFIG@", "@DATA@", "@NONCE@",
        ] {
            assert!(!page.contains(left), "{left}");
        }
        assert!(page.contains("a &lt;b> &amp; &#64;SCRIPT&#64;"));
        for word in ["http://", "https://", "import ", "src="] {
            let found = page
                .replace("http://www.w3.org/2000/svg", "")
                .contains(word);
            assert!(!found, "{word}");
        }
        assert!(page.contains(&base64(b"packed")));
    }
}
