//! Automatic progress: a thread of the domain, which sleeps until a NIC has something.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle, yield_now};
use std::time::Duration;

use nix::sys::signal::{SigSet, SigmaskHow};

use crate::domain::{Awaited, Domain};
use crate::wait::WaitObject;

/// Longest sleep; the domain's alarm rings earlier.
const LONGEST: Duration = Duration::from_secs(60);

/// Handle of the thread. Dropping it ends the thread.
#[derive(Debug)]
pub struct Progress {
    domain: Arc<Domain>,
    is_over: Arc<AtomicBool>,
    object: Arc<WaitObject>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Starts the thread. The program's signals do not reach it.
    ///
    /// # Errors
    /// Fails if no threads or no descriptors are left.
    pub fn start(domain: &Arc<Domain>) -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let object = Arc::new(domain.wait_object()?);
        let own = (domain.clone(), is_over.clone(), object.clone());
        let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let thread = Builder::new()
            .name("phitwire".into())
            .spawn(move || run(&own.0, &own.1, &own.2));
        before.thread_set_mask()?;
        Ok(Self {
            domain: domain.clone(),
            is_over,
            object,
            thread: Some(thread?),
        })
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.object.wake();
        if let Some(thread) = self.thread.take() {
            // If it has panicked, the domain's lock is poisoned, and all calls report that.
            let _ = thread.join();
        }
        if let Some(mut state) = self.domain.lock() {
            state.end_waits(Awaited::Work);
        }
    }
}

fn run(domain: &Domain, is_over: &AtomicBool, object: &Arc<WaitObject>) {
    loop {
        let Some(mut state) = domain.lock() else {
            return;
        };
        // In a virtual lab, time stands still while the program computes: its calls make all
        // progress.
        let sleeps = state.virtual_time().is_some() || state.prepare(Awaited::Work, object);
        drop(state);
        // `prepare` may have cleared the wake by `drop`, so check after it.
        if is_over.load(Ordering::SeqCst) {
            return;
        }
        match sleeps {
            true => object.sleep(LONGEST),
            false => yield_now(),
        }
    }
}
