//! Filters for the frames of a capture.

use std::collections::BTreeMap;

use crate::machines::machines;
use phitwire::link::Repeats;
use phitwire_framing::carrier::frame;
use phitwire_framing::carrier::training::Training;
use phitwire_nodes::nearest::nearest;

use super::links::LabLink;

/// A word that is neither a kind of frame nor a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown word `{word}` in --filter; {}expected `data`, `ack`, `training`, `retry` or names of \
     nodes on the captured links, separated by commas",
    meant.as_ref().map_or_else(String::new, |meant| format!("did you mean `{meant}`? "))
)]
pub struct FilterError {
    word: String,
    meant: Option<String>,
}

impl FilterError {
    fn new(word: &str, links: &[LabLink]) -> Self {
        let nodes = links.iter().flat_map(|link| &link.ends);
        let mut names = vec!["data", "ack", "training", "retry"];
        names.extend(nodes.map(|end| end.node.as_str()));
        Self {
            word: word.to_owned(),
            meant: nearest(word, &names).map(str::to_owned),
        }
    }
}

/// Accepts frames of these kinds sent by these nodes. An empty list accepts all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    kinds: Vec<Kind>,
    nodes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Carries packets, or parts of them.
    Data,
    /// Link control only.
    Ack,
    Training,
    /// Carries a resend.
    Retry,
}

impl Filter {
    /// Parses words, each of which may be several joined by commas.
    ///
    /// # Errors
    /// The first word that is neither a kind of frame nor a node of `links`.
    pub fn new(words: &[String], links: &[LabLink]) -> Result<Self, FilterError> {
        let mut filter = Self::default();
        let words = words.iter().flat_map(|words| words.split(','));
        for word in words.map(str::trim).filter(|word| !word.is_empty()) {
            let mut nodes = links.iter().flat_map(|link| &link.ends);
            match word {
                "data" => filter.kinds.push(Kind::Data),
                "ack" => filter.kinds.push(Kind::Ack),
                "training" => filter.kinds.push(Kind::Training),
                "retry" => filter.kinds.push(Kind::Retry),
                _ if nodes.any(|end| end.node == word) => filter.nodes.push(word.to_owned()),
                _ => return Err(FilterError::new(word, links)),
            }
        }
        Ok(filter)
    }

    /// Whether the filter can accept a frame from `node`.
    pub fn includes(&self, node: &str) -> bool {
        self.nodes.is_empty() || self.nodes.iter().any(|own| own == node)
    }

    /// Whether to write a frame. Damaged frames are always written, so that users can find them.
    #[inline]
    pub fn takes(&self, seen: Seen) -> bool {
        let is = |kind: &Kind| match kind {
            Kind::Data => seen.what == What::Data,
            Kind::Ack => seen.what == What::Ack,
            Kind::Training => seen.what == What::Training,
            Kind::Retry => seen.retries > 0,
        };
        self.kinds.is_empty() || seen.what == What::Damaged || self.kinds.iter().any(is)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Carries packets, or parts of them.
    Data,
    /// Link control only.
    Ack,
    Training,
    /// Could not be parsed.
    Damaged,
}

/// The properties of a frame that the filter checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub what: What,
    /// Number of packets or sets in the frame that are resends.
    pub retries: u64,
}

/// Maximum number of sessions remembered per direction.
const MOST_SESSIONS: usize = 16;

/// The sessions of one direction of a link.
#[derive(Debug, Default)]
pub struct Known {
    /// Sessions by the epochs of both ends.
    sessions: BTreeMap<[u32; 2], Repeats>,
}

impl Known {
    /// Classifies the next frame of the direction.
    pub fn look(&mut self, bytes: &[u8]) -> Seen {
        let seen = |what, retries| Seen { what, retries };
        let Ok(frame) = frame::parse(bytes) else {
            return seen(What::Damaged, 0);
        };
        if frame.kind() == Training::KIND {
            return seen(What::Training, 0);
        }
        let Some(frame_contents) = machines().frame_contents(bytes) else {
            return seen(What::Damaged, 0);
        };
        let header = frame.header();
        let epochs = [header.tx_epoch, header.rx_epoch];
        if !self.sessions.contains_key(&epochs) && self.sessions.len() >= MOST_SESSIONS {
            self.sessions.clear();
        }
        let retries = self
            .sessions
            .entry(epochs)
            .or_default()
            .count(&frame_contents);
        match frame_contents.carries {
            true => seen(What::Data, retries),
            false => seen(What::Ack, retries),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::links::LinkEnd;

    #[test]
    fn words_are_kinds_or_nodes() {
        let end = |node: &str| LinkEnd {
            node: node.to_owned(),
            port: "0".to_owned(),
            interface: "p0".to_owned(),
        };
        let links = [LabLink {
            id: "0".to_owned(),
            ends: [end("r0"), end("nic0")],
        }];
        let filter = |words: &str| Filter::new(&[words.to_owned()], &links);
        let seen = |what, retries| Seen { what, retries };
        let some = filter("training, nic0,retry").expect("all are known");
        assert!(some.includes("nic0") && !some.includes("r0"));
        assert!(some.takes(seen(What::Training, 0)) && some.takes(seen(What::Data, 2)));
        assert!(some.takes(seen(What::Damaged, 0)) && !some.takes(seen(What::Ack, 0)));
        let all = filter("").expect("nothing is asked for");
        assert!(all.includes("r0") && all.takes(seen(What::Ack, 0)));
        assert!(!filter("data").expect("known").takes(seen(What::Ack, 0)));
        let wrong = filter("r0,dta").expect_err("no kind").to_string();
        assert!(
            wrong.contains("unknown word `dta` in --filter; did you mean `data`?"),
            "{wrong}"
        );
        assert_eq!(filter("elephant").expect_err("nothing like it").meant, None);
    }

    #[test]
    fn invalid_frames_count_as_damaged() {
        let mut known = Known::default();
        for bytes in [&[][..], &[0x59; 10], &[0x59; 100]] {
            assert_eq!(known.look(bytes).what, What::Damaged);
        }
    }
}
