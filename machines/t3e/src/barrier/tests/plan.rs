//! The actions of a unit's processors, round by round. A round ends with a barrier.

use phitwire::rng::Rng;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Joins the barrier.
    Join,
    /// Signals the eureka, then joins.
    Trigger,
    /// Signals the eureka and joins, in one operation.
    TriggerAndJoin,
    /// Waits for the eureka, then joins.
    Watch,
}

/// A unit's participants and their roles.
#[derive(Clone, Debug)]
pub struct Plan {
    pub participants: Vec<u32>,
    pub rounds: Vec<Vec<Role>>,
}

impl Plan {
    /// A plan with the same roles in every round.
    pub fn always(participants: &[u32], roles: &[Role], rounds: usize) -> Self {
        Self {
            participants: participants.to_vec(),
            rounds: vec![roles.to_vec(); rounds],
        }
    }

    /// A barrier in two of five rounds, otherwise a eureka, which several processors may trigger
    /// and for which some do not wait.
    pub fn random(participants: Vec<u32>, rounds: usize, rng: &mut Rng) -> Self {
        let round = |_| {
            let eureka = rng.chance(3, 5);
            let eager = rng.below(4);
            let mut role = |_| match rng.below(8) {
                _ if !eureka => Role::Join,
                dice if dice < eager => Role::Trigger,
                dice if dice < 2 * eager => Role::TriggerAndJoin,
                7 => Role::Join,
                _ => Role::Watch,
            };
            let mut roles: Vec<Role> = (0..participants.len()).map(&mut role).collect();
            if eureka {
                let first = rng.below(roles.len() as u64) as usize;
                roles[first] = Role::Trigger;
            }
            roles
        };
        let rounds = (0..rounds).map(round).collect();
        Self {
            participants,
            rounds,
        }
    }

    pub fn has_eureka(&self, round: usize) -> bool {
        let triggers = |role: &Role| matches!(role, Role::Trigger | Role::TriggerAndJoin);
        self.rounds[round].iter().any(triggers)
    }

    pub fn eurekas(&self) -> usize {
        (0..self.rounds.len())
            .filter(|&round| self.has_eureka(round))
            .count()
    }
}
