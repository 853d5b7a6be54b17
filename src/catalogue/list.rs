//! The machines that a program knows.

use phitwire_framing::carrier::frame;

use super::Machine;
use crate::link::FrameContents;
use crate::net::{self, Effort, Family, Files, Generated, Network, Problems, Read};

/// Asserts that no two items compare the same, within one machine's list or across two machines.
macro_rules! assert_distinct {
    ($machines:ident, $list:ident, |$a:ident, $b:ident| $is_same:expr, $message:literal) => {
        let mut one = 0;
        while one < $machines.len() {
            let mut other = one;
            while other < $machines.len() {
                let (list, others) = ($machines[one].$list, $machines[other].$list);
                let mut at = 0;
                while at < list.len() {
                    let mut beside = if one == other { at + 1 } else { 0 };
                    while beside < others.len() {
                        let ($a, $b) = (&list[at], &others[beside]);
                        assert!(!$is_same, $message);
                        beside += 1;
                    }
                    at += 1;
                }
                other += 1;
            }
            one += 1;
        }
    };
}

/// The machines that a program knows. The first is the default of descriptions that name none.
#[derive(Clone, Copy, Debug)]
pub struct Catalogue {
    machines: &'static [&'static Machine],
}

impl Catalogue {
    /// `machines` is the order in which commands list them.
    ///
    /// # Panics
    /// If `machines` is empty, two machines have the same `family`, or two generators, soak
    /// families or kinds of frames (of one machine or of two) have the same name or code. In a
    /// `static`, this is a compile error:
    ///
    /// ```compile_fail,E0080
    /// use phitwire::catalogue::Catalogue;
    ///
    /// static TWICE: Catalogue = Catalogue::new(&[&phitwire_toy::MACHINE, &phitwire_toy::MACHINE]);
    /// ```
    pub const fn new(machines: &'static [&'static Machine]) -> Self {
        assert!(!machines.is_empty(), "a program needs at least one machine");
        let mut one = 0;
        while one < machines.len() {
            let mut other = one + 1;
            while other < machines.len() {
                let (a, b) = (machines[one].networks.word, machines[other].networks.word);
                assert!(!is_same(a, b), "two machines have the same `family`");
                other += 1;
            }
            one += 1;
        }
        assert_distinct!(
            machines,
            generators,
            |a, b| is_same(a.name, b.name),
            "two generators have one name, a command of `topology generate`: rename one"
        );
        assert_distinct!(
            machines,
            soak,
            |a, b| is_same(a.name, b.name),
            "two soak families have one name, by which `soak --family` finds them: rename one"
        );
        assert_distinct!(
            machines,
            frames,
            |a, b| a.kind().code() == b.kind().code(),
            "two kinds of frames have one code, which must be unique: choose a free one"
        );
        Self { machines }
    }

    /// The machines, in listing order.
    pub const fn machines(self) -> &'static [&'static Machine] {
        self.machines
    }

    pub fn families(self) -> Vec<Family> {
        self.machines
            .iter()
            .map(|machine| machine.networks)
            .collect()
    }

    /// Reads and checks the description of a network of any machine. Diagnostics call it `file`.
    ///
    /// # Errors
    /// The mistakes found, in the order of the text.
    pub fn read(self, file: &str, text: &str) -> Result<Box<dyn Network>, Problems> {
        self.read_with(file, text.as_bytes(), Effort::Bounded)
            .map(|read| read.network)
    }

    /// Like [`read`](Self::read), for the bytes of a file, with the given effort.
    ///
    /// # Errors
    /// See [`net::read`].
    pub fn read_with(self, file: &str, bytes: &[u8], effort: Effort) -> Result<Read, Problems> {
        self.read_with_files(file, bytes, effort, &Files::default())
    }

    /// Like [`read_with`](Self::read_with), for a description that may name other files.
    ///
    /// # Errors
    /// See [`net::read`].
    pub fn read_with_files(
        self,
        file: &str,
        bytes: &[u8],
        effort: Effort,
        files: &Files,
    ) -> Result<Read, Problems> {
        net::read(&self.families(), file, bytes, effort, files)
    }

    /// The network with a name such as `r2-1024`; `None` if no machine has the name.
    ///
    /// # Errors
    /// Why the network cannot be generated.
    pub fn generate(self, name: &str) -> Option<Generated> {
        net::generate(&self.families(), name)
    }

    /// Contents of a frame of any machine; `None` for training frames, damaged frames and bytes
    /// that are not a frame.
    pub fn frame_contents(self, bytes: &[u8]) -> Option<FrameContents> {
        let frame = frame::parse(bytes).ok()?;
        self.machines
            .iter()
            .find_map(|machine| (machine.frame_contents)(&frame))
    }
}

/// String equality as a `const fn`: `==` is not const.
const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

#[cfg(test)]
mod tests {
    use super::is_same;

    #[test]
    fn names_are_compared_whole() {
        assert!(is_same("ring", "ring") && is_same("", ""));
        for other in ["rin", "rings", "sing", ""] {
            assert!(!is_same("ring", other) && !is_same(other, "ring"));
        }
    }
}
