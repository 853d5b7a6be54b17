//! Other files that a description names: the core opens none, so the caller provides them.

use core::fmt;
use std::rc::Rc;

/// Maps a name in a description to bytes, or to the reason why there are none.
type Open = dyn Fn(&str) -> Result<Vec<u8>, String>;

/// The files that a description may name; by default none.
#[derive(Clone, Default)]
pub struct Files(Option<Rc<Open>>);

impl Files {
    /// The files that `open` finds.
    pub fn new(open: impl Fn(&str) -> Result<Vec<u8>, String> + 'static) -> Self {
        Self(Some(Rc::new(open)))
    }

    /// The bytes of the file with that name.
    ///
    /// # Errors
    /// The reason why the bytes are not available.
    pub fn open(&self, name: &str) -> Result<Vec<u8>, String> {
        match &self.0 {
            Some(open) => open(name),
            None => Err(String::from("other files cannot be read here")),
        }
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Files"
        } else {
            "no Files"
        })
    }
}
