//! Loads virtual channel tables into a running lab.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use phitwire::net::{Network, NodeRef, RegisterValue, TunableChannels, harmless};
use phitwire_nodes::control::{Register, Request};
use serde::Serialize;
use serde_json::Value;

use super::fleet::Routers;

/// Maximum number of changes listed in text; the rest are counted.
const MAX_LISTED: usize = 48;

/// Note in the report when links and routers were not examined.
pub const LINKS_UNSEEN: &str = "checked against the routes of the description; link states were \
                                not queried";

/// Number of failures after which a router gets no more requests in the same pass.
const MOST_FAILURES: usize = 2;
/// Number of consecutive failures after which no router gets any more: with a timeout for each of
/// thousands of registers, the pass would take hours.
const MOST_IN_A_ROW: usize = 12;
const NOT_ASKED: &str = "not queried: the router did not answer earlier requests";
const INTERRUPTED: &str = "not queried: interrupted";

/// Access to the registers of routers.
pub trait Registers {
    /// Reads a register of a router, by its number in the machine; writes `value` first, if any.
    ///
    /// # Errors
    /// The reason, as text.
    fn ask(&mut self, router: u32, register: &str, value: Option<u64>) -> Result<u64, String>;
}

/// Access through control sockets.
impl<R: Routers> Registers for R {
    fn ask(&mut self, router: u32, register: &str, value: Option<u64>) -> Result<u64, String> {
        let register = Register::Name(register.to_owned());
        let request = match value {
            Some(value) => Request::Set { register, value },
            None => Request::Get { register },
        };
        let answer = Routers::ask(self, router, &request);
        let answer = answer.map_err(|error| error.to_string())?;
        value_in(&answer)
    }
}

/// The register value in a router's reply.
///
/// # Errors
/// If the reply has no value.
pub fn value_in(answer: &Value) -> Result<u64, String> {
    let value = answer["value"].as_u64();
    value.ok_or_else(|| String::from("malformed answer"))
}

/// A register that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Changed {
    pub router: String,
    pub register: String,
    /// Value before the load; `None` if it could not be read.
    pub before: Option<u64>,
    /// Value read back after the load.
    pub after: u64,
}

/// A register that does not hold its intended value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failed {
    pub router: String,
    pub register: String,
    pub why: String,
}

/// The result of loading tables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Loaded {
    pub lab: String,
    /// Number of registers covered by the tables.
    pub registers: usize,
    /// Number of routers with such registers.
    pub routers: usize,
    /// Registers that held another value.
    pub changed: Vec<Changed>,
    /// Registers that do not hold their intended value.
    pub failed: Vec<Failed>,
    /// Why loading would have been refused without force.
    pub forced: Option<String>,
    /// The part that the check did not examine.
    pub unseen: Option<&'static str>,
    /// A cycle that the old tables allowed. New tables do not free packets that wait in it.
    pub circle_before: Option<String>,
    /// Whether a signal ended the load before everything was written and read back.
    pub interrupted: bool,
}

/// Options for loading tables.
pub struct How<'a> {
    /// Why the tables cannot be checked; `None` if they can.
    pub doubt: Option<String>,
    /// Whether to load tables that are unsafe or cannot be checked.
    pub force: bool,
    /// Returns true after a signal, to end the load.
    pub stop: &'a dyn Fn() -> bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// Packets could deadlock in a cycle.
    #[error("{0}")]
    Unsafe(String),
    /// A signal arrived before anything was written.
    #[error("interrupted")]
    Interrupted,
    /// A register that cannot be read.
    #[error("{router}: cannot read `{register}`: {why}")]
    Unread {
        router: String,
        register: String,
        why: String,
    },
}

/// Reads all tables of a network, checks the result of `new`, writes the registers that differ, and
/// reads them back. Tables that are unsafe or cannot be checked are rejected unless forced. If a
/// signal ends the load, the report lists the registers written so far.
///
/// # Errors
/// [`LoadError`], if nothing was written.
pub fn load(
    (network, tunable): (&dyn Network, &dyn TunableChannels),
    new: &[RegisterValue],
    registers: &mut dyn Registers,
    how: How<'_>,
) -> Result<Loaded, LoadError> {
    let How { doubt, force, stop } = how;
    let mut loading = Loading {
        network,
        registers,
        stop,
        failures: BTreeMap::new(),
        in_a_row: 0,
        unanswered: BTreeMap::new(),
        loaded: Loaded {
            registers: new.len(),
            ..Loaded::default()
        },
    };
    let (now, unread) = loading.read_all(tunable, force)?;
    if stop() {
        return Err(LoadError::Interrupted);
    }
    loading.loaded.circle_before = tunable.judge_channels(&now, &now).err();
    let judged = match doubt {
        Some(doubt) => Err(doubt),
        None => tunable.judge_channels(&now, new),
    };
    match judged {
        Err(why) if !force => return Err(LoadError::Unsafe(why)),
        judged => loading.loaded.forced = judged.err(),
    }
    let held: BTreeMap<_, _> = now
        .iter()
        .map(|held| ((held.node, held.register.as_str()), held.value))
        .filter(|((node, register), _)| !unread.contains(&(*node, String::from(*register))))
        .collect();
    let mut routers: Vec<NodeRef> = new.iter().map(|wanted| wanted.node).collect();
    routers.sort_unstable();
    routers.dedup();
    loading.loaded.routers = routers.len();
    loading.failures.clear();
    for wanted in new {
        let before = held.get(&(wanted.node, wanted.register.as_str()));
        loading.write(wanted, before.copied());
    }
    loading.failures.clear();
    for wanted in new {
        loading.read_back(wanted);
    }
    // Retry failed registers: a router that was only busy may reply by now.
    loading.failures.clear();
    for wanted in new
        .iter()
        .filter(|wanted| loading.has_failed(wanted))
        .collect::<Vec<_>>()
    {
        loading.read_back(wanted);
    }
    let mut failed = loading.loaded.failed.iter();
    loading.loaded.interrupted = failed.any(|failed| failed.why == INTERRUPTED);
    Ok(loading.loaded)
}

type RegisterOf = (NodeRef, String);

struct Loading<'a> {
    network: &'a dyn Network,
    registers: &'a mut dyn Registers,
    stop: &'a dyn Fn() -> bool,
    /// Consecutive failed requests, by router and in total.
    failures: BTreeMap<u32, usize>,
    in_a_row: usize,
    /// Registers whose write got no reply, and their old values.
    unanswered: BTreeMap<RegisterOf, Option<u64>>,
    loaded: Loaded,
}

impl Loading<'_> {
    fn ask(&mut self, of: &RegisterValue, value: Option<u64>) -> Result<u64, String> {
        let NodeRef::Chip(router) = of.node else {
            return Err(String::from("not a router"));
        };
        if (self.stop)() {
            return Err(String::from(INTERRUPTED));
        }
        let failures = self.failures.entry(router).or_default();
        if *failures >= MOST_FAILURES || self.in_a_row >= MOST_IN_A_ROW {
            return Err(String::from(NOT_ASKED));
        }
        let answer = self.registers.ask(router, &of.register, value);
        if answer.is_ok() {
            (*failures, self.in_a_row) = (0, 0);
        } else {
            (*failures, self.in_a_row) = (*failures + 1, self.in_a_row + 1);
        }
        answer
    }

    fn name(&self, of: &RegisterValue) -> String {
        self.network.node_name(of.node).into_owned()
    }

    fn has_failed(&self, of: &RegisterValue) -> bool {
        let router = self.name(of);
        let mut failed = self.loaded.failed.iter();
        failed.any(|failed| failed.router == router && failed.register == of.register)
    }

    fn fail(&mut self, of: &RegisterValue, why: String) {
        if !self.has_failed(of) {
            let (router, register) = (self.name(of), of.register.clone());
            self.loaded.failed.push(Failed {
                router,
                register,
                why,
            });
        }
    }

    /// Records that the register holds its intended value, and removes any failure reported for it.
    fn holds(&mut self, of: &RegisterValue) {
        let (router, register) = (self.name(of), of.register.clone());
        let is_it = |failed: &Failed| failed.router == router && failed.register == register;
        self.loaded.failed.retain(|failed| !is_it(failed));
        if let Some(before) = self.unanswered.remove(&(of.node, register.clone())) {
            self.loaded.changed.push(Changed {
                router,
                register,
                before,
                after: of.value,
            });
        }
    }

    /// Reads all tables. Registers that cannot be read are assumed to hold the description's
    /// values, and returned as unread.
    fn read_all(
        &mut self,
        tunable: &dyn TunableChannels,
        force: bool,
    ) -> Result<(Vec<RegisterValue>, BTreeSet<RegisterOf>), LoadError> {
        let mut all = tunable.channel_tables().map_err(LoadError::Unsafe)?;
        let mut unread = BTreeSet::new();
        for held in &mut all {
            match self.ask(held, None) {
                Ok(value) => held.value = value,
                // With force, an unread register is written too, and a failure is reported.
                Err(_) if force => {
                    unread.insert((held.node, held.register.clone()));
                }
                Err(why) => {
                    return Err(LoadError::Unread {
                        router: self.name(held),
                        register: held.register.clone(),
                        why,
                    });
                }
            }
        }
        Ok((all, unread))
    }

    fn write(&mut self, wanted: &RegisterValue, before: Option<u64>) {
        if before == Some(wanted.value) {
            return;
        }
        match self.ask(wanted, Some(wanted.value)) {
            Ok(after) => self.loaded.changed.push(Changed {
                router: self.name(wanted),
                register: wanted.register.clone(),
                before,
                after,
            }),
            Err(why) => {
                let register = (wanted.node, wanted.register.clone());
                self.unanswered.insert(register, before);
                self.fail(wanted, why);
            }
        }
    }

    fn read_back(&mut self, wanted: &RegisterValue) {
        match self.ask(wanted, None) {
            Ok(value) if value == wanted.value => self.holds(wanted),
            Ok(value) => {
                let why = format!(
                    "register holds {value:#04x}, expected {:#04x}",
                    wanted.value
                );
                self.fail(wanted, why);
            }
            Err(why) => self.fail(wanted, why),
        }
    }
}

impl Loaded {
    /// Whether all registers hold their intended values.
    pub fn is_whole(&self) -> bool {
        self.failed.is_empty()
    }

    pub fn text(&self) -> String {
        let mut out = format!(
            "lab {}: {} tables of {} routers, {} changed, {} read back correctly\n",
            self.lab,
            self.registers,
            self.routers,
            self.changed.len(),
            self.registers - self.failed.len(),
        );
        // Writing to a String cannot fail.
        if let Some(why) = &self.forced {
            let _ = writeln!(out, "forced despite: {why}");
        }
        if let Some(unseen) = self.unseen {
            let _ = writeln!(out, "{unseen}");
        }
        if let Some(circle) = &self.circle_before {
            let _ = writeln!(
                out,
                "the previous tables allowed this cycle: {circle}\nPackets already waiting in a \
                 cycle may need more than new tables: see the machine's documentation"
            );
        }
        if self.interrupted {
            let _ = writeln!(
                out,
                "interrupted: the remaining registers were not written, or not read back"
            );
        }
        for Changed {
            router,
            register,
            before,
            after,
        } in self.changed.iter().take(MAX_LISTED)
        {
            let before =
                before.map_or_else(|| String::from("unread"), |held| format!("{held:#04x}"));
            let _ = writeln!(out, "  {router} {register}: {before} -> {after:#04x}");
        }
        if self.changed.len() > MAX_LISTED {
            let _ = writeln!(out, "  and {} more", self.changed.len() - MAX_LISTED);
        }
        for Failed {
            router,
            register,
            why,
        } in self.failed.iter().take(MAX_LISTED)
        {
            let _ = writeln!(out, "  failed: {router} {register}: {}", harmless(why));
        }
        if self.failed.len() > MAX_LISTED {
            let _ = writeln!(out, "  and {} more failed", self.failed.len() - MAX_LISTED);
        }
        out
    }
}
