//! Graphviz output.

use core::fmt::{Display, Write as _};

/// A graph being written.
pub struct Dot(String);

impl Dot {
    /// A graph with a name, a title and layout lines.
    pub fn new(name: &str, title: &str, layout: &[&str]) -> Self {
        let mut dot = Self(String::new());
        dot.line(format_args!("graph {} {{", quoted(name)));
        dot.line(format_args!("  label={};", quoted(title)));
        for line in layout {
            dot.line(format_args!("  {line};"));
        }
        dot
    }

    fn line(&mut self, line: impl Display) {
        // Writing into a String never fails.
        let _ = writeln!(self.0, "{line}");
    }

    /// A part of the graph, with nodes by name and label. A label may have several lines.
    pub fn part(&mut self, head: &str, nodes: impl IntoIterator<Item = (String, String)>) {
        self.line(format_args!("  {head}"));
        for (name, label) in nodes {
            let label = quoted(&label).replace('\n', "\\n");
            self.line(format_args!("    {} [label={label}];", quoted(&name)));
        }
        self.line("  }");
    }

    pub fn edge(&mut self, a: &str, b: &str, attributes: &[String]) {
        let attributes = match attributes {
            [] => String::new(),
            all => format!(" [{}]", all.join(", ")),
        };
        self.line(format_args!(
            "  {} -- {}{attributes};",
            quoted(a),
            quoted(b)
        ));
    }

    pub fn finish(mut self) -> String {
        self.line("}");
        self.0
    }
}

/// A Graphviz string.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
