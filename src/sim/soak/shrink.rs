//! Leaving out of a failing case what its failure does not need.

use super::Case;

/// What is kept of a case; everything, to begin with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Indices of the harms kept; `None`: all.
    pub harms: Option<Vec<usize>>,
    /// Whether the impairment of all links is left out.
    pub clear: bool,
    /// Messages per source; `None`: as many as the case has.
    pub messages: Option<u64>,
}

impl Case {
    /// The case with no more than `keep` names. Harms that it does not have are not kept.
    #[must_use]
    pub fn reduced(&self, keep: &Keep) -> Self {
        let mut case = self.clone();
        if let Some(kept) = &keep.harms {
            let mut index = 0;
            case.harms.retain(|_| {
                index += 1;
                kept.contains(&(index - 1))
            });
        }
        if keep.clear {
            case.impairment.clear();
        }
        if let Some(messages) = keep.messages {
            case.traffic.count = messages;
        }
        case
    }

    /// The least that still fails: leaves out harms one by one, then the impairment, then halves the
    /// messages, as long as `fails` says so of what is left. `fails` is asked a few dozen times at most.
    pub fn shrink(&self, mut fails: impl FnMut(&Self) -> bool) -> Keep {
        let impaired = !self.impairment.is_empty();
        least(self.harms.len(), impaired, self.traffic.count, |keep| {
            fails(&self.reduced(keep))
        })
    }
}

/// The least to keep of so many harms, of an impairment, if there is one, and of so many messages, that `fails` still.
pub(super) fn least(
    harms: usize,
    impaired: bool,
    messages: u64,
    mut fails: impl FnMut(&Keep) -> bool,
) -> Keep {
    let mut keep = Keep {
        harms: Some((0..harms).collect()),
        ..Keep::default()
    };
    let mut accept = |keep: &mut Keep, candidate: Keep| {
        let still = fails(&candidate);
        if still {
            *keep = candidate;
        }
        still
    };
    for index in (0..harms).rev() {
        let mut candidate = keep.clone();
        if let Some(harms) = &mut candidate.harms {
            harms.retain(|kept| *kept != index);
        }
        accept(&mut keep, candidate);
    }
    if impaired {
        let clear = true;
        let candidate = Keep {
            clear,
            ..keep.clone()
        };
        accept(&mut keep, candidate);
    }
    let mut messages = messages;
    while messages > 1 {
        messages /= 2;
        let candidate = Keep {
            messages: Some(messages),
            ..keep.clone()
        };
        if !accept(&mut keep, candidate) {
            break;
        }
    }
    keep
}
