use phitwire_framing::yarc::packet::{Head, Vc};

use super::*;
use crate::router::harness::{Bench, cut, head, packet, up_chip};

/// BlackWidow sec. 5.1 and 7.8.3: the column is chosen by available space, so a head that found no
/// column with space takes the first one that gets some.
#[test]
fn an_adaptive_head_takes_the_first_column_with_a_free_slot() {
    const COLUMN: u64 = 0x0101_0101_0101_0101;
    let adaptive = Head {
        adaptive: true,
        ..head(100, Vc::Response)
    };
    for column in 0..8 {
        let (mut core, mut bench) = (Core::new(up_chip()), Bench::default());
        bench.blocked[1] = u64::MAX;
        // Two phits each, so that the buffers are full of complete packets.
        for id in 0..400 {
            bench.inject(&mut core, 3, &cut(&packet(adaptive, 0, id, 4), 1));
        }
        bench.drain(&mut core);
        assert!(bench.queues[3][1][0].is_head(), "a head waits");
        bench.blocked[1] = !(COLUMN << column);
        (0..64).for_each(|port| core.output_changed(port));
        bench.drain(&mut core);
        let left = bench.queues[3][1].len();
        assert_eq!(left, 0, "phits wait although column {column} is free");
    }
}
