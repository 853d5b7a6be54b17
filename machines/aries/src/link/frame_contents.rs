//! Reads the contents of a frame from outside the link.

use phitwire_framing::aries::frame::SetFrame;
use phitwire_framing::aries::set::Set;
use phitwire_framing::carrier::frame::Frame;

use super::config::LcbRegisters;
use super::scrambler::Scrambler;
use phitwire::link::FrameContents;

/// Lists the data sets in a frame whose control sets carry full-width numbers, as over real wires.
/// Assumes the registers' default scrambler seeds.
pub(crate) fn frame_contents(frame: &Frame<'_>) -> Option<FrameContents> {
    let frame = SetFrame::of(frame).ok()?;
    let seeds = LcbRegisters::default().scrambler_seeds;
    let scrambler = Scrambler::new(seeds, frame.header().lanes);
    let mut frame_contents = FrameContents::default();
    let mut next = None;
    for mut set in frame.iter() {
        scrambler.apply(&mut set);
        let parsed = Set::parse(&set);
        if let Ok(Set::Control(control)) = parsed {
            let number = u64::from(control.next);
            frame_contents.units.push(number..number);
            next = Some(number);
            continue;
        }
        frame_contents.carries = true;
        if let Some(number) = &mut next {
            // Count damaged sets too: they were sent.
            frame_contents.units.push(*number..*number + 1);
            *number += 1;
        }
    }
    Some(frame_contents)
}
