//! What is compared, what kind of value it is, and how closely it has to agree.

/// How our value came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Measured in the routers, links or NICs that the processes run, or that virtual time runs.
    Running,
    /// Measured in a model of a part that the machine's router does not contain.
    StandAlone,
    /// Counted in wiring, tables or routes that are generated; nothing moves through them.
    Count,
    /// Counted in what the codec wrote or accepted.
    Codec,
    /// Computed from constants.
    Formula,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::Running,
        Self::StandAlone,
        Self::Count,
        Self::Codec,
        Self::Formula,
    ];

    /// The name for readers.
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

/// Where the value comes from that ours is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The paper prints it.
    Paper,
    /// It follows from what the paper or the description says, and is printed nowhere.
    Expected,
    /// This project computed it earlier, by another program.
    Earlier,
}

impl Source {
    /// All sources, in the order of their columns.
    pub const ALL: [Self; 3] = [Self::Paper, Self::Expected, Self::Earlier];

    /// The heading of its column, and its key.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Expected => "expected",
            Self::Earlier => "earlier",
        }
    }
}

/// How far our value may be from the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// So large a part of the reference.
    Relative(f64),
    /// So much in the unit of the table, such as percentage points.
    Absolute(f64),
    /// The reference is a bound: ours may be anything not below it.
    AtLeast,
    /// The reference is a bound: ours may be anything that is not more than so much above it, in
    /// the unit of the table.
    AtMost(f64),
}

/// A reference value and ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What the value is of.
    pub label: String,
    /// How ours came about.
    pub kind: Kind,
    /// Where the reference comes from.
    pub source: Source,
    /// What ours is compared with.
    pub reference: f64,
    /// The value that the run gave.
    pub ours: f64,
    /// How far apart they may be.
    pub tolerance: Tolerance,
}

impl Row {
    /// A row.
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

    /// `ours - reference`, in the unit of the table.
    pub fn difference(&self) -> f64 {
        self.ours - self.reference
    }

    /// [`difference`](Self::difference) as a part of the reference.
    pub fn relative_error(&self) -> f64 {
        self.difference() / self.reference
    }

    /// Whether ours is close enough. A value that is no number never is.
    pub fn within(&self) -> bool {
        match self.tolerance {
            Tolerance::Relative(most) => self.relative_error().abs() <= most,
            Tolerance::Absolute(most) => self.difference().abs() <= most,
            Tolerance::AtLeast => self.ours >= self.reference,
            Tolerance::AtMost(above) => self.difference() <= above,
        }
    }
}

/// A value that the run gave besides, and that nothing is judged by.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// What the value is of.
    pub label: String,
    /// How ours came about.
    pub kind: Kind,
    /// What the paper prints in its place, if anything.
    pub paper: Option<f64>,
    /// The value that the run gave.
    pub ours: f64,
}

impl Observation {
    /// A value without a tolerance.
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

    /// The kinds of its rows, each once.
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
