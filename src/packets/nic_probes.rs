use super::{Ended, Kind, MAX_DATA, PostError, TransferEnd, TransferNic};
use super::{RequestOrigin, Transfer};
use crate::nic::{
    Operation, Probe, ProbeEnd, ProbeError, ProbeOutcome, ProbeSpec, Probes, probed_address,
};
use crate::time::Time;

impl<E: TransferEnd> Probes for TransferNic<E> {
    fn routed_number(&self) -> u32 {
        self.nic_core.config.number.into()
    }

    fn probe(&mut self, now: Time, spec: &ProbeSpec) -> Result<Probe, ProbeError> {
        let bytes = u8::try_from(spec.bytes).ok();
        let bytes = bytes.filter(|bytes| u32::from(*bytes) <= E::ABILITIES.max_size);
        let bytes = bytes.ok_or(ProbeError::Impossible)?;
        let mut asked = match spec.op {
            Operation::Put => {
                let data = [0; MAX_DATA];
                let put = Transfer::new(spec.to, Kind::Put, probed_address(spec.address));
                put.with(data.get(..bytes.into()).ok_or(ProbeError::Impossible)?)
            }
            Operation::Get => Transfer {
                len: bytes,
                ..Transfer::new(spec.to, Kind::Get, spec.address)
            },
            Operation::Amo => Transfer::new(spec.to, Kind::Add, spec.address).with_words(&[0]),
        };
        asked.ordered = spec.ordered;
        if spec.to >= self.nic_core.config.nics {
            return Err(ProbeError::Nobody(spec.to));
        }
        let name = self.post_for(now, &asked, RequestOrigin::Probe);
        let name = name.map_err(|error| match error {
            PostError::NotHere => ProbeError::Impossible,
            PostError::TooMany if !self.nic_core.outstanding.slab.is_open() => ProbeError::Early,
            PostError::TooMany | PostError::NoRoom => ProbeError::Full,
        })?;
        Ok(Probe {
            number: name,
            identity: name,
        })
    }

    fn probe_ended(&mut self, number: u64) -> Option<ProbeEnd> {
        self.probes.take(number)
    }
}

#[cold]
pub(super) fn probe_outcome(ended: &Ended<'_>) -> ProbeOutcome {
    match ended {
        Ended::Unknown => ProbeOutcome::TimedOut,
        Ended::By(answer) => match answer.kind {
            Kind::Done => ProbeOutcome::Done,
            Kind::Damaged => ProbeOutcome::Damaged,
            _ => ProbeOutcome::Refused,
        },
    }
}
