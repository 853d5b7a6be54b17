//! Memory of operations that have ended: it is the program's again, and nobody else touches it.

use super::judge::{Outcome, name};
use super::plan::*;
use super::*;

/// The byte with which programs overwrite memory that is theirs again.
pub const OWN: u8 = 0xee;

/// The memory of an operation that the provider may no longer read or write after this outcome, and
/// what it must hold when the operation ends.
fn memory(plan: &Plan, context: usize, outcome: &Outcome) -> Option<(Pieces, Option<Vec<u8>>)> {
    let number = context & (SEND - 1);
    match context & !(SEND - 1) {
        SEND => Some((plan.messages[number].bytes.clone(), None)),
        RECEIVE => {
            let into = plan.receives[number].into.clone();
            let received = outcome.as_ref().ok().map(|(entry, _)| {
                let sent = entry.data as usize;
                let len = plan.messages.get(sent).map_or(0, |message| message.len);
                pattern(len, sent)
            });
            Some((into, received))
        }
        PEEK => None,
        _ => {
            let access = &plan.accesses[number];
            let read = match access.kind {
                Kind::Read { at, len } if outcome.is_ok() => {
                    Some((at..at + len).map(constant).collect())
                }
                Kind::BriefRead { at, len, .. } if outcome.is_ok() => {
                    Some((at..at + len).map(constant).collect())
                }
                _ => None,
            };
            let is_read = matches!(access.kind, Kind::Read { .. } | Kind::BriefRead { .. });
            (is_read || outcome.is_ok()).then(|| (access.memory.clone(), read))
        }
    }
}

/// Bytes of memory that the operation may have written: at most as many as it received.
fn touched(memory: &Pieces, outcome: &Outcome) -> usize {
    match outcome {
        Ok((entry, _)) if entry.flags & FI_RECV != 0 => entry.len,
        _ => memory.len(),
    }
}

/// Checks the bytes of an operation that has ended, and overwrites its memory.
pub fn at_end(plan: &Plan, context: usize, outcome: &Outcome) -> Result<(), String> {
    let Some((memory, wanted)) = memory(plan, context, outcome) else {
        return Ok(());
    };
    if let Some(wanted) = wanted
        && memory.to_vec(0, wanted.len()) != wanted
    {
        return Err(format!("{} has wrong bytes", name(context)));
    }
    memory.fill(0, &vec![OWN; touched(&memory, outcome)]);
    Ok(())
}

/// Checks that nobody has written memory since its operation ended.
pub fn is_untouched(plan: &Plan, context: usize, outcome: &Outcome) -> Result<(), String> {
    let Some((memory, _)) = memory(plan, context, outcome) else {
        return Ok(());
    };
    let bytes = memory.to_vec(0, touched(&memory, outcome));
    match bytes.iter().all(|&byte| byte == OWN) {
        true => Ok(()),
        false => Err(format!("{} was written after its end", name(context))),
    }
}
