//! Programs that ask for more than their share.

use super::*;

/// A program posts as many sends and puts as it can; nothing at `processors` accepts them.
fn floods(lab: &mut Lab<impl phitwire::net::Network>, greedy: usize, processors: &[u16]) {
    let whole = Local {
        offset: 0,
        bytes: BYTES,
    };
    for name in 0..1_024 {
        let to = Remote {
            processor: processors[name as usize % processors.len()],
            handle: 77,
            offset: 0,
        };
        lab.ask(
            greedy,
            name,
            Request::Send {
                processor: to.processor,
                member: 7,
                from: whole,
            },
        );
        let data = &[1; 64];
        let (event, ordered) = (true, false);
        lab.ask(
            greedy,
            name,
            Request::Put {
                to,
                data,
                event,
                ordered,
            },
        );
    }
}

#[test]
fn a_program_that_asks_for_all_leaves_others_their_share() {
    let mut lab = Lab::new(dragonfly());
    let last = lab.nics.len() - 1;
    let greedy = lab.attach(0, JOB + 1, ANY_MEMBER).unwrap();
    let modest = lab.attach(0, JOB, ANY_MEMBER).unwrap();
    let peer = lab.attach(last, JOB, ANY_MEMBER).unwrap();
    let processors: Vec<u16> = (0..=last).map(|nic| processor_of(&mut lab, nic)).collect();
    let handle = lab.register(peer, 0, BYTES);
    for round in 0..5 {
        // Its puts get replies while it continues, but it never holds more than a third.
        floods(&mut lab, greedy, &processors);
        let at = Remote {
            processor: processors[last],
            handle,
            offset: 0,
        };
        let part = Local {
            offset: 0,
            bytes: 1_000,
        };
        let put = Request::Put {
            to: at,
            data: &[1; 64],
            event: false,
            ordered: false,
        };
        assert_eq!(lab.ask(modest, 10 * round, put), Taken::UnderWay);
        let (event, fence) = (None, true);
        let block = Request::BlockPut {
            to: at,
            from: part,
            event,
            fence,
        };
        assert_eq!(lab.ask(modest, 10 * round + 1, block), Taken::UnderWay);
        lab.ask(peer, 7, Request::Receive { into: part });
        let send = Request::Send {
            processor: at.processor,
            member: 0,
            from: part,
        };
        assert_eq!(lab.ask(modest, 10 * round + 2, send), Taken::UnderWay);
        // A fence waits only for the program's own transfers.
        assert_eq!(lab.ask(modest, 10 * round + 3, block), Taken::Later);
        lab.run(Duration::from_ms(2));
        for name in 10 * round..10 * round + 3 {
            assert_eq!(lab.status(modest, name), Some(Status::Done), "{name}");
        }
    }
}
