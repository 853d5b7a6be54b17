//! Settings of all nodes and links of a network: common ones, and the machine's own.

use core::fmt::{self, Write as _};
use core::ops::RangeInclusive;

use super::fields::{Fields, Section};
use super::limits::MAX_DILATION;
use super::model::{Clock, Profile};
use crate::nic::MAX_MEMORY_BYTES;

/// Longest configurable time: one day, so that sums of picoseconds stay far below 2^64.
const DAY_MS: u64 = 86_400_000;

/// Settings of all nodes and links of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings<Own> {
    /// Depths and times of links.
    pub profile: Profile,
    /// The clock that drives the pipelines.
    pub clock: Clock,
    /// Retries charged to one lane after which it is decommissioned; 0: never.
    pub lane_retry_threshold: u32,
    /// Memory of each processor, in bytes.
    pub memory_bytes: u64,
    /// Milliseconds after which a request without a response times out.
    pub request_timeout_ms: u64,
    /// Milliseconds without progress after which an output virtual channel counts as dead. Chips
    /// keep it in emulated time, of which less passes under a paced clock.
    pub forward_progress_ms: u64,
    /// Milliseconds of silence after which a link between processes is taken down and its traffic
    /// dropped; 0: never.
    pub give_up_ms: u64,
    /// Milliseconds after which an unresponsive peer process is reported as silent: no frame was
    /// accepted in that time although the peer was probed. 0: never.
    pub silence_ms: u64,
    /// Maximum number of outstanding requests of one processor.
    pub outstanding: u32,
    /// Settings that only this machine has.
    pub own: Own,
}

/// Settings that only one machine has, and its defaults of common settings.
pub trait OwnSettings: Clone + fmt::Debug + Default + PartialEq {
    /// Default [`Settings::give_up_ms`].
    const GIVE_UP_MS: u64;
    /// Default [`Settings::outstanding`].
    const OUTSTANDING: u32;
    /// Largest number of outstanding requests of a processor.
    const MAX_OUTSTANDING: u32;
    /// Unit of memory in bytes: memory is a multiple of it.
    const MEMORY_UNIT_BYTES: u64 = 1;

    /// Reads the machine's own keys.
    fn read(&mut self, fields: &mut Fields, section: &mut Section<'_, '_>) {
        let _ = (fields, section);
    }

    /// Writes the machine's own keys, one per line.
    ///
    /// # Errors
    /// Errors of writing to `out`.
    fn write(&self, out: &mut String) -> fmt::Result {
        let _ = out;
        Ok(())
    }
}

impl<Own: OwnSettings> Default for Settings<Own> {
    fn default() -> Self {
        Self {
            profile: Profile::Live,
            clock: Clock::FreeRunning,
            // Corruption is normal on a lab's wires: by default no lane is decommissioned.
            lane_retry_threshold: 0,
            // Host memory is allocated on first write.
            memory_bytes: 1 << 30,
            // Both outlast a cable unplugged for ten seconds. The router times out before the
            // processor, so that the cause is reported before its effect.
            request_timeout_ms: 20_000,
            forward_progress_ms: 15_000,
            give_up_ms: Own::GIVE_UP_MS,
            // Eight times the longest retry timeout; loss alone does not silence a link that long.
            silence_ms: 2_000,
            outstanding: Own::OUTSTANDING,
            own: Own::default(),
        }
    }
}

impl<Own: OwnSettings> Settings<Own> {
    /// Reads section `[network]`.
    pub fn read(fields: &mut Fields, mut section: Section<'_, '_>) -> Self {
        let mut settings = Self::default();
        if let Some(value) = section.take("profile") {
            let profile = fields.word(value, &Profile::ALL);
            settings.profile = profile.unwrap_or(settings.profile);
        }
        settings.clock = clock(fields, &mut section);
        settings.own.read(fields, &mut section);
        let mut number = |key, range: RangeInclusive<u64>, into: &mut u64| {
            let value = section.take(key)?;
            *into = fields.integer(value, range).unwrap_or(*into);
            Some(value.span())
        };
        let mut threshold = u64::from(settings.lane_retry_threshold);
        let any = 0..=u64::from(u32::MAX);
        number("lane_retry_threshold", any, &mut threshold);
        settings.lane_retry_threshold = threshold as u32;
        let memory = 64..=MAX_MEMORY_BYTES;
        let memory = number("memory_bytes", memory, &mut settings.memory_bytes);
        for (key, least, into) in [
            ("request_timeout_ms", 1, &mut settings.request_timeout_ms),
            ("forward_progress_ms", 1, &mut settings.forward_progress_ms),
            ("give_up_ms", 0, &mut settings.give_up_ms),
            ("silence_ms", 0, &mut settings.silence_ms),
        ] {
            number(key, least..=DAY_MS, into);
        }
        let mut outstanding = u64::from(settings.outstanding);
        let most = u64::from(Own::MAX_OUTSTANDING);
        number("outstanding", 1..=most, &mut outstanding);
        settings.outstanding = outstanding as u32;
        let is_whole = settings.memory_bytes.is_multiple_of(Own::MEMORY_UNIT_BYTES);
        if let Some(span) = memory.filter(|_| !is_whole) {
            let unit = Own::MEMORY_UNIT_BYTES;
            let help = format!("write a multiple of {unit}, the size of a cache line");
            fields.bad(
                span,
                "the memory size is not a multiple of a cache line",
                help,
            );
        }
        fields.finish(section);
        settings
    }

    /// Writes section `[network]`, except some keys with default values.
    ///
    /// # Errors
    /// Errors of writing to `out`.
    pub fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "\n[network]\nprofile = \"{}\"", self.profile.name())?;
        match self.clock {
            Clock::FreeRunning => writeln!(out, "clock = \"free-running\"")?,
            Clock::Paced { dilation } => writeln!(out, "clock = \"paced\"\ndilation = {dilation}")?,
        }
        self.own.write(out)?;
        let usual = Self::default();
        // Omit "never" if it is the default.
        let gives_up = usual.give_up_ms > 0 || self.give_up_ms > 0;
        let is_silent = self.silence_ms != usual.silence_ms;
        let threshold = u64::from(self.lane_retry_threshold);
        for (key, value, is_written) in [
            ("lane_retry_threshold", threshold, true),
            ("memory_bytes", self.memory_bytes, true),
            ("request_timeout_ms", self.request_timeout_ms, true),
            ("forward_progress_ms", self.forward_progress_ms, true),
            ("give_up_ms", self.give_up_ms, gives_up),
            ("silence_ms", self.silence_ms, is_silent),
            ("outstanding", self.outstanding.into(), true),
        ] {
            if is_written {
                writeln!(out, "{key} = {value}")?;
            }
        }
        Ok(())
    }
}

impl<Own> Settings<Own> {
    /// Profile and clock, for tables.
    pub fn headline(&self) -> String {
        let clock = match self.clock {
            Clock::FreeRunning => String::from("free-running clock"),
            Clock::Paced { dilation } => format!("clock paced 1:{dilation}"),
        };
        format!("{} profile, {clock}", self.profile.name())
    }
}

fn clock(fields: &mut Fields, section: &mut Section<'_, '_>) -> Clock {
    let paced = section
        .take("clock")
        .and_then(|value| fields.word(value, &[("free-running", false), ("paced", true)]));
    let dilation = section.take("dilation");
    match (paced.unwrap_or(false), dilation) {
        (true, Some(value)) => {
            let dilation = fields.integer(value, 1..=u64::from(MAX_DILATION));
            Clock::Paced {
                dilation: dilation.unwrap_or(1) as u32,
            }
        }
        (true, None) => Clock::Paced { dilation: 1 },
        (false, Some(value)) => {
            fields.bad(
                value.span(),
                "only a paced clock has a dilation",
                "write `clock = \"paced\"` or remove this key",
            );
            Clock::FreeRunning
        }
        (false, None) => Clock::FreeRunning,
    }
}
