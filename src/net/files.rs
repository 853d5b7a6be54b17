//! Other files that a description names: the core opens none, so that whoever reads the description
//! hands them in.

use core::fmt;
use std::rc::Rc;

/// What a name in a description stands for: bytes, or in words why there are none.
type Open = dyn Fn(&str) -> Result<Vec<u8>, String>;

/// The files that a description may name; by default none.
#[derive(Clone, Default)]
pub struct Files(Option<Rc<Open>>);

impl Files {
    /// Those that `open` finds.
    pub fn new(open: impl Fn(&str) -> Result<Vec<u8>, String> + 'static) -> Self {
        Self(Some(Rc::new(open)))
    }

    /// The bytes of the file of that name.
    ///
    /// # Errors
    /// In words, why there are none.
    pub fn open(&self, name: &str) -> Result<Vec<u8>, String> {
        match &self.0 {
            Some(open) => open(name),
            None => Err(String::from("no other file is read from here")),
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
