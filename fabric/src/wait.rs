//! Descriptors on which callers sleep until there may be progress.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use phitwire_client::Nic;
use phitwire_client::descriptors::Event;

/// An epoll descriptor that is readable when one of these is.
fn group(all: &[BorrowedFd<'_>]) -> io::Result<Epoll> {
    let group = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    all.iter().try_for_each(|fd| add(&group, fd))?;
    Ok(group)
}

fn add(group: &Epoll, fd: impl AsFd) -> io::Result<()> {
    Ok(group.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, 0))?)
}

/// Sleeps until one of the descriptors is readable, for `most` at most.
pub fn sleep<const N: usize>(fds: [BorrowedFd<'_>; N], most: Duration) {
    let mut all = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN));
    // After an error, as after a signal, the caller checks again.
    let _ = ppoll(&mut all, Some(TimeSpec::from_duration(most)), None);
}

/// Wakes the sleepers of a domain when a NIC has woken the program or is gone, or a timer expires.
#[derive(Debug)]
pub struct Alarm {
    group: Epoll,
    timer: TimerFd,
}

impl Alarm {
    /// An alarm without NICs.
    ///
    /// # Errors
    /// Fails if no descriptor is free.
    pub fn new() -> io::Result<Self> {
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        let group = group(&[timer.as_fd()])?;
        Ok(Self { group, timer })
    }

    pub fn watch(&self, nic: &Nic) -> io::Result<()> {
        add(&self.group, nic.fd())?;
        add(&self.group, nic.socket())
    }

    /// Ends [`Self::watch`]. The NIC's process also holds the descriptors, so that closing them
    /// would not suffice.
    pub fn forget(&self, nic: &Nic) {
        for fd in [nic.fd(), nic.socket()] {
            // The only failure is that it has been forgotten already.
            let _ = self.group.delete(fd);
        }
    }

    /// Number of watched descriptors.
    #[cfg(test)]
    pub fn watched(&self) -> usize {
        use std::os::fd::AsRawFd;
        let info = format!("/proc/self/fdinfo/{}", self.group.0.as_raw_fd());
        let info = std::fs::read_to_string(info).expect("it is open");
        info.lines().filter(|line| line.starts_with("tfd:")).count()
    }

    /// Makes the alarm ring once after this time, too.
    pub fn ring_after(&self, time: Duration) {
        let after = Expiration::OneShot(TimeSpec::from_duration(time));
        let set = self.timer.set(after, TimerSetTimeFlags::empty());
        debug_assert!(set.is_ok(), "a valid time");
    }

    /// Cancels [`Self::ring_after`].
    pub fn ring_no_more(&self) {
        let unset = self.timer.unset();
        debug_assert!(unset.is_ok(), "a timer");
    }

    /// Sleeps until the alarm rings, for `most` at most.
    pub fn sleep(&self, most: Duration) {
        sleep([self.group.0.as_fd()], most);
    }
}

/// The wait object of a completion queue or a counter: readable when it was woken, or when the
/// alarm of its domain rings.
#[derive(Debug)]
pub struct WaitObject {
    event: Event,
    group: Epoll,
}

impl WaitObject {
    pub fn new(alarm: &Alarm) -> io::Result<Self> {
        let event = Event::new()?;
        let group = group(&[event.as_fd(), alarm.group.0.as_fd()])?;
        Ok(Self { event, group })
    }

    pub fn wake(&self) {
        self.event.wake();
    }

    pub fn clear(&self) {
        self.event.clear();
    }

    /// Sleeps until it is readable, for `most` at most.
    pub fn sleep(&self, most: Duration) {
        sleep([self.as_fd()], most);
    }
}

impl AsFd for WaitObject {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.group.0.as_fd()
    }
}
