//! Networks in a browser: one page over a running lab, over a recording, or by itself in a file.
//!
//! [`Page`] is the page: HTML, a style and one script, nothing of which comes from elsewhere. It reads
//! what [`crate::recording`] writes, and nothing else, whatever the machine. [`Live`] keeps a
//! lab's latest lines and what can be done to it; [`serve`] answers browsers.

mod actions;
mod guard;
mod history;
mod live;
mod page;
mod server;

pub use actions::{Act, Actions};
pub use guard::Guard;
pub use history::History;
pub use live::{Live, event_of};
pub use page::{Page, report};
pub use server::{Shown, serve};
