//! Tables of virtual channels, loaded into a lab that runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use phitwire::net::{Network, NodeRef, RegisterValue, TunableChannels, harmless};
use phitwire_nodes::control::{Register, Request};
use serde::Serialize;
use serde_json::Value;

use super::fleet::Routers;

/// Changes that are told to people one by one; the others are counted.
const MOST_TOLD: usize = 48;

/// What is told where nobody has asked how links and routers are.
pub const LINKS_UNSEEN: &str = "judged by the description's ways; links were not looked at";

/// A router that has failed so often is not asked again in the same pass; and nobody is, when so many questions one
/// after the other have: with a deadline for each, thousands of registers would take hours.
const MOST_FAILURES: usize = 2;
const MOST_IN_A_ROW: usize = 12;
const NOT_ASKED: &str = "not asked: it did not answer before";
const INTERRUPTED: &str = "not asked: interrupted";

/// What reads and writes the registers of routers.
pub trait Registers {
    /// Reads a register of a router, by its number over the machine; writes it before, if there is
    /// a value.
    ///
    /// # Errors
    /// In words, why not.
    fn ask(&mut self, router: u32, register: &str, value: Option<u64>) -> Result<u64, String>;
}

/// By control sockets.
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

/// The value of a register, in the answer of a router.
///
/// # Errors
/// If there is none.
pub fn value_in(answer: &Value) -> Result<u64, String> {
    let value = answer["value"].as_u64();
    value.ok_or_else(|| String::from("the answer is malformed"))
}

/// A register that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// The router.
    pub router: String,
    /// The register.
    pub register: String,
    /// What it held; `None` = that could not be read.
    pub before: Option<u64>,
    /// What it holds, as it was read back.
    pub after: u64,
}

/// A register that does not hold what it should.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// The router.
    pub router: String,
    /// The register.
    pub register: String,
    /// Why not.
    pub why: String,
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Loaded {
    /// The lab.
    pub lab: String,
    /// Registers that the tables are for.
    pub registers: usize,
    /// Routers that have them.
    pub routers: usize,
    /// Those that held something else.
    pub changed: Vec<Changed>,
    /// Those that do not hold what they should.
    pub failed: Vec<Failed>,
    /// Why they would not have been loaded, had that not been forced.
    pub forced: Option<String>,
    /// What the judgement did not look at.
    pub unseen: Option<&'static str>,
    /// The circle that the tables before allowed: what waits in it already is not freed by tables.
    pub circle_before: Option<String>,
    /// A signal ended it before all was written and read back.
    pub interrupted: bool,
}

/// How tables are loaded.
pub struct How<'a> {
    /// Why they cannot be judged, if they cannot.
    pub doubt: Option<String>,
    /// Whether they are loaded all the same.
    pub force: bool,
    /// Whether to end.
    pub stop: &'a dyn Fn() -> bool,
}

/// Why nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// Packets could wait in a circle.
    #[error("{0}")]
    Unsafe(String),
    /// A signal came before anything was written.
    #[error("interrupted")]
    Interrupted,
    /// A register cannot be read.
    #[error("{router}: `{register}` cannot be read: {why}")]
    Unread {
        /// Of this router.
        router: String,
        /// Which.
        register: String,
        /// Why not.
        why: String,
    },
}

/// Reads all tables of a network, judges what `new` makes of them, writes those that differ, and
/// reads them back. Tables that are wrong, or that cannot be judged, are refused unless that is
/// forced. Where a signal ends it midway, the report says what was written.
///
/// # Errors
/// [`LoadError`]: then nothing was written.
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
    // A router that was only too busy has answered by now.
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

/// A register of a router.
type RegisterOf = (NodeRef, String);

struct Loading<'a> {
    network: &'a dyn Network,
    registers: &'a mut dyn Registers,
    stop: &'a dyn Fn() -> bool,
    /// By router, questions one after the other that failed, and those of all.
    failures: BTreeMap<u32, usize>,
    in_a_row: usize,
    /// Registers whose writing was not answered, and what they held before.
    unanswered: BTreeMap<RegisterOf, Option<u64>>,
    loaded: Loaded,
}

impl Loading<'_> {
    fn ask(&mut self, of: &RegisterValue, value: Option<u64>) -> Result<u64, String> {
        let NodeRef::Chip(router) = of.node else {
            return Err(String::from("it is no router"));
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

    /// It holds what it should, whatever was heard of it before.
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

    /// What all tables hold now, and which of them could not be read: those are judged by what the
    /// description says, and are not known to hold it.
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
                // It is written whatever it holds, and told if that fails too.
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
                let why = format!("it holds {value:#04x} instead of {:#04x}", wanted.value);
                self.fail(wanted, why);
            }
            Err(why) => self.fail(wanted, why),
        }
    }
}

impl Loaded {
    /// Whether all registers hold what they should.
    pub fn is_whole(&self) -> bool {
        self.failed.is_empty()
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = format!(
            "lab {}: {} tables of {} routers, {} changed, {} read back as they should be\n",
            self.lab,
            self.registers,
            self.routers,
            self.changed.len(),
            self.registers - self.failed.len(),
        );
        // Writing into a String never fails.
        if let Some(why) = &self.forced {
            let _ = writeln!(out, "forced, although {why}");
        }
        if let Some(unseen) = self.unseen {
            let _ = writeln!(out, "{unseen}");
        }
        if let Some(circle) = &self.circle_before {
            let _ = writeln!(
                out,
                "the tables before allowed this: {circle}\nWhat waits in a circle already may need more than tables to go on: see the \
                 machine's documentation"
            );
        }
        if self.interrupted {
            let _ = writeln!(
                out,
                "interrupted: what was not written, or not read back, follows what was"
            );
        }
        for Changed {
            router,
            register,
            before,
            after,
        } in self.changed.iter().take(MOST_TOLD)
        {
            let before =
                before.map_or_else(|| String::from("unread"), |held| format!("{held:#04x}"));
            let _ = writeln!(out, "  {router} {register}: {before} -> {after:#04x}");
        }
        if self.changed.len() > MOST_TOLD {
            let _ = writeln!(out, "  and {} more", self.changed.len() - MOST_TOLD);
        }
        for Failed {
            router,
            register,
            why,
        } in self.failed.iter().take(MOST_TOLD)
        {
            let _ = writeln!(out, "  not: {router} {register}: {}", harmless(why));
        }
        if self.failed.len() > MOST_TOLD {
            let _ = writeln!(out, "  and {} more not", self.failed.len() - MOST_TOLD);
        }
        out
    }
}
