//! Replays the fuzz corpus of descriptions with a stable toolchain.
#![expect(
    clippy::disallowed_methods,
    reason = "a test may read files; the core may not"
)]

mod answer;

use std::path::PathBuf;

/// Name prefix of valid inputs; all others must be rejected.
const RIGHT: &str = "right-";

#[test]
fn the_corpus_is_answered() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/description");
    let files = std::fs::read_dir(directory).expect("the corpus is there");
    let (mut right, mut wrong) = (0, 0);
    for file in files {
        let file = file.expect("the corpus can be listed");
        let bytes = std::fs::read(file.path()).expect("the corpus can be read");
        let name = file.file_name().to_string_lossy().into_owned();
        let lines = answer::answer(&bytes);
        assert_eq!(lines.is_empty(), name.starts_with(RIGHT), "{name}: {lines}");
        match lines.is_empty() {
            true => right += 1,
            false => wrong += 1,
        }
    }
    assert!(right >= 2 && wrong >= 8, "{right} right, {wrong} wrong");
}
