//! Shrinks a failing case to the parts that its failure needs.

/// The parts of a case to keep; by default all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Indices of the harms kept; `None`: all.
    pub harms: Option<Vec<usize>>,
    /// Whether all links are left unimpaired.
    pub clear: bool,
    /// Messages per source; `None`: as many as the case has.
    pub messages: Option<u64>,
}

/// The smallest part of the `whole` case that still `fails`.
pub(crate) fn least(whole: Keep, mut fails: impl FnMut(&Keep) -> bool) -> Keep {
    let mut messages = whole.messages.unwrap_or(0);
    let harms = whole.harms.as_ref().map_or(0, Vec::len);
    let impaired = !whole.clear;
    let mut keep = Keep {
        clear: false,
        messages: None,
        ..whole
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
