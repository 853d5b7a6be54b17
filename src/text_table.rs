//! Text tables for display: columns two spaces apart, without rules or trailing spaces.
//!
//! Widths depend on the cells, not on a terminal: the same values give the same text everywhere.

use comfy_table::{CellAlignment, ColumnConstraint, Row, Table, Width, presets};

/// Spaces between two columns.
const GAP: u16 = 2;

fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

/// Rows under a header, each column as wide as its widest cell.
#[derive(Debug)]
pub struct TextTable {
    table: Table,
    /// The columns of numbers, which are right-aligned.
    figures: core::ops::Range<usize>,
}

impl TextTable {
    pub fn new(head: &[&str]) -> Self {
        let mut table = plain();
        table.set_header(Row::from(head.to_vec()));
        Self {
            table,
            figures: 0..0,
        }
    }

    /// Right-aligns these columns, as for numbers.
    #[must_use]
    pub fn figures(self, columns: core::ops::Range<usize>) -> Self {
        Self {
            figures: columns,
            ..self
        }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.table.add_row(cells.into_iter().collect::<Vec<_>>());
    }

    /// The table as text, ending in a newline.
    pub fn render(mut self) -> String {
        for (index, column) in self.table.column_iter_mut().enumerate() {
            column.set_padding((0, GAP));
            if self.figures.contains(&index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        self.table.trim_fmt() + "\n"
    }
}

/// Columns of fixed widths, for tables printed row by row: a name on the left, then numbers.
#[derive(Clone, Copy, Debug)]
pub struct TextColumns<'a> {
    /// Title and width of each column; a wider cell pushes the rest of its line to the right.
    pub columns: &'a [(&'a str, u16)],
}

impl TextColumns<'_> {
    pub fn head(&self) -> String {
        self.line(self.columns.iter().map(|&(title, _)| title.to_owned()))
    }

    /// A line of cells, without a newline.
    pub fn line(&self, cells: impl IntoIterator<Item = String>) -> String {
        let mut table = plain();
        table.add_row(cells.into_iter().collect::<Vec<_>>());
        let columns = table.column_iter_mut().zip(self.columns).enumerate();
        for (index, (column, &(_, width))) in columns {
            column.set_padding((0, 0));
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width)));
            if index > 0 {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.trim_fmt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|&cell| cell.to_owned()).collect()
    }

    #[test]
    fn columns_line_up_and_lines_do_not_trail() {
        let mut table = TextTable::new(&["port", "state", "why"]);
        table.row(cells(&["3", "active", ""]));
        table.row(cells(&["12", "training", "é"]));
        assert_eq!(
            table.render(),
            "port  state     why\n3     active\n12    training  é\n"
        );
        let mut table = TextTable::new(&["what", "paper", "ours"]).figures(1..3);
        table.row(cells(&["radix", "64.0", "1234.5"]));
        assert_eq!(
            table.render(),
            "what   paper    ours\nradix   64.0  1234.5\n"
        );
    }

    #[test]
    fn rows_printed_one_by_one_line_up_too() {
        let columns = TextColumns {
            columns: &[("# Size", 8), ("MB/s", 10), ("us", 6)],
        };
        assert_eq!(columns.head(), "# Size        MB/s    us");
        let line = |of: &[&str]| columns.line(cells(of));
        assert_eq!(line(&["8", "1.25", "3.0"]), "8             1.25   3.0");
        assert_eq!(
            line(&["a long name", "1.25", "3.0"]),
            "a long name      1.25   3.0"
        );
    }
}
