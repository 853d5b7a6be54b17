//! Replays a fuzz corpus with a stable toolchain, and verifies its generated part.
#![expect(
    clippy::disallowed_methods,
    reason = "a test may read files; the codecs may not"
)]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;

/// Inputs by name.
pub type Inputs = BTreeMap<String, Vec<u8>>;

pub fn inputs(named: impl IntoIterator<Item = (&'static str, Vec<u8>)>) -> Inputs {
    let named = named.into_iter();
    named
        .map(|(name, bytes)| (name.to_owned(), bytes))
        .collect()
}

/// The committed corpus of a target; rewritten first if requested by `PHITWIRE_REGENERATE`.
fn committed(target: &str, generated: &Inputs) -> Inputs {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../fuzz/corpus")
        .join(target);
    if std::env::var_os("PHITWIRE_REGENERATE").is_some() {
        std::fs::create_dir_all(&directory).expect("the corpus can be written");
        for (name, bytes) in generated {
            std::fs::write(directory.join(name), bytes).expect("the corpus can be written");
        }
    }
    let mut inputs = Inputs::new();
    for entry in std::fs::read_dir(directory).expect("the corpus is committed") {
        let path = entry.expect("the corpus can be listed").path();
        let name = path.file_name().expect("it is a file").to_string_lossy();
        let bytes = std::fs::read(&path).expect("the corpus can be read");
        inputs.insert(name.into_owned(), bytes);
    }
    for (name, bytes) in generated {
        let found = inputs.get(name);
        assert_eq!(
            found,
            Some(bytes),
            "{name}: see fuzz/README.md to regenerate"
        );
    }
    inputs
}

/// Runs each committed input of `target`, which must include the `generated` ones, and returns the
/// outcomes.
pub fn replay<T: Debug>(target: &str, generated: &Inputs, run: impl Fn(&[u8]) -> T) -> Vec<T> {
    let inputs = committed(target, generated);
    let outcomes = inputs.iter().map(|(name, bytes)| {
        let outcome = run(bytes);
        println!("{name}: {outcome:?}");
        outcome
    });
    outcomes.collect()
}

/// Runs every input truncated to every length, and with every byte changed.
pub fn neighbours(inputs: &Inputs, run: impl Fn(&[u8])) {
    for bytes in inputs.values() {
        for cut in 0..bytes.len() {
            run(&bytes[..cut]);
        }
        for at in 0..bytes.len() {
            for value in [0x00, 0xff, 0x80, bytes[at] ^ 1] {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                run(&bytes);
            }
        }
    }
}

/// Asserts that all reasons except those in `cannot` are in `found`.
pub fn all_occur<E: PartialEq + Debug>(all: &[E], found: &[E], cannot: &[E]) {
    for reason in all {
        let expected = !cannot.contains(reason);
        assert_eq!(found.contains(reason), expected, "{reason:?}");
    }
}
