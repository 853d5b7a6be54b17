//! Compared values: their kind, their source and how closely they must agree.

use schemars::JsonSchema;
use serde::Serialize;

/// Origin of our value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub enum Kind {
    /// Measured in routers, links or NICs that also run in live processes or in virtual time.
    #[serde(rename = "running model")]
    Running,
    /// Measured in a separate model of a part that the machine's router does not contain.
    #[serde(rename = "stand-alone model")]
    StandAlone,
    /// Counted in generated wiring, tables or routes; nothing moves through them.
    #[serde(rename = "count of generated wiring")]
    Count,
    /// Counted in packets that the codec wrote or accepted.
    #[serde(rename = "count of encoded packets")]
    Codec,
    /// Computed from constants.
    #[serde(rename = "formula")]
    Formula,
}

impl Kind {
    pub(crate) const ALL: [Self; 5] = [
        Self::Running,
        Self::StandAlone,
        Self::Count,
        Self::Codec,
        Self::Formula,
    ];

    /// The name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running model",
            Self::StandAlone => "stand-alone model",
            Self::Count => "count of generated wiring",
            Self::Codec => "count of encoded packets",
            Self::Formula => "formula",
        }
    }
}

/// Source of the reference value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The reproduced paper prints the value.
    Paper,
    /// The value follows from statements of the paper or of the description but is not printed.
    Expected,
    /// The value was computed by an earlier program of this project.
    Earlier,
}

impl Source {
    /// All sources, in column order.
    pub const ALL: [Self; 3] = [Self::Paper, Self::Expected, Self::Earlier];

    /// The heading of its column, and its key in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Expected => "expected",
            Self::Earlier => "earlier",
        }
    }
}

/// Permitted difference between our value and the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// A fraction of the reference.
    Relative(f64),
    /// This much in the unit of the table, such as percentage points.
    Absolute(f64),
    /// The reference is a lower bound.
    AtLeast,
    /// The reference is an upper bound, exceeded by at most this much in the unit of the table.
    AtMost(f64),
}

/// A reference value and ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub label: String,
    /// Origin of our value.
    pub kind: Kind,
    /// Source of the reference.
    pub source: Source,
    pub reference: f64,
    pub ours: f64,
    pub tolerance: Tolerance,
}

impl Row {
    pub fn new(
        kind: Kind,
        source: Source,
        label: impl Into<String>,
        reference: f64,
        ours: f64,
        tolerance: Tolerance,
    ) -> Self {
        let label = label.into();
        Self {
            label,
            kind,
            source,
            reference,
            ours,
            tolerance,
        }
    }

    /// Difference `ours - reference`, in the unit of the table.
    pub fn difference(&self) -> f64 {
        self.ours - self.reference
    }

    /// [`difference`](Self::difference) as a fraction of the reference.
    pub fn relative_error(&self) -> f64 {
        self.difference() / self.reference
    }

    /// Whether our value is within the tolerance; a NaN never is.
    pub fn within(&self) -> bool {
        match self.tolerance {
            Tolerance::Relative(most) => self.relative_error().abs() <= most,
            Tolerance::Absolute(most) => self.difference().abs() <= most,
            Tolerance::AtLeast => self.ours >= self.reference,
            Tolerance::AtMost(above) => self.difference() <= above,
        }
    }
}

/// A further value of the run, which is shown but not judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    pub label: String,
    /// Origin of our value.
    pub kind: Kind,
    /// The printed value of the same quantity, if any.
    pub paper: Option<f64>,
    pub ours: f64,
}

impl Observation {
    pub fn new(
        kind: Kind,
        label: impl Into<String>,
        paper: impl Into<Option<f64>>,
        ours: f64,
    ) -> Self {
        let (label, paper) = (label.into(), paper.into());
        Self {
            label,
            kind,
            paper,
            ours,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Content of the table, and where the paper prints it.
    pub title: String,
    /// Unit of all values; empty if they have none.
    pub unit: &'static str,
    /// Decimal places to show.
    pub decimals: usize,
    pub rows: Vec<Row>,
    /// Values shown but not compared.
    pub also: Vec<Observation>,
    /// Setup of the runs, and assumptions that the paper leaves open.
    pub assumptions: Vec<String>,
}

impl Table {
    /// Whether every row is within its tolerance; false for a table without rows.
    pub fn within(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(Row::within)
    }

    /// The distinct kinds of its rows.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> + '_ {
        let is_there = |kind: &Kind| self.rows.iter().any(|row| row.kind == *kind);
        Kind::ALL.into_iter().filter(is_there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(reference: f64, ours: f64, tolerance: Tolerance) -> Row {
        Row::new(Kind::Count, Source::Paper, "", reference, ours, tolerance)
    }

    #[test]
    fn kinds_have_one_name_in_text_and_json() {
        for kind in Kind::ALL {
            let json = serde_json::to_value(kind).expect("a string");
            assert_eq!(json, kind.name());
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
        assert!(
            !table(Vec::new()).within(),
            "an empty table is not within tolerance"
        );
    }
}
