//! The examples, on NICs without a network.
#![allow(clippy::duplicate_mod, reason = "each example has what they share")]

mod fake;

#[path = "../examples/counter.rs"]
mod counter;
#[path = "../examples/halo.rs"]
mod halo;
#[path = "../examples/ping_pong.rs"]
mod ping_pong;
#[path = "../examples/put_get.rs"]
mod put_get;
#[path = "../examples/ring.rs"]
mod ring;
#[path = "../examples/stores.rs"]
mod stores;

use fake::Fake;

/// Runs a test for each number of programs.
macro_rules! example {
    ($name:ident) => {
        #[test]
        fn $name() {
            for count in [2, 3, 6] {
                let fake = Fake::start(count);
                let ended = $name::common::run(&fake.doors, $name::DATA_BYTES, $name::program);
                ended.unwrap_or_else(|error| panic!("{count} programs: {error}"));
            }
            // The example must detect corrupted data.
            let fake = Fake::start_wrong(2);
            let ended = $name::common::run(&fake.doors, $name::DATA_BYTES, $name::program);
            println!("{}", ended.expect_err("it checks what has moved"));
        }
    };
}

example!(put_get);
example!(counter);
example!(ring);
example!(halo);
example!(stores);
example!(ping_pong);

/// Programs exchange words three times, for every order in which the NIC takes their commands: none
/// may wait forever for another that is ahead.
#[test]
fn all_gather_ends_in_every_order() {
    const TALK: u64 = 0;
    fn program(this: &mut put_get::common::Program) -> put_get::common::Outcome {
        for round in 0..3 {
            let words = this.all_gather(TALK, round * 10 + this.rank as u64)?;
            let right = (0..words.len() as u64).map(|rank| round * 10 + rank);
            assert!(words.iter().copied().eq(right), "{words:?}");
        }
        Ok(())
    }
    for seed in 0..40 {
        let count = [3, 4, 6][seed as usize % 3];
        let fake = Fake::start_in_order(count, seed);
        let ended = put_get::common::run_leaving(&fake.doors, 1 << 16, program);
        ended.unwrap_or_else(|error| panic!("{count} programs, order {seed}: {error}"));
    }
}

/// Canary for the test above: programs that wait for each other must fail.
#[test]
fn programs_that_jam_are_noticed() {
    let fake = Fake::start_in_order(2, 1);
    // Each program waits for the other's word before it sends its own.
    let ended = put_get::common::run_leaving(&fake.doors, 1 << 16, |this| {
        let part = phitwire_client::door::Local {
            offset: 0,
            bytes: 64,
        };
        this.nic.receive(1, part)?;
        this.received(1).map(drop)
    });
    let error = ended
        .expect_err("each program waits for the other")
        .to_string();
    assert!(error.contains("gone"), "{error}");
}
