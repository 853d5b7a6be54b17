//! Common code of the examples: programs of one job, one per door, each in its own thread.
#![allow(dead_code, reason = "no example uses all of it")]

use std::collections::VecDeque;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use phitwire_client::door::{Access, Completion, Local, Remote, Status};
use phitwire_client::{Nic, Options};

/// The result of a program.
pub type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// How long a program waits for an expected completion.
const PATIENCE: Duration = Duration::from_secs(60);

/// First name of the receives of `all_gather`.
const LISTEN: u64 = 1 << 40;

/// One of the programs of the job.
pub struct Program {
    pub nic: Nic,
    /// The program's number, from 0.
    pub rank: usize,
    /// Processor and member of each program.
    pub all: Vec<(u16, u8)>,
    kept: VecDeque<Completion>,
    names: u64,
    /// Rounds of `all_gather` so far; words received: round, rank, word.
    round: u64,
    inbox: Vec<[u64; 3]>,
    board: Arc<Board>,
}

/// An exchange between programs outside of the network: in one process, the counterpart of a
/// launcher.
struct Board {
    words: Mutex<Vec<u64>>,
    barrier: Barrier,
}

/// Attaches a program to each door, with `data_bytes` bytes of data, and runs them all.
pub fn run(doors: &[PathBuf], data_bytes: u64, program: fn(&mut Program) -> Outcome) -> Outcome {
    // Programs stay attached until all have ended, since others may still need their memory.
    run_and(doors, data_bytes, program, Some)
}

/// Like `run`, but each program detaches as soon as it has ended. Use it if no other program needs
/// its memory.
pub fn run_leaving(
    doors: &[PathBuf],
    data_bytes: u64,
    program: fn(&mut Program) -> Outcome,
) -> Outcome {
    run_and(doors, data_bytes, program, |_| None)
}

fn run_and(
    doors: &[PathBuf],
    data_bytes: u64,
    program: fn(&mut Program) -> Outcome,
    keep: fn(Program) -> Option<Program>,
) -> Outcome {
    let job = u64::from(std::process::id()) << 16 | 0x7077;
    let options = Options {
        job,
        member: None,
        data_bytes,
    };
    let attach = |door: &PathBuf| Nic::attach(door, &options);
    let nics = doors.iter().map(attach).collect::<Result<Vec<_>, _>>()?;
    let all: Vec<_> = nics.iter().map(|n| (n.processor(), n.member())).collect();
    let board = Arc::new(Board {
        words: Mutex::new(vec![0; all.len()]),
        barrier: Barrier::new(all.len()),
    });
    let programs = nics.into_iter().enumerate().map(|(rank, nic)| Program {
        nic,
        rank,
        all: all.clone(),
        kept: VecDeque::new(),
        names: 0,
        round: 0,
        inbox: Vec::new(),
        board: board.clone(),
    });
    let (sender, outcomes) = std::sync::mpsc::channel();
    for mut this in programs {
        let sender = sender.clone();
        std::thread::spawn(move || {
            let outcome = program(&mut this);
            let outcome = outcome.map_err(|error| format!("program {}: {error}", this.rank));
            let _ = sender.send((keep(this), outcome));
        });
    }
    drop(sender);
    let mut ended = Vec::new();
    for (this, outcome) in outcomes {
        outcome?;
        ended.push(this);
    }
    match ended.len() == all.len() {
        true => Ok(()),
        false => Err("a program has panicked".into()),
    }
}

/// The `main` of an example: `--door PATH...`.
pub fn main(data_bytes: u64, program: fn(&mut Program) -> Outcome) -> ExitCode {
    let mut words = std::env::args().skip(1);
    let is_call = words.next().is_some_and(|word| word == "--door");
    let doors: Vec<PathBuf> = words.map(PathBuf::from).collect();
    if !is_call || doors.len() < 2 {
        eprintln!("usage: --door PATH PATH...   one program for each door, two or more");
        return ExitCode::from(2);
    }
    match run(&doors, data_bytes, program) {
        Ok(()) => {
            println!("ok: {} programs", doors.len());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("failed: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Program {
    pub fn name(&mut self) -> u64 {
        self.names += 1;
        self.names
    }

    pub fn next(&self) -> usize {
        (self.rank + 1) % self.all.len()
    }

    /// Waits for a completion that `wanted` accepts; others are kept for later calls.
    pub fn until<T>(&mut self, wanted: impl Fn(&Completion) -> Option<T>) -> Outcome<T> {
        for at in 0..self.kept.len() {
            if let Some(found) = wanted(&self.kept[at]) {
                self.kept.remove(at);
                return Ok(found);
            }
        }
        loop {
            let Some(completion) = self.nic.wait(Some(PATIENCE))? else {
                return Err("an expected completion did not arrive".into());
            };
            match wanted(&completion) {
                Some(found) => return Ok(found),
                None => self.kept.push_back(completion),
            }
        }
    }

    /// Waits for the end of a command. Returns its word.
    pub fn end(&mut self, command: u64) -> Outcome<u64> {
        let (status, word) = self.until(|completion| match *completion {
            Completion::End {
                name, status, word, ..
            } if name == command => Some((status, word)),
            _ => None,
        })?;
        match status {
            Status::Done => Ok(word),
            _ => Err(format!("command {command} ended with {status}").into()),
        }
    }

    /// Lets the others access a part of the data. Returns its handle.
    pub fn register(&mut self, part: Local) -> Outcome<u16> {
        let name = self.name();
        self.nic.register(name, part, Access::ALL)?;
        Ok(self.end(name)?.try_into()?)
    }

    /// Sends bytes of the data, and waits until they were received.
    pub fn send(&mut self, rank: usize, from: Local) -> Outcome {
        let name = self.name();
        let (processor, member) = self.all[rank];
        self.nic.send(name, processor, member, from)?;
        self.end(name).map(drop)
    }

    /// Waits for the message of a receive. Returns its length.
    pub fn received(&mut self, receive: u64) -> Outcome<u64> {
        let (status, bytes) = self.until(|completion| match *completion {
            Completion::Received {
                name,
                status,
                bytes,
                ..
            } if name == receive => Some((status, bytes)),
            Completion::End { name, status, .. } if name == receive => Some((status, 0)),
            _ => None,
        })?;
        match status {
            Status::Done => Ok(bytes),
            _ => Err(format!("receive {receive} ended with {status}").into()),
        }
    }

    /// Exchanges a word with all others and returns every program's word, by rank. Uses 64 bytes of
    /// data for each program from `at` on, which must be the same in all calls. Its receives stay
    /// posted, so the program cannot receive other messages.
    pub fn all_gather(&mut self, at: u64, word: u64) -> Outcome<Vec<u64>> {
        let part = |rank: usize| Local {
            offset: at + rank as u64 * 64,
            bytes: 64,
        };
        let others: Vec<_> = (0..self.all.len()).filter(|&r| r != self.rank).collect();
        if self.round == 0 {
            for &rank in &others {
                self.nic.receive(LISTEN + rank as u64, part(rank))?;
            }
        }
        self.round += 1;
        let message = [self.round, self.rank as u64, word].map(u64::to_le_bytes);
        let ours = part(self.rank);
        self.nic.write(ours.offset, message.as_flattened())?;
        // Send to all before waiting for any send to end. A program that waited for one after the
        // other would not repost its receives, which fast programs have filled with the next round.
        let mut sends = Vec::new();
        for &rank in &others {
            let name = self.name();
            let (processor, member) = self.all[rank];
            self.nic.send(name, processor, member, ours)?;
            sends.push(name);
        }
        // Keep words of the next round, which fast programs may already send.
        let round = self.round;
        while self.inbox.iter().filter(|note| note[0] == round).count() < others.len() {
            let name = self.until(|completion| match *completion {
                Completion::Received { name, status, .. } if name >= LISTEN => {
                    (status == Status::Done).then_some(name)
                }
                _ => None,
            })?;
            let part = part((name - LISTEN) as usize);
            let mut message = [[0; 8]; 3];
            self.nic.read(part.offset, message.as_flattened_mut())?;
            self.inbox.push(message.map(u64::from_le_bytes));
            self.nic.receive(name, part)?;
        }
        for name in sends {
            self.end(name)?;
        }
        let mut words = vec![None; self.all.len()];
        words[self.rank] = Some(word);
        for [_, rank, word] in self.inbox.extract_if(.., |note| note[0] == round) {
            *words
                .get_mut(rank as usize)
                .ok_or("a message from an unknown rank")? = Some(word);
        }
        let words: Option<Vec<u64>> = words.into_iter().collect();
        words.ok_or_else(|| "one rank reported twice, another not at all".into())
    }

    /// Exchanges a word with all others, outside of the network.
    pub fn agree(&self, word: u64) -> Outcome<Vec<u64>> {
        let words = || {
            self.board
                .words
                .lock()
                .map_err(|_| "a program has panicked")
        };
        words()?[self.rank] = word;
        self.board.barrier.wait();
        let all = words()?.clone();
        self.board.barrier.wait();
        Ok(all)
    }

    /// Address of byte `offset` in the part with `handle` of a program's memory.
    pub fn remote(&self, rank: usize, handle: u64, offset: u64) -> Remote {
        Remote {
            processor: self.all[rank].0,
            handle: handle as u16,
            offset,
        }
    }
}
