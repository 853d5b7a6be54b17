//! A frame's contents, decoded for observers.

use phitwire_framing::carrier::frame::Frame;
use phitwire_framing::yarc::frame::DataFrame;
use phitwire_framing::yarc::phit::{Phit, PhitKind};

use phitwire::link::FrameContents;

/// The packets whose ends a data frame carries.
pub(crate) fn frame_contents(frame: &Frame<'_>) -> Option<FrameContents> {
    let frame = DataFrame::of(frame).ok()?;
    let word = frame.control_word().ok()?;
    let mut phits = vec![Phit::IDLE; frame.phits()];
    frame.decode(&mut phits);
    let carries = phits.iter().any(|phit| phit.kind() != PhitKind::Idle);
    let first = word.seq.get();
    let ends = phits.iter().filter(|phit| phit.is_eop()).count() as u64;
    Some(FrameContents {
        carries,
        units: std::iter::once(first..first + ends).collect(),
        pass: carries.then_some(word.pass),
    })
}
