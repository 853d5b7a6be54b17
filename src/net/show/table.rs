//! Tables for terminals.

use core::fmt::{Display, Write as _};

use phitwire_framing::carrier::lanes::Lanes;

use super::counted;
use crate::net::model::Link;
use crate::net::network::Network;

/// A table whose columns are as wide as their widest cells.
pub struct Table<'h> {
    head: Vec<&'h str>,
    pub rows: Vec<Vec<String>>,
}

impl<'h> Table<'h> {
    pub fn new(head: impl IntoIterator<Item = &'h str>) -> Self {
        Self {
            head: head.into_iter().collect(),
            rows: Vec::new(),
        }
    }

    pub fn row<const N: usize>(&mut self, cells: [&dyn Display; N]) {
        self.rows.push(cells.map(ToString::to_string).to_vec());
    }

    /// Appends the table to `out`.
    pub fn write(&self, out: &mut String) {
        let mut widths: Vec<usize> = self.head.iter().map(|cell| cell.len()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let head: Vec<String> = self.head.iter().map(|&cell| cell.to_owned()).collect();
        for row in core::iter::once(&head).chain(&self.rows) {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .map(|(cell, &width)| format!("{cell:width$}"))
                .collect();
            // Writing into a String never fails.
            let _ = writeln!(out, "{}", cells.join("  ").trim_end());
        }
    }

    /// Appends the table, the number of rows not shown (of `all`), and an empty line.
    pub fn write_of(&self, out: &mut String, all: usize, what: &str) {
        self.write(out);
        if all > self.rows.len() {
            let more = counted(all - self.rows.len(), what);
            let _ = writeln!(out, "... and {more} more");
        }
        let _ = writeln!(out);
    }
}

/// A text, or `-` if empty.
pub fn or_dash(text: impl Display) -> String {
    let text = text.to_string();
    match text.is_empty() {
        true => String::from("-"),
        false => text,
    }
}

/// Appends a table of the first `most` links, whose lanes are `lanes`. The machine's own columns,
/// headed `own`, are between ends and cable.
pub fn links<Rate, const N: usize>(
    out: &mut String,
    network: &impl Network,
    (links, lanes): (&[Link<Rate>], Lanes),
    most: usize,
    own: [&str; N],
    cells_of: impl Fn(&Link<Rate>) -> [&'static str; N],
) {
    let mut table = Table::new(["LINK", "A", "B"].into_iter().chain(own).chain(["CABLE"]));
    for (id, link) in links.iter().take(most).enumerate() {
        let cable = match link.cable.is_identity() {
            true => String::from("straight"),
            false => {
                let (order, invert) = (link.cable.order(), link.cable.invert());
                let (order, invert) = (&order[..lanes.count()], &invert[..lanes.count()]);
                format!("lanes {order:?}, inverted {invert:?}")
            }
        };
        let (a, b) = (network.end_name(link.a), network.end_name(link.b));
        let mut row = vec![id.to_string(), a, b];
        row.extend(cells_of(link).map(str::to_owned));
        row.push(cable);
        table.rows.push(row);
    }
    table.write_of(out, links.len(), "link");
}
