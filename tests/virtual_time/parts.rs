//! Parts that share no memory: they exchange bytes, and the run is the same.

use phitwire::sim::direct::byte_parts::{ByteParts, ExchangingBytes};
use phitwire::sim::direct::check::Violation;
use phitwire::sim::direct::mail::{Kind, MailError, seal};
use phitwire::sim::direct::part::{Command, LocalPart, Part};
use phitwire::sim::direct::parts::{Assembly, InMemory, Parts};
use phitwire::sim::direct::summary::{Section, Summary};
use phitwire::sim::direct::{
    Config, ConfigError, CycleModel, Report, Serial, Simulation, Traffic, Warmup,
};
use phitwire_aries::cycle::Aries;
use phitwire_blackwidow::cycle::BlackWidow;
use phitwire_machines::CATALOGUE;
use phitwire_t3e::cycle::T3e;

const PARTS: usize = 3;
const LINKS: [&str; 2] = ["direct", "encoded"];

fn config() -> Config {
    Config {
        traffic: Traffic {
            request_reply: true,
            ..Traffic::default()
        },
        warmup: Warmup::Cycles(500),
        measure_cycles: 1_500,
        faults: vec!["link 3 down at 200ns for 500ns".parse().expect("a fault")],
        ..Config::default()
    }
}

/// A run of the network of that name.
fn run<M: CycleModel>(
    (name, links, parts): (&str, &str, usize),
    config: &Config,
    assembly: &impl Assembly,
) -> Result<Report, ConfigError> {
    let network = CATALOGUE.generate(name).expect("a name");
    let network = network.expect("a network");
    let network: &M::Topology = network.of_machine().expect("its machine");
    let options = M::Options::default();
    let mut simulation = match links {
        "direct" => Simulation::<M>::assembled(network, config, &options, parts, assembly)?,
        _ => {
            let netem = Some("delay 20ns 10ns loss 0.1%".parse().expect("words"));
            let how = (netem, parts);
            Simulation::assembled_encoded(network, config, &options, how, assembly, &mut Serial)?
        }
    };
    Ok(simulation.run(&mut Serial, |_| {}))
}

fn bytes_change_nothing<M: CycleModel>(name: &str) {
    for links in LINKS {
        let run = |parts, as_bytes: bool| {
            let report = match as_bytes {
                true => run::<M>((name, links, parts), &config(), &ExchangingBytes),
                false => run::<M>((name, links, parts), &config(), &InMemory),
            };
            report.expect("the run is possible")
        };
        let whole = run(1, false);
        assert_eq!(whole.violations, [], "{name} {links}");
        assert!(whole.packets > 100, "{name} {links}: {}", whole.packets);
        let by_bytes = run(PARTS, true);
        assert_eq!(by_bytes, run(PARTS, false), "{name} {links}");
        assert_eq!(by_bytes.trace_hash, whole.trace_hash, "{name} {links}");
    }
}

#[test]
fn blackwidow_runs_by_bytes() {
    bytes_change_nothing::<BlackWidow>("r2-96");
}

#[test]
fn aries_runs_by_bytes() {
    bytes_change_nothing::<Aries>("aries-3x2x2x2:2");
}

#[test]
fn t3e_runs_by_bytes() {
    bytes_change_nothing::<T3e>("t3e-4x3x2");
}

/// What happens to a mail from part 1 to part 0.
#[derive(Clone, Copy, Debug)]
enum Harm {
    None,
    /// The mail is lost.
    Lose,
    /// The previous mail is sent again in its place.
    Repeat,
    /// A byte is changed.
    Alter,
    /// A bit of a carried phit or frame is changed, and the hash is recomputed.
    Forge,
}

/// Harms the first mail of the measurement with at least [`LONG`] bytes. A forged frame may be
/// dropped without effect, so forges up to [`FRAMES`] mails with frames.
struct Harmed {
    part: Box<dyn Part>,
    number: usize,
    harm: Harm,
    last: Vec<u8>,
    /// Mails still to be harmed.
    left: u32,
}

/// A mail that carries several phits, or a frame.
const LONG: usize = 150;

const FRAMES: u32 = 50;

impl Part for Harmed {
    fn run_window(&mut self) {
        self.part.run_window();
    }

    fn give(&mut self, to: usize, mail: &mut Vec<u8>) {
        self.part.give(to, mail);
        if (self.number, to) != (1, 0) {
            return;
        }
        if mail.len() < LONG || self.left == 0 {
            self.last.clone_from(mail);
            return;
        }
        self.left -= 1;
        match self.harm {
            Harm::None => {}
            Harm::Lose => mail.clear(),
            Harm::Repeat => mail.clone_from(&self.last),
            Harm::Alter => mail[100] ^= 0x10,
            Harm::Forge => {
                let at = carried(mail);
                mail[at] ^= 0x10;
                seal(mail);
                if mail[4] == Kind::Phits as u8 {
                    self.left = 0;
                }
            }
        }
    }

    fn take(&mut self, from: usize, mail: &[u8]) -> Result<(), MailError> {
        self.part.take(from, mail)
    }

    fn command(&mut self, command: &Command) {
        if matches!(command, Command::Measure(_)) {
            self.left = match self.harm {
                Harm::Forge => FRAMES,
                _ => 1,
            };
        }
        self.part.command(command);
    }

    fn summary(&self, section: Section) -> Summary {
        self.part.summary(section)
    }
}

/// A byte of the last phit of a mail, or, in its first frame, of the first phits after the header.
fn carried(mail: &[u8]) -> usize {
    const OF_FRAMES: u8 = Kind::Frames as u8;
    match mail[4] {
        OF_FRAMES => 51 + 48,
        _ => mail.len() - 9,
    }
}

impl Assembly for Harm {
    fn assemble<P: LocalPart>(&self, parts: Vec<P>) -> Box<dyn Parts> {
        let parts = parts.into_iter().enumerate();
        let harmed = parts.map(|(number, part)| -> Box<dyn Part> {
            Box::new(Harmed {
                part: Box::new(part),
                number,
                harm: *self,
                last: Vec::new(),
                left: 0,
            })
        });
        Box::new(ByteParts::new(harmed.collect()))
    }
}

/// Canary.
#[test]
fn a_lost_or_altered_mail_is_noticed() {
    for links in LINKS {
        let harmed = |harm| {
            let report = run::<BlackWidow>(("r2-96", links, PARTS), &config(), &harm);
            report.expect("the run is possible")
        };
        let healthy = harmed(Harm::None);
        assert_eq!(healthy.violations, [], "{links}");
        for harm in [Harm::Lose, Harm::Repeat, Harm::Alter] {
            let violations = harmed(harm).violations;
            let [Violation::Mail(error)] = violations[..] else {
                panic!("{links} {harm:?}: {violations:?}");
            };
            let is_right = match harm {
                Harm::Lose => matches!(error, MailError::Short(0)),
                Harm::Repeat => matches!(error, MailError::Exchange { .. }),
                _ => matches!(error, MailError::Hash),
            };
            assert!(is_right, "{links} {harm:?}: {error:?}");
        }
        // With a valid hash, a checker of the run finds a damaged phit, but encoded links resend a
        // damaged frame, so that only the trace differs.
        let forged = harmed(Harm::Forge);
        assert_ne!(forged.trace_hash, healthy.trace_hash, "{links}");
        let only_late = links == "encoded";
        let violations = forged.violations;
        assert_eq!(violations.is_empty(), only_late, "{links}: {violations:?}");
    }
}
