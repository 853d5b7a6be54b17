//! Memory of programs outside of their segments, which NICs access in place: transfers, and
//! behaviour when the memory is unmapped, or the program exits, during an access.

use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::{Child, Command as Process, Stdio};
use std::ptr::NonNull;
use std::thread;
use std::time::Duration;

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use phitwire::rng::Rng;
use phitwire_client::door::{
    Access, AtomicOp, Command, Completion, Local, Remote, Request, Status,
};
use phitwire_client::door::{OWN_END, Width};
use phitwire_client::{Nic, Options};
use phitwire_lab::{Lab, wait_for};

const JOB: u64 = 0x0111_1111;
const PATIENCE: Option<Duration> = Some(Duration::from_secs(30));
const PAGE: usize = 4096;

/// Two network interfaces of one Aries router.
fn pair() -> Lab {
    let program = env!("CARGO_BIN_EXE_phitwire");
    let text = include_str!("../../../netns-scripts/topologies/aries-pair.toml");
    let mut lab = Lab::new(program, text, 8);
    for node in ["g0-c0s0", "nic0", "nic1"] {
        lab.start(node);
    }
    lab.wait("");
    lab
}

fn door(lab: &Lab, nic: &str) -> PathBuf {
    lab.run_dir().join(format!("t/{nic}.door"))
}

fn attach(door: &PathBuf) -> Nic {
    let options = Options {
        job: JOB,
        member: None,
        data_bytes: 4096,
    };
    Nic::attach(door, &options).expect("there is room")
}

/// Waits for the end of command `name`. Returns its status and word.
fn end(nic: &mut Nic, name: u64) -> (Status, u64) {
    loop {
        let next = nic.wait(PATIENCE).expect("it is there");
        match next.expect("it ends") {
            Completion::End {
                name: is,
                status,
                word,
                ..
            } if is == name => return (status, word),
            _ => {}
        }
    }
}

/// Registers the program's own memory and returns the handle.
fn register(nic: &mut Nic, at: u64, bytes: usize) -> Result<u16, Status> {
    nic.register(1, Local::own(at, bytes as u64), Access::ALL)
        .unwrap();
    match end(nic, 1) {
        (Status::Done, handle) => Ok(handle as u16),
        (status, _) => Err(status),
    }
}

const fn at(processor: u16, handle: u16, offset: u64) -> Remote {
    Remote {
        processor,
        handle,
        offset,
    }
}

/// Pages of this process that can be unmapped.
struct Pages(NonNull<std::ffi::c_void>, usize);

impl Pages {
    fn new(pages: usize) -> Self {
        let bytes = NonZeroUsize::new(pages * PAGE).unwrap();
        let both = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: new memory, which holds no Rust object.
        let at = unsafe { mmap_anonymous(None, bytes, both, MapFlags::MAP_PRIVATE) };
        Self(at.expect("there is memory"), bytes.get())
    }

    fn address(&self) -> u64 {
        self.0.as_ptr().addr() as u64
    }

    #[expect(
        clippy::mut_from_ref,
        reason = "whoever calls it again has dropped what came before"
    )]
    fn bytes(&self) -> &mut [u8] {
        // SAFETY: the pages stay mapped until `take_away`, and only this thread reads them until
        // then.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_ptr().cast(), self.1) }
    }

    fn take_away(&self) {
        // SAFETY: no reference to the pages is used after this.
        unsafe { munmap(self.0, self.1) }.expect("they are there");
    }

    fn only_read(&self) {
        // SAFETY: as in `take_away`.
        unsafe { mprotect(self.0, self.1, ProtFlags::PROT_READ) }.expect("they are there");
    }
}

fn pattern(bytes: usize, salt: usize) -> Vec<u8> {
    (0..bytes)
        .map(|n| (n * 7 + n / 255 + salt * 31) as u8)
        .collect()
}

#[test]
fn everything_arrives_where_it_belongs_in_memory_of_ones_own() {
    let lab = pair();
    let (mut a, mut b) = (attach(&door(&lab, "nic0")), attach(&door(&lab, "nic1")));
    let far = Pages::new(64);
    let handle = register(&mut b, far.address(), far.1).expect("it is there");
    let mut rng = Rng::new(3, 1);
    for round in 0..60 {
        let bytes = 1 + rng.below(100_000) as usize;
        let offset = rng.below((far.1 - bytes) as u64);
        let (out, mut back) = (pattern(bytes, round), vec![0xa5; bytes + 2]);
        far.bytes().fill(0xee);
        let local = Local::own(out.as_ptr().addr() as u64, bytes as u64);
        a.block_put(2, at(1, handle, offset), local, None).unwrap();
        assert_eq!(end(&mut a, 2).0, Status::Done);
        let offset = offset as usize;
        assert_eq!(far.bytes()[offset..offset + bytes], out[..], "{round}");
        let others = far.bytes()[..offset]
            .iter()
            .chain(&far.bytes()[offset + bytes..]);
        assert!(others.clone().all(|&byte| byte == 0xee), "{round}");
        let into = Local::own(back.as_mut_ptr().addr() as u64 + 1, bytes as u64);
        a.block_get(3, at(1, handle, offset as u64), into).unwrap();
        assert_eq!(end(&mut a, 3).0, Status::Done);
        assert_eq!(back[1..=bytes], out[..], "{round}");
        assert_eq!((back[0], back[bytes + 1]), (0xa5, 0xa5));
    }
    // Memory registered for reading must not change; atomic operations may still read it.
    let reading = Access {
        put: false,
        get: true,
        atomic: false,
    };
    far.bytes().fill(6);
    b.register(1, Local::own(far.address(), far.1 as u64), reading)
        .unwrap();
    let (status, read_only) = end(&mut b, 1);
    assert_eq!(status, Status::Done);
    let six = u64::from_le_bytes([6; 8]);
    for (op, operands) in [
        (AtomicOp::Add, [1, 0]),
        (AtomicOp::Or, [1, 0]),
        (AtomicOp::Swap, [1, 0]),
        (AtomicOp::CompareSwap, [six, 1]),
    ] {
        let to = at(1, read_only as u16, 64);
        a.atomic(3, to, op, operands, true).unwrap();
        assert_eq!(end(&mut a, 3), (Status::Forbidden, 0), "{op:?}");
        a.atomic(3, to, AtomicOp::Or, [0, 0], true).unwrap();
        assert_eq!(end(&mut a, 3), (Status::Done, six));
    }
    assert!(far.bytes().iter().all(|&byte| byte == 6));
    // Check words, and puts that the program sees in order.
    let word = |n: usize| u64::from_le_bytes(far.bytes()[n..n + 8].try_into().unwrap());
    far.bytes().fill(0);
    a.put(4, at(1, handle, 128), &pattern(64, 1), false)
        .unwrap();
    assert_eq!(end(&mut a, 4).0, Status::Done);
    assert_eq!(far.bytes()[128..192], pattern(64, 1)[..]);
    for n in 0..100 {
        a.atomic(5, at(1, handle, 8), AtomicOp::Add, [3, 0], true)
            .unwrap();
        assert_eq!(end(&mut a, 5), (Status::Done, 3 * n));
    }
    assert_eq!(word(8), 300);
    // Change four bytes but not their neighbours.
    far.bytes()[16..24].copy_from_slice(&[1, 0, 0, 0, 9, 9, 9, 9]);
    let narrow = Request::Atomic {
        at: at(1, handle, 16),
        op: AtomicOp::Swap,
        width: Width::Bits32,
        operands: [7, 0],
        fetch: true,
        ordered: false,
    };
    a.post(&Command {
        name: 6,
        request: narrow,
    })
    .unwrap();
    assert_eq!(end(&mut a, 6), (Status::Done, 1));
    assert_eq!(far.bytes()[16..24], [7, 0, 0, 0, 9, 9, 9, 9]);
    // Send a message from one program's memory to that of another.
    let (out, into) = (pattern(5000, 9), Pages::new(2));
    b.receive(7, Local::own(into.address(), 8000)).unwrap();
    b.flush();
    let local = Local::own(out.as_ptr().addr() as u64, 5000);
    a.send(8, 1, b.member(), local).unwrap();
    assert_eq!(end(&mut a, 8).0, Status::Done);
    loop {
        if let Some(Completion::Received { status, bytes, .. }) = b.wait(PATIENCE).unwrap() {
            assert_eq!((status, bytes), (Status::Done, 5000));
            break;
        }
    }
    assert_eq!(into.bytes()[..5000], out[..]);
}

#[test]
fn memory_that_is_taken_away_is_an_error_and_nothing_else() {
    let lab = pair();
    let (mut a, mut b) = (attach(&door(&lab, "nic0")), attach(&door(&lab, "nic1")));
    let far = Pages::new(4);
    let handle = register(&mut b, far.address(), far.1).expect("it is there");
    let own = Pages::new(64);
    let there = Local::own(own.address(), 4 * PAGE as u64);
    // Pages that are mapped read-only must not be written.
    far.bytes().fill(5);
    far.only_read();
    a.put(2, at(1, handle, 0), &[1; 8], false).unwrap();
    assert_eq!(end(&mut a, 2).0, Status::OutOfBounds);
    assert!(far.bytes().iter().all(|&byte| byte == 5));
    far.take_away();
    for name in [3, 4, 5, 6] {
        let to = at(1, handle, 0);
        match name {
            3 => a.put(name, to, &[1; 8], false).unwrap(),
            4 => a.block_put(name, to, there, None).unwrap(),
            5 => a.block_get(name, to, there).unwrap(),
            _ => a.atomic(name, to, AtomicOp::Add, [1, 0], true).unwrap(),
        }
        assert_eq!(end(&mut a, name).0, Status::OutOfBounds, "{name}");
    }
    // Unmap a page in the middle of a registered range.
    let gap = register(&mut b, own.address(), own.1).expect("it is there");
    let middle = Pages(own.0.map_addr(|at| at.checked_add(9 * PAGE).unwrap()), PAGE);
    middle.take_away();
    let whole = Local::own(own.address(), own.1 as u64);
    let other = Pages::new(64);
    let elsewhere = Local::own(other.address(), other.1 as u64);
    for (name, request, status) in [
        (7, (gap, elsewhere, true), Status::OutOfBounds),
        (8, (gap, elsewhere, false), Status::OutOfBounds),
    ] {
        let (handle, local, puts) = request;
        match puts {
            true => a.block_put(name, at(1, handle, 0), local, None).unwrap(),
            false => a.block_get(name, at(1, handle, 0), local).unwrap(),
        }
        assert_eq!(end(&mut a, name).0, status, "{name}");
    }
    // Use the range with the gap at this end.
    let open = register(&mut b, other.address(), other.1).expect("it is there");
    a.block_put(9, at(1, open, 0), whole, None).unwrap();
    assert_eq!(end(&mut a, 9).0, Status::Unreachable);
    a.block_get(10, at(1, open, 0), whole).unwrap();
    assert_eq!(end(&mut a, 10).0, Status::Unreachable);
    let into = Local::own(middle.address(), 64);
    a.get(11, at(1, open, 0), into).unwrap();
    assert_eq!(end(&mut a, 11).0, Status::Unreachable);
    b.receive(12, elsewhere).unwrap();
    b.flush();
    a.send(13, 1, b.member(), Local::own(middle.address(), 64))
        .unwrap();
    assert_eq!(end(&mut a, 13).0, Status::Unreachable);
    // Unmapped memory, and invalid addresses, cannot be registered.
    assert_eq!(
        register(&mut b, middle.address(), PAGE),
        Err(Status::Unreachable)
    );
    assert_eq!(register(&mut b, own.address() + 8, 64), Err(Status::Offset));
    assert_eq!(
        register(&mut b, OWN_END - 64, 128),
        Err(Status::NotInSegment)
    );
    // Both NICs must still work.
    a.put(14, at(1, open, 64), &[1, 2, 3], false).unwrap();
    assert_eq!(end(&mut a, 14).0, Status::Done);
    assert_eq!(other.bytes()[64..67], [1, 2, 3]);
}

/// Variable that is set for a process of this test that acts as a program at a door; its value
/// selects the action.
const CHILD: &str = "PHITWIRE_TEST_OWN_MEMORY";

/// A test in name only: other tests run it as a program that opens its memory, and then executes
/// another program or runs until it is killed.
#[test]
fn a_program_with_open_memory() {
    let Ok(what) = std::env::var(CHILD) else {
        return;
    };
    let (what, door) = what.split_once(' ').unwrap();
    let mut nic = attach(&PathBuf::from(door));
    let memory = Pages::new(1024);
    memory.bytes().fill(1);
    let handle = register(&mut nic, memory.address(), memory.1).expect("it is there");
    fs::write(format!("{door}.handle"), handle.to_string()).unwrap();
    match what {
        "exec" => {
            wait_for(
                || fs::exists(format!("{door}.go")).unwrap_or(false),
                "that it may",
            );
            let error = std::os::unix::process::CommandExt::exec(Process::new("sleep").arg("1000"));
            panic!("{error}");
        }
        // The forked copy has the same memory and the same descriptors.
        "fork" => {
            // SAFETY: the copy only sleeps, and exits.
            match unsafe { nix::unistd::fork() }.unwrap() {
                nix::unistd::ForkResult::Child => {
                    thread::sleep(Duration::from_secs(3));
                    std::process::exit(i32::from(memory.bytes().iter().any(|&byte| byte != 1)));
                }
                nix::unistd::ForkResult::Parent { .. } => thread::sleep(Duration::from_secs(1000)),
            }
        }
        _ => thread::sleep(Duration::from_secs(1000)),
    }
}

fn child(lab: &Lab, what: &str) -> (Child, u16) {
    let door = door(lab, "nic1").display().to_string();
    let said = format!("{door}.handle");
    let _ = fs::remove_file(&said);
    let child = Process::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "own_memory::a_program_with_open_memory",
            "--nocapture",
        ])
        .env(CHILD, format!("{what} {door}"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let handle = || fs::read_to_string(&said).ok()?.parse().ok();
    wait_for(|| handle().is_some(), "its handle");
    (child, handle().unwrap())
}

#[test]
fn programs_that_end_or_become_others_while_they_are_written_to_harm_nobody() {
    let lab = pair();
    let mut a = attach(&door(&lab, "nic0"));
    let own = Pages::new(1024);
    own.bytes().fill(1);
    let whole = Local::own(own.address(), own.1 as u64);
    for (round, what) in ["exec", "stay", "stay", "fork"].into_iter().enumerate() {
        let (mut child, handle) = child(&lab, what);
        let (mut done, mut refused) = (0, 0);
        for n in 0..2000 {
            let to = at(1, handle, 0);
            match n % 2 {
                0 => a.block_put(n, to, whole, None).unwrap(),
                _ => a.block_get(n, to, whole).unwrap(),
            }
            if what != "exec" && n == 5 {
                // Kill the program during a transfer.
                a.flush();
                thread::sleep(Duration::from_millis(7 * round as u64));
                child.kill().unwrap();
            }
            let (status, _) = end(&mut a, n);
            done += u32::from(status == Status::Done);
            if what == "exec" && n == 5 {
                fs::write(format!("{}.go", door(&lab, "nic1").display()), "").unwrap();
            }
            let is_gone = matches!(status, Status::NoHandle | Status::OutOfBounds);
            assert!(is_gone || status == Status::Done, "{what}: {status}");
            refused += u32::from(is_gone);
            if is_gone && n > 20 {
                break;
            }
        }
        assert!(
            done > 0 && refused > 0,
            "{what}: {done} done, {refused} refused"
        );
        // A process that executed another program must keep running.
        if what == "exec" {
            thread::sleep(Duration::from_millis(100));
            assert!(child.try_wait().unwrap().is_none(), "it still runs");
        }
        let _ = child.kill();
        child.wait().unwrap();
    }
    let clients = || lab.ctl_json("nic1 stats")["door.clients"].as_u64();
    wait_for(|| clients() == Some(0), "that they are forgotten");
    assert!(own.bytes().iter().all(|&byte| byte == 1));
}
