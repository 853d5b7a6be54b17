//! What can be wrong with a topology, and how it is told.

use core::fmt;
use core::ops::Range;

use miette::{Diagnostic, LabeledSpan, NamedSource, Severity, SourceCode};
use thiserror::Error;

/// The kinds of mistakes. Each has a code of its own, by which tests and scripts can tell them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum MistakeKind {
    /// The text is no TOML.
    Syntax,
    /// A key that the description does not have.
    UnknownKey,
    /// A key that the description needs.
    MissingKey,
    /// A value of the wrong type or outside of its range.
    BadValue,
    /// Two nodes or two virtual routers of one name.
    DuplicateName,
    /// Two processors of one number.
    DuplicateNumber,
    /// A processor number beyond 15 bits.
    NumberOutOfRange,
    /// A link names a node that does not exist.
    UnknownNode,
    /// A port that the node does not have.
    PortOutOfRange,
    /// A port with two links.
    PortUsedTwice,
    /// A chip's port that two virtual routers claim, or a register that lets packets pass from one
    /// virtual router of a chip into another (section 7.4).
    PortLeak,
    /// A link on a port that belongs to no virtual router.
    PortWithoutRouter,
    /// A link between nodes that cannot be neighbours.
    BadLink,
    /// Slices that are not separate networks, or processors that are not in all of them.
    SliceInconsistent,
    /// A subtree that is no aligned range of processor numbers, or does not hold what hangs below.
    BadSubtree,
    /// Links of unequal rates in one octant (section 4.4).
    UnequalRates,
    /// A table entry with a number of ports that the hash cannot be mapped on (section 7.8.2).
    UnsupportedPortCount,
    /// More peer subtrees than table entries (section 5.1).
    TooManyPeers,
    /// A table entry that names a port without link.
    DeadPort,
    /// What came from above, or goes up or over, would be sent the wrong way (section 7.7).
    UpDownViolation,
    /// A processor that some other processor cannot reach.
    Unreachable,
    /// A network interface without link.
    MissingLink,
    /// Channels that can wait for each other in a circle.
    CyclicDependency,
}

impl MistakeKind {
    /// A short code, such as `topology::unknown-key`.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Syntax => "topology::syntax",
            Self::UnknownKey => "topology::unknown-key",
            Self::MissingKey => "topology::missing-key",
            Self::BadValue => "topology::bad-value",
            Self::DuplicateName => "topology::duplicate-name",
            Self::DuplicateNumber => "topology::duplicate-number",
            Self::NumberOutOfRange => "topology::number-out-of-range",
            Self::UnknownNode => "topology::unknown-node",
            Self::PortOutOfRange => "topology::port-out-of-range",
            Self::PortUsedTwice => "topology::port-used-twice",
            Self::PortLeak => "topology::port-leak",
            Self::PortWithoutRouter => "topology::port-without-router",
            Self::BadLink => "topology::bad-link",
            Self::SliceInconsistent => "topology::slice-inconsistent",
            Self::BadSubtree => "topology::bad-subtree",
            Self::UnequalRates => "topology::unequal-rates",
            Self::UnsupportedPortCount => "topology::unsupported-port-count",
            Self::TooManyPeers => "topology::too-many-peers",
            Self::DeadPort => "topology::dead-port",
            Self::UpDownViolation => "topology::up-down-violation",
            Self::Unreachable => "topology::unreachable",
            Self::MissingLink => "topology::missing-link",
            Self::CyclicDependency => "topology::cyclic-dependency",
        }
    }
}

/// What a mistake is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Bytes of the description.
    Text(Range<usize>),
    /// The network as a whole.
    Network,
    /// The processor of this index.
    Processor(u32),
    /// The chip of this index.
    Chip(u32),
    /// A virtual router: chip, and index within the chip.
    Router(u32, u32),
    /// An entry of a virtual router's table: chip, index within the chip, entry.
    Entry(u32, u32, u8),
    /// The link of this index.
    Link(u32),
}

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// What kind of mistake.
    pub kind: MistakeKind,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What it is about, and a word to put there.
    pub place: Place,
    /// A word for the place.
    pub label: String,
    /// Another place that has to do with it, such as the first use of a port.
    pub other: Option<(Place, String)>,
    /// How to put it right.
    pub help: String,
}

impl Mistake {
    pub(super) fn new(kind: MistakeKind, place: Place, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            place,
            label: String::from("here"),
            other: None,
            help: String::new(),
        }
    }

    #[must_use]
    pub(super) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    #[must_use]
    pub(super) fn other(mut self, place: Place, label: impl Into<String>) -> Self {
        self.other = Some((place, label.into()));
        self
    }

    #[must_use]
    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
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

/// A mistake with its bytes in the description.
#[derive(Debug, Error)]
#[error("{}", mistake.message)]
struct Located {
    mistake: Mistake,
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

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }
}

/// Everything that is wrong with a description, with its text: one diagnostic per mistake for
/// `miette`, or one line each by [`lines`](Problems::lines).
#[derive(Debug)]
pub struct Problems {
    source: NamedSource<String>,
    located: Vec<Located>,
}

impl Problems {
    pub(super) fn new(
        file: &str,
        text: &str,
        mistakes: Vec<Mistake>,
        span_of: impl Fn(&Place) -> Range<usize>,
    ) -> Self {
        let labelled = |place: &Place, label: &str| {
            let span = span_of(place);
            let start = span.start.min(text.len());
            LabeledSpan::new_with_span(
                Some(label.to_owned()),
                (start, span.end.clamp(start, text.len()) - start),
            )
        };
        let located = mistakes
            .into_iter()
            .map(|mistake| {
                let mut labels = vec![labelled(&mistake.place, &mistake.label)];
                labels.extend(
                    mistake
                        .other
                        .as_ref()
                        .map(|(place, label)| labelled(place, label)),
                );
                Located { mistake, labels }
            })
            .collect();
        Self {
            source: NamedSource::new(file, text.to_owned()),
            located,
        }
    }

    /// The mistakes, in the order of the text.
    pub fn mistakes(&self) -> impl ExactSizeIterator<Item = &Mistake> {
        self.located.iter().map(|located| &located.mistake)
    }

    /// One line `FILE:LINE:COLUMN: MESSAGE [CODE]; HELP` per mistake.
    pub fn lines(&self) -> String {
        let mut lines = String::new();
        for (i, mistake) in self.mistakes().enumerate() {
            let (line, column) = self.line_and_column(i);
            lines.push_str(&format!(
                "{}:{line}:{column}: {mistake}\n",
                self.source.name()
            ));
        }
        lines
    }

    /// Line and column, both from 1, of the mistake with that index.
    ///
    /// # Panics
    /// If there is no mistake of that index.
    pub fn line_and_column(&self, index: usize) -> (usize, usize) {
        let text = self.source.inner();
        let mut offset = self.located[index].labels[0].offset().min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &text[..offset];
        let line = before.bytes().filter(|&b| b == b'\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
        (line, column)
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.located.len() == 1 { "" } else { "s" };
        write!(
            f,
            "{}: {} mistake{s}",
            self.source.name(),
            self.located.len()
        )
    }
}

impl std::error::Error for Problems {}

/// What `miette` prints above the mistakes.
impl Diagnostic for Problems {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.located.iter().map(|l| l as &dyn Diagnostic)))
    }
}
