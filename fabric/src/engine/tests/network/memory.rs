//! Accesses to memory: of a segment, or of a program.

use phitwire_client::door::{Access, AtomicOp, Local, Remote, Status, Width};

use super::{Ended, Network};
use crate::engine::core::Segment;
use crate::memory::Bytes;

impl Network {
    /// The owner of remote memory, and its part of the owner's memory.
    pub(super) fn there(
        &self,
        remote: Remote,
        bytes: u64,
        may: fn(Access) -> bool,
    ) -> Ended<(usize, Local)> {
        let domain = self.domains.get(usize::from(remote.handle));
        let domain = domain.filter(|domain| {
            let owner = &self.nodes[domain.owner];
            let processor = owner.endpoint.address().processor;
            domain.is_open && !owner.is_ended && processor == remote.processor
        });
        let domain = domain.ok_or(Status::NoHandle)?;
        if !may(domain.access) {
            return Err(Status::Forbidden);
        }
        let end = remote.offset.checked_add(bytes);
        end.filter(|&end| end <= domain.part.bytes)
            .ok_or(Status::OutOfBounds)?;
        let offset = domain.part.offset + remote.offset;
        Ok((domain.owner, Local { offset, bytes }))
    }

    pub(super) fn own(&self, address: u64, bytes: u64) -> Ended<Bytes> {
        let mut all = self.memories.iter();
        let found = all.find_map(|memory| {
            let offset = usize::try_from(address.checked_sub(memory.address())?).ok()?;
            memory.part(offset, bytes as usize)
        });
        found.ok_or(Status::Unreachable)
    }

    pub(super) fn load(&self, at: usize, local: Local) -> Ended<Vec<u8>> {
        if let Some(address) = local.own_address() {
            return Ok(self.own(address, local.bytes)?.with(<[u8]>::to_vec));
        }
        let mut out = vec![0; local.bytes as usize];
        self.nodes[at].segment.read(local.offset, &mut out);
        Ok(out)
    }

    pub(super) fn store(&self, at: usize, local: Local, data: &[u8]) -> Ended<()> {
        if let Some(address) = local.own_address() {
            let memory = self.own(address, data.len() as u64)?;
            memory.with_mut(|bytes| bytes.copy_from_slice(data));
        } else {
            self.nodes[at].segment.write(local.offset, data);
        }
        Ok(())
    }

    pub(super) fn change(&self, at: Remote, op: AtomicOp, width: Width, [a, b]: [u64; 2]) -> Ended {
        let (owner, local) = self.there(at, width.bytes() as u64, |access| access.atomic)?;
        let mut word = [0; 8];
        word[..width.bytes()].copy_from_slice(&self.load(owner, local)?);
        let old = u64::from_le_bytes(word);
        let new = match op {
            AtomicOp::Add => old.wrapping_add(a),
            AtomicOp::Or => old | a,
            AtomicOp::Xor => old ^ a,
            AtomicOp::Swap => a,
            AtomicOp::CompareSwap if old == a => b,
            AtomicOp::CompareSwap => old,
            AtomicOp::And => old & a,
            AtomicOp::AndXor => (old & a) ^ b,
            _ => compared(op, width, old, a),
        };
        self.store(owner, local, &new.to_le_bytes()[..width.bytes()])?;
        Ok(old)
    }
}

/// The operations whose result depends on the type of the word.
fn compared(op: AtomicOp, width: Width, old: u64, a: u64) -> u64 {
    let (is_min, is_max) = (
        matches!(op, AtomicOp::SignedMin | AtomicOp::FloatMin),
        matches!(op, AtomicOp::SignedMax | AtomicOp::FloatMax),
    );
    let choose = |is_less: bool| if is_less == is_min { a } else { old };
    let is_float = !matches!(op, AtomicOp::SignedMin | AtomicOp::SignedMax);
    let float = |bits: u64| match width {
        Width::Bits32 => f64::from(f32::from_bits(bits as u32)),
        Width::Bits64 => f64::from_bits(bits),
    };
    let signed = |bits: u64| match width {
        Width::Bits32 => i64::from((bits as u32).cast_signed()),
        Width::Bits64 => bits.cast_signed(),
    };
    match (is_min || is_max, is_float, width) {
        (true, true, _) => choose(float(a) < float(old)),
        (true, false, _) => choose(signed(a) < signed(old)),
        (false, _, Width::Bits32) => ((float(old) + float(a)) as f32).to_bits().into(),
        (false, _, Width::Bits64) => (float(old) + float(a)).to_bits(),
    }
}
