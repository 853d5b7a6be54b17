use phitwire_framing::aries::flit::Routing;
use phitwire_framing::aries::packet::{AmoOp, Command, MAX_DATA, Operands, Width};

use super::Interface;
use crate::nic::outstanding::{RequestOrigin, Share};
use crate::nic::request::{Operation, Post, RemoteAddress};
use crate::nic::responder::PROBE_CODE;
use crate::nic::traffic::RUN_DOMAIN;
use crate::nic::virtual_node::Target;
use phitwire::nic::traffic_spec::Operation as ProbeOperation;
use phitwire::nic::{Probe, ProbeError, ProbeSpec};
use phitwire::time::Time;

impl Interface {
    pub(crate) fn probe(&mut self, now: Time, spec: &ProbeSpec) -> Result<Probe, ProbeError> {
        self.requester.outstanding.slab.advance(now);
        if !self.requester.outstanding.slab.is_open() {
            return Err(ProbeError::Early);
        }
        if !self.requester.has_room(Share::User) {
            return Err(ProbeError::Full);
        }
        let node = self.virtual_nodes.get(spec.to.into());
        let node = node.ok_or(ProbeError::Nobody(spec.to))?;
        let bytes = u8::try_from(spec.bytes).map_err(|_| ProbeError::Impossible)?;
        let data = [0; MAX_DATA];
        let mut operands = [0; 16];
        let operation = match spec.op {
            ProbeOperation::Put => Operation::Put {
                data: data.get(..bytes.into()).ok_or(ProbeError::Impossible)?,
                event: false,
            },
            ProbeOperation::Get => Operation::Get {
                len: bytes,
                into: None,
                flag: None,
            },
            ProbeOperation::Amo => Operation::Atomic {
                op: AmoOp::Add,
                width: Width::Bits64,
                operands: Operands {
                    first: 0,
                    second: 0,
                },
                fetch: true,
                into: None,
            },
        };
        let key = self
            .responder
            .domains
            .get(RUN_DOMAIN)
            .map_or(0, |of| of.key);
        let post = Post {
            at: RemoteAddress {
                target: Target::Node(node),
                handle: RUN_DOMAIN,
                key,
                offset: spec.address,
            },
            operation,
            routing: match spec.ordered {
                true => Routing::Ordered,
                false => Routing::default(),
            },
        };
        let ask = self.ask(&post, 0, &mut operands);
        let mut ask = ask.map_err(|_| ProbeError::Impossible)?;
        if spec.op == ProbeOperation::Put {
            ask.command = Command::Control { code: PROBE_CODE };
        }
        if !self.requester.has_id(ask.routing, ask.address) {
            return Err(ProbeError::Full);
        }
        let number = self.probed + 1;
        let issued = self
            .requester
            .issue(now, &ask, RequestOrigin::Probe(number));
        let id = issued.map_err(|_| ProbeError::Impossible)?;
        self.probed = number;
        Ok(Probe {
            number,
            identity: id.bits().into(),
        })
    }
}
