//! Descriptions of networks from files, standard input or network names.

use std::borrow::Cow;
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use miette::Report;
use phitwire::net::{Effort, Files, Network, Problems, Read};

use crate::input_file::{FileKind, InputFile, is_handed_over};
use crate::machines::machines;

mod ready;

pub use ready::find;

/// The network described by a file, or the network of this name; `-` is standard input.
///
/// # Errors
/// If it is neither a file nor a name, if it cannot be read, or if the description has mistakes.
pub fn open(file: &Path) -> miette::Result<Box<dyn Network>> {
    match name_of(file) {
        Some(name) => ready::find(name),
        None => Description::of(file)?.network(),
    }
}

/// The path as a possible network name, if no such file exists.
fn name_of(file: &Path) -> Option<&str> {
    let is_plain = |name: &&str| *name != "-" && !name.contains('/') && !file.exists();
    file.to_str().filter(is_plain)
}

/// A description and access to the files that it refers to, relative to its folder.
pub struct Description {
    name: String,
    bytes: Vec<u8>,
    files: Files,
    /// Whether the description refers to other files.
    names_files: Rc<Cell<bool>>,
}

impl Description {
    /// The description in a file or of the network of this name; `-` is standard input.
    ///
    /// # Errors
    /// If it is neither a file nor a name, or cannot be read.
    pub fn of(file: &Path) -> miette::Result<Self> {
        let (name, bytes) = match name_of(file) {
            Some(name) => (name.to_owned(), ready::text(name)?.into_bytes()),
            None => {
                let input = InputFile::open(file, FileKind::DESCRIPTION)?;
                (input.name.clone(), input.bytes()?)
            }
        };
        let folder = match is_handed_over(file) {
            true => PathBuf::new(),
            false => file.parent().map_or_else(PathBuf::new, Path::to_owned),
        };
        let names_files = Rc::new(Cell::new(false));
        let is_asked = names_files.clone();
        let files = Files::new(move |name| {
            is_asked.set(true);
            read_referenced(&folder.join(name))
        });
        Ok(Self {
            name,
            bytes,
            files,
            names_files,
        })
    }

    /// Name of the description in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Parses and checks the description.
    ///
    /// # Errors
    /// The errors in the description.
    pub fn read(&self, effort: Effort) -> Result<Read, Problems> {
        machines().read_with_files(&self.name, &self.bytes, effort, &self.files)
    }

    /// The described network, if it has no errors.
    ///
    /// # Errors
    /// The errors in the description.
    pub fn network(&self) -> miette::Result<Box<dyn Network>> {
        let read = self.read(Effort::Bounded);
        read.map(|read| read.network).map_err(Report::new)
    }

    /// The text of the description of `network`: unchanged, or with the files it refers to inlined.
    pub fn whole(&self, network: &dyn Network) -> Cow<'_, [u8]> {
        match self.names_files.get() {
            true => Cow::Owned(network.write().into_bytes()),
            false => Cow::Borrowed(&self.bytes),
        }
    }
}

/// The bytes of a file that a description refers to, or the reason why it cannot be read.
fn read_referenced(file: &Path) -> Result<Vec<u8>, String> {
    let read = InputFile::open(file, FileKind::DESCRIPTION).and_then(InputFile::bytes);
    read.map_err(|report| match report.source() {
        Some(cause) => format!("{report}: {cause}"),
        None => report.to_string(),
    })
}
