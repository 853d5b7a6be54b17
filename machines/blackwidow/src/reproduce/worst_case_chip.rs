//! A whole YARC under worst-case traffic (BlackWidow sec. 7.6). All packets that arrive by the
//! ports of one row leave by the ports of one column, so that they "turn the corner" at a single
//! subswitch. If p ports of the row send to p of the column, the other inputs and outputs of the
//! 8x8 subswitch are idle, and it acts as a p x p subswitch.

use phitwire_framing::yarc::crc16::PacketCrc;
use phitwire_framing::yarc::packet::{EopStatus, Head, Vc, second_phit};
use phitwire_framing::yarc::phit::{Phit, PhitKind};

use super::subswitch::Traffic;
use crate::route::registers::ChipRegisters;
use crate::router::{Core, Ports};
use phitwire::rng::Rng;

const ROW: usize = 3;
const COLUMN: usize = 5;
/// Number of tiles of a row or column, which is the largest degree.
pub(super) const TILES: usize = 8;
/// Minimum fill of an input queue in phits: more than the later stages take between refills.
const QUEUE_PHITS: usize = 64;

/// Links that always have input and accept all output.
struct SaturatedRow {
    queues: [std::collections::VecDeque<Phit>; TILES],
    delivered: u64,
    degree: usize,
    traffic: Traffic,
    rng: Rng,
}

impl SaturatedRow {
    /// Fills the queue of a row port with packets to ports of the column, and returns the number of
    /// phits added.
    fn refill(&mut self, lane: usize) -> u32 {
        let before = self.queues[lane].len();
        while self.queues[lane].len() < QUEUE_PHITS {
            let (phits, row) = self.traffic.next(lane, self.degree, &mut self.rng);
            let packet = packet((row * TILES + COLUMN) as u16, phits as usize);
            self.queues[lane].extend(packet);
        }
        (self.queues[lane].len() - before) as u32
    }

    fn queue(&self, port: usize, vc: usize) -> Option<&std::collections::VecDeque<Phit>> {
        (port / TILES == ROW && vc == 0).then(|| &self.queues[port % TILES])
    }
}

impl Ports for SaturatedRow {
    fn front(&self, port: usize, vc: usize) -> Option<Phit> {
        self.queue(port, vc)?.front().copied()
    }
    fn second(&self, port: usize, vc: usize) -> Option<Phit> {
        self.queue(port, vc)?.get(1).copied()
    }
    fn pop(&mut self, port: usize, vc: usize) -> Option<Phit> {
        self.queue(port, vc)?;
        self.queues[port % TILES].pop_front()
    }
    fn can_begin(&self, _: usize, _: usize) -> bool {
        true
    }
    fn is_active(&self, _: usize) -> bool {
        true
    }
    fn push(&mut self, port: usize, _: Phit) {
        assert_eq!(port % TILES, COLUMN, "all traffic leaves by one column");
        self.delivered += 1;
    }
}

/// An undamaged deterministic request of at least 4 phits.
fn packet(dest: u16, phits: usize) -> impl Iterator<Item = Phit> {
    let head = Head {
        dest,
        vc: Vc::Request,
        hashed: false,
        adaptive: false,
        source_routed: false,
        payload: 0,
    };
    let mut crc = PacketCrc::new();
    let mut packet = vec![
        Phit::new(PhitKind::Head, head.emit()),
        Phit::new(PhitKind::Body, second_phit(0, 0)),
    ];
    packet.resize(phits - 1, Phit::new(PhitKind::Body, 0));
    packet.iter().for_each(|phit| crc.update(phit.content()));
    packet.push(Phit::new(PhitKind::Eop, crc.eop(EopStatus::Healthy)));
    packet.into_iter()
}

/// Throughput in phits per cycle and output of the column, measured over `cycles`, when `degree`
/// ports of the row send to as many ports of the column.
///
/// # Panics
/// If `degree` exceeds the row's ports, or packets are shorter than 4 phits.
pub(super) fn throughput(degree: usize, traffic: Traffic, cycles: u32, rng: Rng) -> f64 {
    assert!((1..=TILES).contains(&degree), "degree {degree}");
    assert!(
        traffic.shortest >= 4,
        "the chip has no packets shorter than 4 phits"
    );
    let mut core = Core::new(ChipRegisters::flat());
    let mut links = SaturatedRow {
        queues: Default::default(),
        delivered: 0,
        degree,
        traffic,
        rng,
    };
    let mut run = |cycles: u32| {
        let before = links.delivered;
        for _ in 0..cycles {
            for lane in 0..degree {
                match links.refill(lane) {
                    0 => {}
                    phits => core.arrived(ROW * TILES + lane, 0, phits),
                }
            }
            core.run_until(core.cycle() + 1, &mut links);
        }
        links.delivered - before
    };
    run(1_000);
    run(cycles) as f64 / (f64::from(cycles) * degree as f64)
}
