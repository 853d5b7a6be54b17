//! Collective operations of local programs, through a dragonfly.

use phitwire_framing::door::{CollectiveRequest, Completion, Local, Reduction, Request, Status};

use super::dragonfly;
use super::local::{JOB, Lab, processor_of};
use phitwire::net::Network;
use phitwire::nic::local::Taken;
use phitwire::nic::{Collective, CollectiveSpec};
use phitwire::time::Duration;

const ENGINE: u8 = 2;
const PATIENCE_MS: u32 = 5;

/// A program at each of the first NICs, and the numbers of these NICs.
fn programs<L: Network>(lab: &mut Lab<L>, count: usize, job: u64) -> (Vec<usize>, Vec<u16>) {
    let programs = (0..count).map(|nic| lab.attach(nic, job, 0).expect("there is room"));
    let programs = programs.collect();
    let processors = (0..count).map(|nic| processor_of(lab, nic)).collect();
    (programs, processors)
}

fn set_up<L>(lab: &mut Lab<L>, who: usize, rank: u16, all: &[u16], epoch: u32) -> Taken
where
    L: Network,
{
    let list: Vec<u8> = all.iter().flat_map(|number| number.to_le_bytes()).collect();
    lab.programs[who].shared.fill(64, &list);
    let request = CollectiveRequest::SetUp {
        engine: ENGINE,
        rank,
        branching: 2,
        epoch,
        patience_ms: PATIENCE_MS,
        processors: Local {
            offset: 64,
            bytes: list.len() as u64,
        },
    };
    lab.ask(who, 1, Request::Collective(request))
}

fn set_up_all<L: Network>(lab: &mut Lab<L>, programs: &[usize], all: &[u16], epoch: u32) {
    for (&program, rank) in programs.iter().zip(0..) {
        let taken = set_up(lab, program, rank, all, epoch);
        assert_eq!(taken, Taken::Ended(Status::Done, 0), "rank {rank}");
    }
}

fn join<L: Network>(lab: &mut Lab<L>, who: usize, name: u64, op: Reduction, word: u64) -> Taken {
    let request = CollectiveRequest::Join {
        engine: ENGINE,
        op,
        word,
        location: word + 100,
    };
    lab.ask(who, name, Request::Collective(request))
}

/// The completion of a program's command `name`: status, word and location.
fn ended<L>(lab: &Lab<L>, who: usize, name: u64) -> Option<(Status, u64, u64)> {
    lab.programs[who].got.iter().find_map(|got| match *got {
        Completion::End {
            name: is,
            status,
            word,
            bytes,
        } if is == name => Some((status, word, bytes)),
        _ => None,
    })
}

#[test]
fn all_get_what_all_have_given() {
    let mut lab = Lab::new(dragonfly());
    let (programs, all) = programs(&mut lab, 4, JOB);
    set_up_all(&mut lab, &programs, &all, 1);
    let expected = [
        (Reduction::SumI64, 6, 0),
        (Reduction::Barrier, 0, 0),
        (Reduction::MaxI64, 3, 103),
        (Reduction::OrI32, 3, 0),
    ];
    for ((op, word, location), name) in expected.into_iter().zip(10..) {
        for (&program, rank) in programs.iter().zip(0..) {
            // Early programs wait for the last.
            lab.run(Duration::from_us(50));
            assert_eq!(ended(&lab, programs[0], name), None);
            assert_eq!(join(&mut lab, program, name, op, rank), Taken::UnderWay);
        }
        lab.run(Duration::from_ms(1));
        for &program in &programs {
            let found = ended(&lab, program, name);
            assert_eq!(found, Some((Status::Done, word, location)), "{op:?}");
        }
    }
    let leave = Request::Collective(CollectiveRequest::Leave { engine: ENGINE });
    assert_eq!(
        lab.ask(programs[1], 2, leave),
        Taken::Ended(Status::Done, 0)
    );
    let again = join(&mut lab, programs[1], 3, Reduction::Barrier, 0);
    assert_eq!(again, Taken::refused(Status::NotYours));
}

#[test]
fn a_member_that_dies_midway_delays_no_other() {
    let mut lab = Lab::new(dragonfly());
    let (mut programs, all) = programs(&mut lab, 4, JOB);
    let barrier = Reduction::Barrier;
    for (round, dies) in [3, 1, 0, 2].into_iter().enumerate() {
        let name = 10 + round as u64;
        set_up_all(&mut lab, &programs, &all, round as u32 + 1);
        // While an operation is pending, all learn at once which program left.
        for &program in &programs[..3] {
            join(&mut lab, program, name, barrier, 0);
        }
        if dies == 3 {
            join(&mut lab, programs[3], name, Reduction::SumI64, 0);
            lab.run(Duration::from_ms(1));
            let found = ended(&lab, programs[0], name);
            assert_eq!(found, Some((Status::Mismatch, 0, 0)));
            join(&mut lab, programs[3], name + 100, barrier, 0);
        }
        lab.run(Duration::from_us(100));
        lab.detach(programs[dies]);
        lab.run(Duration::from_ms(1));
        if dies != 3 {
            for n in (0..3).filter(|&n| n != dies) {
                let who = u64::from(all[dies]);
                let found = ended(&lab, programs[n], name);
                assert_eq!(found, Some((Status::Left, who, 0)), "{n}, without {dies}");
            }
        }
        // The slot of the departed program is free again.
        programs[dies] = lab.attach(dies, JOB, 0).expect("it has gone");
        lab.run(Duration::from_ms(20));
    }
    set_up_all(&mut lab, &programs, &all, 9);
    for &program in &programs {
        join(&mut lab, program, 50, Reduction::SumI32, 2);
    }
    lab.run(Duration::from_ms(1));
    assert_eq!(ended(&lab, programs[3], 50), Some((Status::Done, 8, 0)));
}

#[test]
fn a_result_reaches_all_although_a_program_ends_when_it_has_it() {
    let mut lab = Lab::new(dragonfly());
    let (programs, all) = programs(&mut lab, 4, JOB);
    set_up_all(&mut lab, &programs, &all, 1);
    for &program in &programs {
        join(&mut lab, program, 10, Reduction::SumI64, 1);
    }
    // Use steps so short that the root has its result before the others.
    let mut steps = 0;
    while ended(&lab, programs[0], 10).is_none() {
        lab.run(Duration::from_us(10));
        steps += 1;
        assert!(steps < 1000, "it ends");
    }
    lab.detach(programs[0]);
    lab.run(Duration::from_ms(1));
    for &program in &programs[1..] {
        assert_eq!(ended(&lab, program, 10), Some((Status::Done, 4, 0)));
    }
    // The others miss the departed program in the next operation.
    for &program in &programs[1..] {
        join(&mut lab, program, 11, Reduction::Barrier, 0);
    }
    lab.run(Duration::from_ms(4 * u64::from(PATIENCE_MS)));
    for &program in &programs[1..] {
        let (status, who, _) = ended(&lab, program, 11).expect("nobody waits for ever");
        assert_eq!(status, Status::Absent);
        // The first to time out waited for the root, or for a neighbour that did.
        assert!(all[..2].contains(&(who as u16)), "{who}");
    }
}

#[test]
fn engines_belong_to_one_program_and_one_job() {
    let mut lab = Lab::new(dragonfly());
    let (ours, all) = programs(&mut lab, 2, JOB);
    let (theirs, _) = programs(&mut lab, 2, JOB + 1);
    let refused = |status| Taken::Ended(status, 0);
    assert_eq!(set_up(&mut lab, ours[0], 0, &all, 1), refused(Status::Done));
    assert_eq!(
        set_up(&mut lab, theirs[0], 0, &all, 1),
        refused(Status::Busy)
    );
    let joined = join(&mut lab, theirs[0], 2, Reduction::Barrier, 0);
    assert_eq!(joined, refused(Status::NotYours));
    let leave = Request::Collective(CollectiveRequest::Leave { engine: ENGINE });
    assert_eq!(lab.ask(theirs[0], 3, leave), refused(Status::NotYours));
    // A run of the NIC itself cannot take it either.
    let nics = all.iter().map(|&number| number.into()).collect();
    let spec = CollectiveSpec {
        nics,
        engine: ENGINE,
        op: Collective::Barrier,
        count: 1,
        ..CollectiveSpec::default()
    };
    let id = lab.nics[0];
    let begun = lab.world.fabric.command(id, |device, now| {
        let unit = device.collectives_mut().expect("it has engines");
        unit.start(now, spec)
    });
    begun.expect_err("a program has it");
    // At the other NIC the engine belongs to another job: neither job receives from the other.
    assert_eq!(
        set_up(&mut lab, theirs[1], 1, &all, 1),
        refused(Status::Done)
    );
    join(&mut lab, ours[0], 4, Reduction::SumI64, 7);
    join(&mut lab, theirs[1], 4, Reduction::SumI64, 9);
    lab.run(Duration::from_ms(4 * u64::from(PATIENCE_MS)));
    for program in [ours[0], theirs[1]] {
        let (status, ..) = ended(&lab, program, 4).expect("nobody waits for ever");
        assert_ne!(status, Status::Done);
    }
    // Reject invalid trees.
    let (twice, strangers) = ([all[0], all[0]], [all[1], all[1]]);
    assert_eq!(
        set_up(&mut lab, ours[0], 0, &twice, 2),
        refused(Status::Length)
    );
    assert_eq!(
        set_up(&mut lab, ours[0], 0, &strangers, 2),
        refused(Status::NoProcessor)
    );
    assert_eq!(
        set_up(&mut lab, ours[0], 0, &[], 2),
        refused(Status::Length)
    );
    assert_eq!(
        set_up(&mut lab, ours[0], 7, &all, 2),
        refused(Status::NoProcessor)
    );
    let nobody = [all[0], u16::MAX];
    assert_eq!(
        set_up(&mut lab, ours[0], 0, &nobody, 2),
        refused(Status::NoProcessor)
    );
}
