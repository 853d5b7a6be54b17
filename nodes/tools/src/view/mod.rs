//! Networks in a browser: one page for a running lab, a recording, or a self-contained file.
//!
//! [`Page`] is the page: HTML, a style and one script, without external resources. It reads the
//! format of [`crate::recording`], for any machine. [`Live`] keeps a lab's latest lines and events;
//! [`serve`] is the server.

mod actions;
mod guard;
mod history;
mod live;
mod page;
mod server;

pub use actions::Actions;
pub use guard::Guard;
pub use live::{Live, event_of};
pub use page::{Page, report};
pub use server::{Shown, serve};
