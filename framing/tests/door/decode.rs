//! Every decoder of the door, for the fuzz target and the replay of its corpus. A decoder may panic
//! only if it contradicts its encoder.

use phitwire_framing::door::hello::{HELLO_BYTES, Hello, Welcome};
use phitwire_framing::door::{
    COMMAND_BYTES, COMPLETION_BYTES, Command, Completion, EntryError, Request,
};

/// Results of decoding the bytes as a command, a completion, a hello and a welcome; `None` if there
/// were too few bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Kind of the command.
    pub command: Option<Result<u8, EntryError>>,
    /// Kind of the completion.
    pub completion: Option<Result<u8, EntryError>>,
    /// Whether the bytes are a valid hello.
    pub hello: Option<Result<(), EntryError>>,
    /// Admission in the welcome, or the reason for a refusal.
    pub welcome: Option<Result<u8, EntryError>>,
}

/// Decodes the start of `bytes` in each format.
pub fn decode(bytes: &[u8]) -> Outcome {
    Outcome {
        command: bytes.first_chunk().map(decode_command),
        completion: bytes.first_chunk().map(decode_completion),
        hello: bytes.first_chunk().map(decode_hello),
        welcome: bytes.first_chunk().map(decode_welcome),
    }
}

/// Returns the command's kind. Asserts that its encoding is unique.
pub fn decode_command(entry: &[u8; COMMAND_BYTES]) -> Result<u8, EntryError> {
    let command = Command::parse(entry)?;
    let mut again = [0xa5; COMMAND_BYTES];
    command.emit(&mut again).expect("it was parsed");
    assert_eq!(&again, entry, "{command:?}");
    if let Request::Put { data, .. } = command.request {
        assert!((1..=64).contains(&data.len()));
    }
    Ok(entry[0])
}

/// Returns the completion's kind. Asserts that its encoding is unique.
pub fn decode_completion(entry: &[u8; COMPLETION_BYTES]) -> Result<u8, EntryError> {
    let completion = Completion::parse(entry)?;
    let mut again = [0xa5; COMPLETION_BYTES];
    completion.emit(&mut again);
    assert_eq!(&again, entry, "{completion:?}");
    Ok(entry[0])
}

/// Asserts that a hello's encoding is unique.
pub fn decode_hello(message: &[u8; HELLO_BYTES]) -> Result<(), EntryError> {
    let hello = Hello::parse(message)?;
    let mut again = [0xa5; HELLO_BYTES];
    hello.emit(&mut again);
    assert_eq!(&again, message, "{hello:?}");
    Ok(())
}

/// Returns the welcome's entry code. Asserts that its encoding is unique.
pub fn decode_welcome(message: &[u8; HELLO_BYTES]) -> Result<u8, EntryError> {
    let welcome = Welcome::parse(message)?;
    let mut again = [0xa5; HELLO_BYTES];
    welcome.emit(&mut again);
    assert_eq!(&again, message, "{welcome:?}");
    Ok(message[6])
}
