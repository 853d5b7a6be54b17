use phitwire::rng::Rng;

/// A permutation: member `i` sends to `destinations()[i]`, and every member receives from exactly
/// one.
#[derive(Clone, Debug)]
pub struct Permutation {
    destinations: Vec<u16>,
}

impl Permutation {
    /// The identity, until [`shuffle`](Self::shuffle) is called.
    ///
    /// # Panics
    /// If there are fewer than two members, or more than 65,536.
    pub fn new(members: u32) -> Self {
        assert!((2..=1 << 16).contains(&members), "{members} members");
        Self {
            destinations: (0..members).map(|i| i as u16).collect(),
        }
    }

    /// Draws a uniformly random permutation. On average one member sends to itself.
    pub fn shuffle(&mut self, rng: &mut Rng) {
        // Start at the identity, so that the result depends only on the generator.
        (0..)
            .zip(&mut self.destinations)
            .for_each(|(i, to)| *to = i);
        for i in (1..self.destinations.len()).rev() {
            let other = rng.below(i as u64 + 1) as usize;
            self.destinations.swap(i, other);
        }
    }

    pub fn destinations(&self) -> &[u16] {
        &self.destinations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_processor_sends_and_receives_once() {
        let mut rng = Rng::new(1, 2);
        for members in [2, 3, 64, 1000] {
            let mut permutation = Permutation::new(members);
            for _ in 0..100 {
                permutation.shuffle(&mut rng);
                let mut sorted = permutation.destinations().to_vec();
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq((0..members).map(|i| i as u16)));
            }
        }
    }

    #[test]
    fn all_are_equally_likely() {
        let mut rng = Rng::new(5, 0);
        let mut permutation = Permutation::new(4);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..24_000 {
            permutation.shuffle(&mut rng);
            *seen
                .entry(permutation.destinations().to_vec())
                .or_insert(0u32) += 1;
        }
        // 1,000 are expected for each of the 24, with a standard deviation of 31.
        assert_eq!(seen.len(), 24);
        assert!(
            seen.values().all(|count| count.abs_diff(1_000) < 160),
            "{seen:?}"
        );
    }
}
