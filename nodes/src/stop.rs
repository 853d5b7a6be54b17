//! SIGINT and SIGTERM: a flag, and a descriptor that wakes the event loop.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::eventfd::{EfdFlags, EventFd};

/// Tells the event loop that the process shall end.
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
    /// A flag that nothing has raised.
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

    /// A flag that SIGINT, SIGTERM and SIGHUP raise. Once per process.
    ///
    /// # Errors
    /// As [`new`](Self::new) and [`on_signals`](Self::on_signals).
    pub fn at_signals() -> Result<Self, ctrlc::Error> {
        let this = Self::new().map_err(ctrlc::Error::System)?;
        this.on_signals()?;
        Ok(this)
    }

    /// Raises the flag at SIGINT, SIGTERM and SIGHUP. Once per process.
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
        // It fails only when it is readable already, which is what is wanted.
        let _ = self.shared.wake.write(1);
    }

    /// How often the flag was raised: once means end in order, more means at once.
    pub fn requests(&self) -> u32 {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// Readable when the flag was raised since [`acknowledge`](Self::acknowledge).
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.shared.wake.as_fd()
    }

    /// Makes the descriptor unreadable until the next request.
    pub fn acknowledge(&self) {
        let _ = self.shared.wake.read();
    }
}
