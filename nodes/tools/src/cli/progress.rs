//! Progress of a long command on standard error: a bar on a terminal, otherwise a line every ten
//! seconds.

use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use phitwire_nodes::output;

/// Interval of lines, and delay of the first one; shorter commands print none.
const INTERVAL: Duration = Duration::from_secs(10);
/// Interval of redraws while nothing changes, which keep the bar's clock running.
const TICK: Duration = Duration::from_millis(500);

/// Progress of a command, from [`new`](Self::new) until it is dropped.
pub struct Shown {
    bar: ProgressBar,
    state: Arc<Mutex<String>>,
    lines: Option<Lines>,
}

impl Shown {
    /// Shows the progress of `command`; `template` is an indicatif template for the bar.
    pub fn new(command: &'static str, template: &str) -> Self {
        let state = Arc::default();
        if !std::io::stderr().is_terminal() {
            return Self {
                bar: ProgressBar::hidden(),
                lines: Some(Lines::new(command, Arc::clone(&state), INTERVAL, |line| {
                    output::print_error(line);
                })),
                state,
            };
        }
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template(template);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(TICK);
        Self {
            bar,
            state,
            lines: None,
        }
    }

    /// Shows the current step, and how much of it is done.
    pub fn show(&self, doing: &str, done: u64, of: u64, unit: &str) {
        self.bar.set_message(doing.to_owned());
        self.bar.set_length(of);
        self.bar.set_position(done);
        if let (Some(_), Ok(mut state)) = (&self.lines, self.state.lock()) {
            state.clear();
            state.push_str(doing);
            if of > 0 {
                state.push_str(&format!(": {done} of {of} {unit}"));
            }
        }
    }

    /// Writes to standard output while the bar is hidden.
    pub fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A thread that writes lines periodically until dropped.
struct Lines(Option<(Sender<()>, JoinHandle<()>)>);

impl Lines {
    fn new(
        command: &'static str,
        state: Arc<Mutex<String>>,
        interval: Duration,
        mut write: impl FnMut(&str) + Send + 'static,
    ) -> Self {
        let (end, ended) = mpsc::channel::<()>();
        let began = Instant::now();
        let report = move || {
            while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                if let Ok(state) = state.lock() {
                    let seconds = began.elapsed().as_secs();
                    write(&format!("{command}: {seconds} s, {state}"));
                }
            }
        };
        Self(Some((end, thread::spawn(report))))
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.0.take() {
            drop(end);
            // Ignore a panic of the thread, which has been reported.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_show_progress_until_the_end() {
        let (sender, receiver) = mpsc::channel();
        let state = Arc::new(Mutex::new("load 0.1, measuring".to_owned()));
        let interval = Duration::from_millis(1);
        let lines = Lines::new("phitwire sim", Arc::clone(&state), interval, move |line| {
            let _ = sender.send(line.to_owned());
        });
        let bound = Duration::from_secs(60);
        let first = receiver.recv_timeout(bound).expect("a line");
        assert_eq!(first, "phitwire sim: 0 s, load 0.1, measuring");
        "load 0.2".clone_into(&mut state.lock().expect("nobody panics"));
        let next = |line: String| line.ends_with("load 0.2").then_some(());
        let until = Instant::now() + bound;
        while receiver.recv_timeout(bound).ok().and_then(next).is_none() {
            assert!(Instant::now() < until, "the new state is printed");
        }
        drop(lines);
        while receiver.try_recv().is_ok() {}
        let late = receiver.recv_timeout(10 * interval);
        assert_eq!(late, Err(RecvTimeoutError::Disconnected));
    }
}
