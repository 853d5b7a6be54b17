//! Mistakes in a network, and their diagnostics.

use core::fmt;
use core::ops::Range;

use miette::{Diagnostic, LabeledSpan, Severity, SourceCode};
use thiserror::Error;

use super::excerpt::{Excerpt, Lines};
use super::limits::MAX_MISTAKES;
use super::shown;

macro_rules! mistake_kinds {
    ($($(#[$doc:meta])+ $kind:ident = $code:literal,)+) => {
        /// The kinds of mistakes, each with its own code for tests and scripts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum MistakeKind {
            $($(#[$doc])+ $kind,)+
        }

        impl MistakeKind {
            /// A short code, such as `topology::unknown-key`.
            pub const fn code(self) -> &'static str {
                match self {
                    $(Self::$kind => concat!("topology::", $code),)+
                }
            }
        }
    };
}

mistake_kinds! {
    /// The description is too large to read, or describes more than a network can have.
    TooLarge = "too-large",
    /// The bytes are not text.
    NotText = "not-text",
    /// The text is not TOML.
    Syntax = "syntax",
    /// A key that the format does not define.
    UnknownKey = "unknown-key",
    /// A required key that the description lacks.
    MissingKey = "missing-key",
    /// A value of the wrong type or outside of its range.
    BadValue = "bad-value",
    /// Two nodes or two virtual routers with the same name.
    DuplicateName = "duplicate-name",
    /// An item named twice in one list.
    NamedTwice = "named-twice",
    /// Two processors with the same number.
    DuplicateNumber = "duplicate-number",
    /// A processor number beyond 15 bits.
    NumberOutOfRange = "number-out-of-range",
    /// A link names a node that does not exist.
    UnknownNode = "unknown-node",
    /// A port that the node does not have.
    PortOutOfRange = "port-out-of-range",
    /// A port with two links.
    PortUsedTwice = "port-used-twice",
    /// A chip's port that two virtual routers claim, or a register that lets packets pass from one
    /// virtual router of a chip into another (BlackWidow sec. 7.4).
    PortLeak = "port-leak",
    /// A link on a port that belongs to no virtual router.
    PortWithoutRouter = "port-without-router",
    /// A link between nodes that cannot be neighbours.
    BadLink = "bad-link",
    /// Slices that are not separate networks, or processors that are not in all of them.
    SliceInconsistent = "slice-inconsistent",
    /// A subtree that is not an aligned range of processors, or lacks some of those below it.
    BadSubtree = "bad-subtree",
    /// Links of unequal rates in one octant (BlackWidow sec. 4.4).
    UnequalRates = "unequal-rates",
    /// A table entry with a number of ports that the hash cannot map (BlackWidow sec. 7.8.2).
    UnsupportedPortCount = "unsupported-port-count",
    /// More peer subtrees than table entries (BlackWidow sec. 5.1).
    TooManyPeers = "too-many-peers",
    /// A table entry that names a port without a link.
    DeadPort = "dead-port",
    /// Packets from above, or going up or over, would take a wrong path (BlackWidow sec. 7.7).
    UpDownViolation = "up-down-violation",
    /// A processor that some other processor cannot reach.
    Unreachable = "unreachable",
    /// A NIC without a link.
    MissingLink = "missing-link",
    /// Channels that can wait for each other in a cycle.
    CyclicDependency = "cyclic-dependency",
}

/// Subject of a mistake.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    /// Bytes of the description.
    Text(Range<usize>),
    Network,
    Processor(u32),
    Chip(u32),
    /// A virtual router: chip, and index within the chip.
    Router(u32, u32),
    /// An entry of a virtual router's table: chip, index within the chip, entry.
    Entry(u32, u32, u8),
    Link(u32),
}

impl MistakeKind {
    /// A mistake of this kind at `location`, described in one sentence.
    pub fn at(self, location: Location, message: impl Into<String>) -> Mistake {
        Mistake {
            kind: self,
            message: shown::message(message.into()),
            location,
            label: String::from("here"),
            other: None,
            help: String::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub kind: MistakeKind,
    /// The problem, in one sentence.
    pub message: String,
    pub location: Location,
    /// A label for `location`.
    pub(crate) label: String,
    /// A related location, such as the first use of a port, with its label.
    pub other: Option<(Location, String)>,
    /// How to fix the mistake.
    pub help: String,
}

impl Mistake {
    /// A mistake of channels that wait for each other in a cycle.
    pub fn dependency_cycle(location: Location, names: &[String]) -> Self {
        let (all, first) = (names.join(", "), &names[0]);
        let message = format!(
            "possible deadlock: packets can wait for each other in a cycle through {all}, {first}"
        );
        MistakeKind::CyclicDependency.at(location, message)
    }

    /// Sets the label of `location`.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = shown::message(label.into());
        self
    }

    /// Adds a related location and its label.
    #[must_use]
    pub fn other(mut self, location: Location, label: impl Into<String>) -> Self {
        self.other = Some((location, shown::message(label.into())));
        self
    }

    /// For duplicates: adds the location of the first occurrence.
    #[must_use]
    pub fn again(self, first: Location) -> Self {
        self.label("again").other(first, "first")
    }

    /// Sets `help`: how to fix the mistake.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = shown::message(help.into());
        self
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.message, self.kind.code())?;
        if self.help.is_empty() {
            Ok(())
        } else {
            write!(f, "; {}", self.help)
        }
    }
}

impl std::error::Error for Mistake {}

/// Mistakes found. Only the first are kept; all are counted.
#[derive(Debug, Default)]
pub struct Mistakes {
    kept: Vec<Mistake>,
    more: usize,
}

impl Mistakes {
    pub fn push(&mut self, mistake: Mistake) {
        self.add(|| mistake);
    }

    /// Like [`push`](Self::push), for a mistake that takes time to describe.
    pub fn add(&mut self, describe: impl FnOnce() -> Mistake) {
        if self.is_full() {
            self.more += 1;
        } else {
            self.kept.push(describe());
        }
    }

    /// Whether further mistakes are only counted.
    pub(crate) const fn is_full(&self) -> bool {
        self.kept.len() >= MAX_MISTAKES
    }

    pub const fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The number of mistakes, including those not kept.
    pub const fn len(&self) -> usize {
        self.kept.len() + self.more
    }

    pub fn into_vec(self) -> Vec<Mistake> {
        self.kept
    }

    /// Adds the mistakes of another search.
    pub(crate) fn append(&mut self, other: Self) {
        self.extend(other.kept);
        self.more += other.more;
    }
}

impl Extend<Mistake> for Mistakes {
    fn extend<T: IntoIterator<Item = Mistake>>(&mut self, mistakes: T) {
        mistakes.into_iter().for_each(|mistake| self.push(mistake));
    }
}

/// A mistake with its excerpt of the description.
#[derive(Debug, Error)]
#[error("{}", mistake.message)]
struct Located {
    mistake: Mistake,
    /// Line and column of the mistake, both from 1.
    at: (usize, usize),
    excerpt: Excerpt,
    labels: Vec<LabeledSpan>,
}

impl Diagnostic for Located {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.mistake.kind.code()))
    }

    fn severity(&self) -> Option<Severity> {
        Some(Severity::Error)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        (!self.mistake.help.is_empty())
            .then(|| Box::new(&self.mistake.help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.excerpt)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }
}

/// The number of mistakes that were counted but not kept.
#[derive(Debug, Error)]
#[error("and {0} more")]
struct More(usize);

impl Diagnostic for More {
    fn severity(&self) -> Option<Severity> {
        Some(Severity::Advice)
    }
}

/// The mistakes of a description, at most [`MAX_MISTAKES`], with excerpts of the text around them:
/// one diagnostic per mistake for `miette`, or one line each by [`lines`](Problems::lines).
#[derive(Debug)]
pub struct Problems {
    file: String,
    located: Vec<Located>,
    more: Option<More>,
}

impl Problems {
    /// The mistakes of a text, in its order; `span_of` returns the span of each location.
    pub(crate) fn new(
        file: &str,
        text: &str,
        mistakes: Mistakes,
        span_of: impl Fn(&Location) -> Range<usize>,
    ) -> Self {
        let file = shown::message(file.to_owned());
        let Mistakes { mut kept, more } = mistakes;
        kept.sort_by_key(|mistake| span_of(&mistake.location).start);
        let spans: Vec<Vec<Range<usize>>> = kept
            .iter()
            .map(|mistake| {
                let other = mistake
                    .other
                    .as_ref()
                    .map(|(location, _)| span_of(location));
                let spans = [Some(span_of(&mistake.location)), other];
                spans.into_iter().flatten().collect()
            })
            .collect();
        let lines = Lines::new(text, spans.iter().flatten().map(|span| span.start));
        let located = kept
            .into_iter()
            .zip(spans)
            .map(|(mistake, spans)| {
                let excerpt = lines.excerpt(&file, &spans);
                let other = mistake.other.as_ref().map(|(_, label)| label);
                let labels = [Some(&mistake.label), other].into_iter().flatten();
                let labels = labels.enumerate().map(|(index, label)| {
                    let mark = excerpt.mark(index);
                    LabeledSpan::new_with_span(Some(label.clone()), (mark.start, mark.len()))
                });
                Located {
                    at: lines.position(spans[0].start),
                    labels: labels.collect(),
                    excerpt,
                    mistake,
                }
            })
            .collect();
        Self {
            file,
            located,
            more: (more > 0).then_some(More(more)),
        }
    }

    /// The mistakes reported, in the order of the text.
    pub fn mistakes(&self) -> impl ExactSizeIterator<Item = &Mistake> {
        self.located.iter().map(|located| &located.mistake)
    }

    /// Number of mistakes not reported.
    pub fn more(&self) -> usize {
        self.more.as_ref().map_or(0, |more| more.0)
    }

    /// One line `FILE:LINE:COLUMN: MESSAGE [CODE]; HELP` per mistake, and one that counts the
    /// others.
    pub fn lines(&self) -> String {
        let mut lines = String::new();
        for Located { mistake, at, .. } in &self.located {
            lines.push_str(&format!("{}:{}:{}: {mistake}\n", self.file, at.0, at.1));
        }
        if let Some(more) = &self.more {
            lines.push_str(&format!("{}: {more}\n", self.file));
        }
        lines
    }

    /// Line and column, both from 1, of mistake `index`.
    ///
    /// # Panics
    /// If no mistake has that index.
    pub fn line_and_column(&self, index: usize) -> (usize, usize) {
        self.located[index].at
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.located.len() + self.more();
        let s = if count == 1 { "" } else { "s" };
        write!(f, "{}: {count} mistake{s}", self.file)
    }
}

impl std::error::Error for Problems {}

/// The header that `miette` prints above the mistakes.
impl Diagnostic for Problems {
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        let located = self.located.iter().map(|l| l as &dyn Diagnostic);
        let more = self.more.iter().map(|more| more as &dyn Diagnostic);
        Some(Box::new(located.chain(more)))
    }
}
