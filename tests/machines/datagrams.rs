//! Datagrams between NICs of every machine, through its routers.

use super::{blackwidow_network, dragonfly};
use phitwire::device::capability;
use phitwire::net::Network;
use phitwire::nic::{Datagrams, MOST_DATAGRAM_BYTES, RemotePuts};
use phitwire::node::Node as _;
use phitwire::rng::Rng;
use phitwire::sim::{LinkSpec, NodeId, World};
use phitwire::time::Duration;
use phitwire_t3e::topology::TorusSpec;

/// A world and the datagrams of its NICs.
struct Post<L> {
    world: World<L>,
    nics: Vec<NodeId>,
    ends: Vec<Datagrams>,
}

impl<L: Network> Post<L> {
    fn new(network: L) -> Self {
        let mut world = World::new(network, 7, LinkSpec::default()).expect("a world");
        assert!(world.bring_up(Duration::from_ms(200)), "links come up");
        let nics: Vec<_> = world.nics().collect();
        let mut post = Self {
            world,
            ends: Vec::new(),
            nics,
        };
        post.ends = (0..post.nics.len()).map(|nic| post.end(nic, nic)).collect();
        post
    }

    fn end(&mut self, nic: usize, nonce: usize) -> Datagrams {
        let count = self.nics.len() as u16;
        self.with(nic, |puts| {
            Datagrams::new(count, nonce as u64, puts).expect("there is room")
        })
    }

    fn with<R>(&mut self, nic: usize, act: impl FnOnce(&mut dyn RemotePuts) -> R) -> R {
        let id = self.nics[nic];
        self.world.fabric.command(id, |device, _| {
            act(device
                .need::<capability::Puts>()
                .expect("network interfaces put"))
        })
    }

    /// Advances time, and returns what arrived, and where.
    fn step(&mut self) -> Vec<(usize, Vec<u8>)> {
        self.world.fabric.run_for(Duration::from_us(2));
        let mut arrived = Vec::new();
        let mut room = vec![0; MOST_DATAGRAM_BYTES];
        for (nic, end) in self.ends.iter_mut().enumerate() {
            let id = self.nics[nic];
            self.world.fabric.command(id, |device, now| {
                let puts = device.need::<capability::Puts>().expect("it had them");
                end.poll(now, puts);
                while let Some(bytes) = end.receive(puts, &mut room) {
                    arrived.push((nic, room[..bytes].to_vec()));
                }
                if end.put(now, puts) {
                    device.advance(now);
                }
            });
        }
        arrived
    }
}

/// Checks that all NICs reach each other, with one killed and restarted in between.
fn all_arrive(network: impl Network) {
    let mut post = Post::new(network);
    let count = post.nics.len();
    let mut rng = Rng::new(11, 11);
    let lengths = [1, 8, 31, 64, 65, 1_500, 9_001, MOST_DATAGRAM_BYTES];
    for round in 0..2 {
        let mut sent: Vec<(usize, Vec<u8>)> = Vec::new();
        for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))) {
            for bytes in lengths {
                let mut data: Vec<u8> = (0..bytes).map(|_| rng.next_u64() as u8).collect();
                data[0] = from as u8;
                let now = post.world.fabric.now();
                post.ends[from]
                    .send(now, to as u16, &data)
                    .expect("it is taken");
                sent.push((to, data));
            }
        }
        let mut arrived = Vec::new();
        for _ in 0..20_000 {
            arrived.extend(post.step());
            if arrived.len() == sent.len() {
                break;
            }
        }
        assert_eq!(arrived.len(), sent.len(), "round {round}");
        // Expect them in sending order, per pair.
        let by_pair = |(to, data): &(usize, Vec<u8>)| (*to, data[0]);
        arrived.sort_by_key(by_pair);
        sent.sort_by_key(by_pair);
        let lengths = |all: &[(usize, Vec<u8>)]| -> Vec<_> {
            all.iter().map(|(to, data)| (*to, data.len())).collect()
        };
        assert_eq!(lengths(&arrived), lengths(&sent));
        assert!(arrived == sent, "bytes are as they were sent");
        post.world.restart(post.nics[0]).expect("it starts again");
        assert!(post.world.bring_up(Duration::from_ms(200)), "links come up");
        post.ends[0] = post.end(0, 4_711 + round);
        // Wait until no earlier request of the killed NIC can be in flight.
        post.world.fabric.run_for(Duration::from_ms(5_000));
    }
}

#[test]
fn blackwidow_carries_datagrams() {
    all_arrive(blackwidow_network());
}

#[test]
fn aries_carries_datagrams() {
    all_arrive(dragonfly());
}

#[test]
fn the_t3e_carries_datagrams() {
    all_arrive(TorusSpec::new("2x2x1".parse().expect("a shape")).torus());
}
