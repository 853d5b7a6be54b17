//! SIGINT, SIGTERM and SIGHUP as a flag, with a descriptor that wakes the event loop.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::eventfd::{EfdFlags, EventFd};

/// A flag that requests the end of the process.
#[derive(Clone, Debug)]
pub struct Stop {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    requests: AtomicU32,
    wake: EventFd,
}

impl Stop {
    /// A flag that is not raised.
    ///
    /// # Errors
    /// When the kernel has no descriptor left.
    pub fn new() -> io::Result<Self> {
        let wake = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(Self {
            shared: Arc::new(Shared {
                requests: AtomicU32::new(0),
                wake,
            }),
        })
    }

    /// A flag that SIGINT, SIGTERM and SIGHUP raise. Call it once per process.
    ///
    /// # Errors
    /// As for [`new`](Self::new) and [`on_signals`](Self::on_signals).
    pub fn at_signals() -> Result<Self, ctrlc::Error> {
        let this = Self::new().map_err(ctrlc::Error::System)?;
        this.on_signals()?;
        Ok(this)
    }

    /// Makes SIGINT, SIGTERM and SIGHUP raise the flag. Call it once per process.
    ///
    /// # Errors
    /// When a handler cannot be installed, or one is already.
    pub fn on_signals(&self) -> Result<(), ctrlc::Error> {
        let this = self.clone();
        ctrlc::set_handler(move || this.request())
    }

    /// Raises the flag.
    pub fn request(&self) {
        self.shared.requests.fetch_add(1, Ordering::SeqCst);
        // Fails only when the descriptor is already readable, as intended.
        let _ = self.shared.wake.write(1);
    }

    /// How often the flag was raised. After one request the process drains; after more it ends at
    /// once.
    pub fn requests(&self) -> u32 {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// Descriptor that is readable when the flag was raised after the last
    /// [`acknowledge`](Self::acknowledge).
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.shared.wake.as_fd()
    }

    /// Makes the descriptor unreadable until the next request.
    pub fn acknowledge(&self) {
        let _ = self.shared.wake.read();
    }
}
