//! What is compared, and how closely it has to agree.

/// How far our value may be from the paper's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// So large a part of the paper's value.
    Relative(f64),
    /// So much in the unit of the table, such as percentage points.
    Absolute(f64),
    /// The paper's value is a bound: ours may be anything not below it.
    AtLeast,
    /// The paper's value is a bound: ours may be anything that is not more than so much above it, in
    /// the unit of the table.
    AtMost(f64),
}

/// A value of the paper and ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What the value is of.
    pub label: String,
    /// The value printed in the paper.
    pub paper: f64,
    /// The value that the model gave.
    pub ours: f64,
    /// How far apart they may be.
    pub tolerance: Tolerance,
}

impl Row {
    /// A row.
    pub fn new(label: impl Into<String>, paper: f64, ours: f64, tolerance: Tolerance) -> Self {
        let label = label.into();
        Self {
            label,
            paper,
            ours,
            tolerance,
        }
    }

    /// `ours - paper`, in the unit of the table.
    pub fn difference(&self) -> f64 {
        self.ours - self.paper
    }

    /// [`difference`](Self::difference) as a part of the paper's value.
    pub fn relative_error(&self) -> f64 {
        self.difference() / self.paper
    }

    /// Whether ours is close enough. A value that is no number never is.
    pub fn within(&self) -> bool {
        match self.tolerance {
            Tolerance::Relative(most) => self.relative_error().abs() <= most,
            Tolerance::Absolute(most) => self.difference().abs() <= most,
            Tolerance::AtLeast => self.ours >= self.paper,
            Tolerance::AtMost(above) => self.difference() <= above,
        }
    }
}

/// A value that the run gave besides, and that nothing is judged by.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// What the value is of.
    pub label: String,
    /// What the paper has in its place, if anything.
    pub paper: Option<f64>,
    /// The value that the model gave.
    pub ours: f64,
}

impl Observation {
    /// An observation; `paper` is a value or none.
    pub fn new(label: impl Into<String>, paper: impl Into<Option<f64>>, ours: f64) -> Self {
        let (label, paper) = (label.into(), paper.into());
        Self { label, paper, ours }
    }
}

/// A reproduced table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What the table shows, and where the paper has it.
    pub title: String,
    /// Unit of all values; empty where they have none.
    pub unit: &'static str,
    /// Digits behind the point that are worth showing.
    pub decimals: usize,
    /// The values compared.
    pub rows: Vec<Row>,
    /// Values worth seeing that are not compared.
    pub also: Vec<Observation>,
    /// What was run, and what had to be assumed because the paper does not say it.
    pub assumptions: Vec<String>,
}

impl Table {
    /// Whether every row is within its tolerance. A table without rows is not.
    pub fn within(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(Row::within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(paper: f64, ours: f64, tolerance: Tolerance) -> Row {
        Row {
            label: String::new(),
            paper,
            ours,
            tolerance,
        }
    }

    #[test]
    fn tolerances_are_parts_or_units_in_both_directions() {
        for (ours, relative, absolute) in [
            (4.7, true, false),
            (4.8, true, true),
            (5.2, true, true),
            (5.3, true, false),
            (5.6, false, false),
            (4.4, false, false),
            (f64::NAN, false, false),
            (f64::INFINITY, false, false),
        ] {
            let within = |tolerance| row(5.0, ours, tolerance).within();
            assert_eq!(within(Tolerance::Relative(0.1)), relative, "{ours}");
            assert_eq!(within(Tolerance::Absolute(0.25)), absolute, "{ours}");
        }
        assert!((row(5.0, 4.0, Tolerance::Relative(1.0)).relative_error() + 0.2).abs() < 1e-12);
    }

    #[test]
    fn a_bound_holds_in_one_direction() {
        for (ours, within) in [(4.9, false), (5.0, true), (1e30, true), (f64::NAN, false)] {
            assert_eq!(
                row(5.0, ours, Tolerance::AtLeast).within(),
                within,
                "{ours}"
            );
        }
        for (ours, within) in [(-1e30, true), (5.5, true), (5.6, false), (f64::NAN, false)] {
            let row = row(5.0, ours, Tolerance::AtMost(0.5));
            assert_eq!(row.within(), within, "{ours}");
        }
    }

    #[test]
    fn one_row_outside_puts_the_table_outside() {
        let good = row(1.0, 1.0, Tolerance::Relative(0.01));
        let bad = row(1.0, 2.0, Tolerance::Relative(0.01));
        let table = |rows| Table {
            title: String::new(),
            unit: "",
            decimals: 0,
            rows,
            also: Vec::new(),
            assumptions: Vec::new(),
        };
        assert!(table(vec![good.clone(), good.clone()]).within());
        assert!(!table(vec![good, bad]).within());
        assert!(!table(Vec::new()).within(), "nothing shown is nothing met");
    }
}
