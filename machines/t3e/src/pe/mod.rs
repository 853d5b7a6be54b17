//! The processor interface: gets and puts of one and eight words, atomic operations and messages,
//! which are packets on the link to the processor's router; and the barrier units of the shell.

mod barrier_run;
mod runs;
mod transfer;

use std::collections::VecDeque;

use phitwire_framing::t3e::barrier::{Message, UNITS, UnitNumber};
use phitwire_framing::t3e::flit::FlitKind;
use phitwire_framing::t3e::header::Name;
use serde_json::{Map, Value};

use self::barrier_run::BarrierRun;
use self::runs::Runs;
use self::transfer::FlitTransfers;
use crate::barrier::{BarrierShell, Operation, State};
use crate::link::{FlitEnd, FlitLinkConfig};
use crate::router::barriers::message_flit;
use phitwire::device::{
    self, BarrierRuns, Device, DeviceError, DeviceEvent, LinkFault, LinkView, NodeAccount,
    PipelineReport, RegisterInfo, RegisterName, Registers, TrafficRuns,
};
use phitwire::link::NodeLink as _;
use phitwire::nic::local::LocalPort;
use phitwire::nic::{
    Abilities, BarrierReport, BarrierSpec, BarrierSpecError, Memory, Probe, ProbeEnd, ProbeError,
    ProbeSpec, Probes, PutEnd, PutError, RemotePuts, RunPhase, TrafficReport, TrafficSpec,
};
use phitwire::node::{Node, PortId, WakeReason, Wakeup};
use phitwire::packets::message_queues::MessageQueues;
use phitwire::packets::transfer::Transfer;
use phitwire::packets::{
    Completion, PostError, TransferNic, TransferNicConfig, TransferNicCounters,
};
use phitwire::time::{Duration, Time};

pub type PeConfig = TransferNicConfig<FlitLinkConfig>;

/// Number of E-registers of a user (from a site's guide). Each holds an outstanding request of a
/// process or, in virtual time, one word of a request.
pub const E_REGISTERS: u32 = 512;

const _: () = assert!(4 * E_REGISTERS <= TransferNic::<FlitTransfers>::MOST_OUTSTANDING);

/// The network interface of a processor.
///
/// Call order: that of [`TransferNic`].
#[derive(Debug)]
pub struct Pe {
    nic: TransferNic<FlitTransfers>,
    shell: BarrierShell,
    runs: Runs,
    now: Time,
    /// Completions of requests posted by the user.
    completions: VecDeque<Completion>,
    /// Words of barrier flits with one wrong bit, which was corrected.
    corrected: u64,
    /// Words of barrier flits with several wrong bits.
    damaged: u64,
}

impl Pe {
    /// Creates a processor whose link starts to train at `now`.
    ///
    /// # Panics
    /// As [`TransferNic::new`].
    pub fn new(config: PeConfig, now: Time) -> Self {
        let mut nic = TransferNic::new(config, now);
        *nic.registers_mut() = vec![0; UNITS];
        Self {
            nic,
            shell: BarrierShell::new(),
            runs: Runs::default(),
            now,
            completions: VecDeque::new(),
            corrected: 0,
            damaged: 0,
        }
    }

    pub fn shell(&self) -> &BarrierShell {
        &self.shell
    }

    /// The barrier units, for programs and configuration.
    pub fn shell_mut(&mut self) -> &mut BarrierShell {
        &mut self.shell
    }

    pub fn memory(&self) -> &Memory {
        self.nic.memory()
    }

    /// The memory, for use by the processor.
    pub fn memory_mut(&mut self) -> &mut Memory {
        self.nic.memory_mut()
    }

    pub fn queues(&self) -> &MessageQueues {
        self.nic.queues()
    }

    /// The message queues, for programs that open them and take messages out.
    pub fn queues_mut(&mut self) -> &mut MessageQueues {
        self.nic.queues_mut()
    }

    pub fn counters(&self) -> TransferNicCounters {
        self.nic.counters()
    }

    /// The link to the router.
    fn end(&mut self) -> &mut FlitEnd {
        self.nic.end_mut(0).expect("a processor has one link")
    }

    /// Sends a request: see [`TransferNic::post`].
    ///
    /// # Errors
    /// See [`PostError`].
    pub fn post(&mut self, now: Time, asked: &Transfer) -> Result<u64, PostError> {
        self.nic.post(now, asked)
    }

    /// The user's oldest unreported completion.
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.collect();
        self.completions.pop_front()
    }

    /// Sorts completions by requester. Completions that the user does not fetch wait here, up to
    /// the maximum of outstanding requests.
    fn collect(&mut self) {
        while self.completions.len() < E_REGISTERS as usize
            && let Some(completion) = self.nic.poll_completion()
        {
            if !self.runs.completed(&completion) {
                self.completions.push_back(completion);
            }
        }
    }

    /// Takes barrier flits from the link's input, which has no buffer for them.
    fn take_messages(&mut self, now: Time) {
        while let Some(flit) = self.end().input_mut().pop_urgent() {
            if flit.control.kind() != FlitKind::Barrier {
                // Count the word as damaged: maintenance packets stay between routers.
                self.damaged += 1;
                continue;
            }
            let message = match Message::decode(flit.word) {
                Ok(message) => Some(message),
                Err(_) => Message::correct(flit.word).map(|(message, _)| {
                    self.corrected += 1;
                    message
                }),
            };
            match message {
                Some(message) => self.runs.receive(now, message, &mut self.shell),
                None => self.damaged += 1,
            }
        }
    }

    /// Sends the units' messages while the link accepts them.
    fn send_messages(&mut self) {
        while self.shell.has_pending() && self.end().takes_urgent() {
            let Some(message) = self.shell.next_message() else {
                break;
            };
            self.end().push_urgent(message_flit(message));
        }
    }
}

impl Node for Pe {
    type Event = DeviceEvent;

    fn ports(&self) -> usize {
        1
    }

    fn handle_frame(&mut self, now: Time, port: PortId, bytes: &[u8]) {
        self.nic.handle_frame(now, port, bytes);
        self.take_messages(now);
    }

    fn handle_suspension(&mut self, now: Time, span: Duration) {
        self.nic.handle_suspension(now, span);
        self.runs.handle_suspension(now, span);
    }

    fn advance(&mut self, now: Time) {
        self.now = now;
        self.nic.advance(now);
        self.collect();
        self.take_messages(now);
        self.runs.advance(now, &mut self.shell, &mut self.nic);
        self.send_messages();
    }

    fn ready_ports(&self) -> u64 {
        self.nic.ready_ports()
    }

    fn poll_frame(&mut self, now: Time, port: PortId, buf: &mut [u8]) -> Option<usize> {
        self.nic.poll_frame(now, port, buf)
    }

    fn next_wakeup(&self) -> Option<Wakeup> {
        let due = self.runs.deadline();
        let run = due.and_then(|at| Wakeup::at(at, WakeReason::Request));
        Wakeup::earlier(self.nic.next_wakeup(), run)
    }

    fn poll_event(&mut self) -> Option<DeviceEvent> {
        self.nic.poll_event()
    }
}

impl Device for Pe {
    fn kind(&self) -> device::Kind {
        self.nic.kind()
    }

    fn link(&self, port: PortId) -> Option<&dyn LinkView> {
        self.nic.link(port)
    }

    fn link_fault(&mut self, now: Time, port: PortId, fault: LinkFault) -> Result<(), DeviceError> {
        self.nic.link_fault(now, port, fault)
    }

    fn for_each_counter(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.nic.for_each_counter(&mut *visit);
        let mut report = |name: &str, value| visit(&format!("barrier.{name}"), value);
        self.shell.counters().for_each(&mut report);
        report("corrected", self.corrected);
        report("damaged", self.damaged);
    }

    fn account(&self) -> NodeAccount {
        self.nic.account()
    }

    fn pipeline(&self) -> PipelineReport {
        self.nic.pipeline()
    }

    fn describe(&self) -> Map<String, Value> {
        self.nic.describe()
    }

    fn begin_drain(&mut self, now: Time) {
        self.runs.stop();
        self.nic.begin_drain(now);
    }

    fn traffic(&self) -> Option<&dyn TrafficRuns> {
        self.nic.traffic()
    }

    fn traffic_mut(&mut self) -> Option<&mut dyn TrafficRuns> {
        self.nic.traffic_mut()
    }

    fn remote_puts(&mut self) -> Option<&mut dyn RemotePuts> {
        Some(self)
    }

    fn probes(&mut self) -> Option<&mut dyn Probes> {
        Some(self)
    }

    fn local_port(&mut self) -> Option<&mut dyn LocalPort> {
        self.nic.local_port()
    }

    fn registers(&mut self) -> Option<&mut dyn Registers> {
        Some(self)
    }

    fn barriers(&self) -> Option<&dyn BarrierRuns> {
        Some(self)
    }

    fn barriers_mut(&mut self) -> Option<&mut dyn BarrierRuns> {
        Some(self)
    }
}

impl Probes for Pe {
    fn routed_number(&self) -> u32 {
        self.nic.routed_number()
    }

    /// Reduces the identity to the low bits of the name, which is all that routers see.
    fn probe(&mut self, now: Time, spec: &ProbeSpec) -> Result<Probe, ProbeError> {
        let probe = self.nic.probe(now, spec)?;
        Ok(Probe {
            identity: probe.identity & ((1 << Name::ID_BITS) - 1),
            ..probe
        })
    }

    fn probe_ended(&mut self, number: u64) -> Option<ProbeEnd> {
        self.nic.probe_ended(number)
    }
}

impl RemotePuts for Pe {
    fn number(&self) -> Option<u16> {
        RemotePuts::number(&self.nic)
    }

    fn most_outstanding(&self) -> usize {
        self.nic.most_outstanding()
    }

    fn longest_put(&self) -> usize {
        RemotePuts::longest_put(&self.nic)
    }

    fn put(
        &mut self,
        now: Time,
        to: u16,
        address: u64,
        data: &[u8],
        ordered: bool,
    ) -> Result<u64, PutError> {
        self.nic.put(now, to, address, data, ordered)
    }

    fn put_ended(&mut self) -> Option<(u64, PutEnd)> {
        self.poll_completion().map(Completion::end_of_put)
    }

    fn puts_served(&self) -> u64 {
        self.nic.puts_served()
    }

    fn own_memory(&self) -> &Memory {
        self.nic.memory()
    }

    fn reserve(&mut self, bytes: u64) {
        self.nic.reserve(bytes);
    }
}

impl TrafficRuns for Pe {
    fn number(&self) -> Option<u16> {
        TrafficRuns::number(&self.nic)
    }

    fn abilities(&self) -> Abilities {
        self.nic.abilities()
    }

    fn renumber(&mut self, number: u16) -> Result<(), DeviceError> {
        self.nic.renumber(number)
    }

    fn start(&mut self, now: Time, spec: TrafficSpec) -> Result<(), DeviceError> {
        TrafficRuns::start(&mut self.nic, now, spec)
    }

    fn report(&self, run: Option<u64>) -> Option<TrafficReport> {
        TrafficRuns::report(&self.nic, run)
    }

    fn stop(&mut self) {
        TrafficRuns::stop(&mut self.nic);
    }
}

fn unit(number: u8) -> Result<UnitNumber, BarrierSpecError> {
    UnitNumber::new(number).ok_or(BarrierSpecError::Unit(number, UNITS as u8))
}

impl BarrierRuns for Pe {
    fn units(&self) -> u8 {
        UNITS as u8
    }

    fn prepare(&mut self, number: u8) -> Result<(), DeviceError> {
        let unit = unit(number)?;
        self.may_begin(unit)?;
        // Revoke access first, which resets the unit.
        self.shell.grant(unit, false);
        self.shell.grant(unit, true);
        self.nic.registers_mut()[unit.index()] = 0;
        Ok(())
    }

    fn start(&mut self, now: Time, spec: BarrierSpec) -> Result<(), DeviceError> {
        spec.validate(UNITS as u8)?;
        let unit = unit(spec.unit)?;
        let own = self.nic.number();
        let rank = spec.processors.iter().position(|&number| number == own);
        let rank = rank.ok_or(BarrierSpecError::NotParticipant)?;
        self.may_begin(unit)?;
        if !self.shell.has_access(unit) || self.shell.state(unit) == State::Arm {
            return Err(BarrierSpecError::NotReady(spec.unit).into());
        }
        let mut run = BarrierRun::new(spec, unit, rank, now);
        if self.shell.state(unit) == State::Eur {
            // Another processor signalled the eureka before this run began.
            let seen = crate::barrier::Notified::EurekaSeen;
            run.notified(now, seen, &mut self.shell);
        }
        self.runs.begin(unit, run);
        Ok(())
    }

    fn report(&self, number: u8) -> Option<BarrierReport> {
        let run = self.runs.of(UnitNumber::new(number)?);
        run.map(BarrierRun::report)
    }

    fn stop(&mut self, number: u8) {
        let run = UnitNumber::new(number).and_then(|unit| self.runs.of_mut(unit));
        if let Some(run) = run
            && run.stop()
        {
            run.abort("stopped");
        }
    }
}

impl Pe {
    fn may_begin(&self, unit: UnitNumber) -> Result<(), BarrierSpecError> {
        match self.runs.of(unit) {
            Some(run) if run.phase() != RunPhase::Done => {
                Err(BarrierSpecError::Busy(run.run(), unit.index() as u8))
            }
            _ => Ok(()),
        }
    }
}

/// Appended to the message about an unknown register.
const HINT: &str = "; the registers are barrier.N.grant, .interrupt, .state, .operation, \
                    .barriers and .eurekas, N from 0 to 31";

#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("invalid value: expected {0}")]
    Takes(&'static str),
    #[error("the register is read-only")]
    ReadOnly,
    #[error(transparent)]
    Operation(#[from] crate::barrier::OperationError),
}

/// The unit and the field in a register's name.
fn register(name: RegisterName<'_>) -> Result<(UnitNumber, &str), DeviceError> {
    let found = match name {
        RegisterName::Address(_) => None,
        RegisterName::Name(text) => text.strip_prefix("barrier.").and_then(|rest| {
            let (number, field) = rest.split_once('.')?;
            Some((UnitNumber::new(number.parse().ok()?)?, field))
        }),
    };
    found.ok_or_else(|| DeviceError::UnknownRegister {
        register: name.to_string(),
        hint: HINT,
    })
}

impl Registers for Pe {
    fn read(&self, name: RegisterName<'_>) -> Result<u64, DeviceError> {
        let (unit, field) = register(name)?;
        let shell = &self.shell;
        Ok(match field {
            "grant" => shell.has_access(unit).into(),
            "interrupt" => shell.has_interrupt(unit).into(),
            "state" => match shell.state(unit) {
                State::Bar => 0,
                State::Arm => 1,
                State::Eur => 2,
            },
            "operation" => 0,
            "barriers" => shell.unit(unit).barriers(),
            "eurekas" => shell.unit(unit).eurekas(),
            _ => {
                return Err(DeviceError::UnknownRegister {
                    register: name.to_string(),
                    hint: HINT,
                });
            }
        })
    }

    fn list(&self) -> Vec<RegisterInfo> {
        let of = |(field, writable, bits, about): (&str, bool, u8, &str)| {
            let name = format!("barrier.{{0..{}}}.{field}", UNITS - 1);
            RegisterInfo::new(name, writable, bits, about)
        };
        [
            ("grant", true, 1, "1: the user may use the barrier unit"),
            (
                "interrupt",
                true,
                1,
                "1: the unit interrupts when it completes",
            ),
            ("state", false, 2, "0 BAR, 1 ARM, 2 EUR"),
            (
                "operation",
                true,
                2,
                "write 0 to join, 1 to signal the eureka, 2 for both; reads as 0",
            ),
            ("barriers", false, 64, "barriers seen by the unit"),
            ("eurekas", false, 64, "eurekas seen by the unit"),
        ]
        .map(of)
        .into()
    }

    fn write(&mut self, name: RegisterName<'_>, value: u64) -> Result<(), DeviceError> {
        let (unit, field) = register(name)?;
        let shell = &mut self.shell;
        let flag = match value {
            0 | 1 => Ok(value == 1),
            _ => Err(Refused::Takes("0 or 1")),
        };
        let written = match field {
            "grant" => flag.map(|access| shell.grant(unit, access)),
            "interrupt" => flag.map(|interrupts| shell.set_interrupting(unit, interrupts)),
            "operation" => {
                let operation = match value {
                    0 => Ok(Operation::Bar),
                    1 => Ok(Operation::Eur),
                    2 => Ok(Operation::EurB),
                    _ => Err(Refused::Takes(
                        "0 to join, 1 to signal the eureka or 2 for both",
                    )),
                };
                operation.and_then(|operation| Ok(shell.operate(unit, operation)?))
            }
            "state" | "barriers" | "eurekas" => Err(Refused::ReadOnly),
            _ => {
                return Err(DeviceError::UnknownRegister {
                    register: name.to_string(),
                    hint: HINT,
                });
            }
        };
        written.map_err(|why| DeviceError::RegisterRefused {
            register: name.to_string(),
            why: Box::new(why),
        })
    }
}
