//! Mailboxes between the parts of a network that run in this process.

use std::sync::{Mutex, MutexGuard};

/// Two boxes for every pair of parts. They alternate, so that one barrier per window is enough: a
/// part already in the next window writes into the other box.
pub(super) struct Mailboxes<M> {
    boxes: Vec<[Mutex<M>; 2]>,
    parts: usize,
}

impl<M: Default> Mailboxes<M> {
    pub(super) fn new(parts: usize) -> Self {
        let pair = || [M::default(), M::default()].map(Mutex::new);
        Self {
            boxes: (0..parts * parts).map(|_| pair()).collect(),
            parts,
        }
    }

    /// The box for the mail of `window`.
    pub(super) fn at(&self, from: usize, to: usize, window: u64) -> MutexGuard<'_, M> {
        debug_assert!(from < self.parts && to < self.parts, "parts by number");
        self.boxes[from * self.parts + to][(window % 2) as usize]
            .lock()
            .expect("no thread panics while holding the lock")
    }

    /// All parts but `own`.
    pub(super) fn others(&self, own: usize) -> impl Iterator<Item = usize> + use<M> {
        (0..self.parts).filter(move |&other| other != own)
    }
}
