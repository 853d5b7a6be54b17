//! Who has come to the door, and has not said hello yet.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use phitwire_framing::door::hello::{HELLO_BYTES, Hello, Welcome};

/// A connection that has not said all of its hello.
#[derive(Debug)]
pub(super) struct Guest {
    stream: UnixStream,
    said: [u8; HELLO_BYTES],
    heard: usize,
}

/// What a guest has said.
pub(super) enum Said {
    NotAll,
    /// `None`: something that is no hello.
    Hello(Option<Hello>),
    Gone,
}

impl Guest {
    /// A connection that does not block.
    pub(super) fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            said: [0; HELLO_BYTES],
            heard: 0,
        }
    }

    /// Reads what has come.
    pub(super) fn hear(&mut self) -> Said {
        match self.stream.read(&mut self.said[self.heard..]) {
            Ok(0) => Said::Gone,
            Ok(bytes) => {
                self.heard += bytes;
                match self.heard == HELLO_BYTES {
                    true => Said::Hello(Hello::parse(&self.said).ok()),
                    false => Said::NotAll,
                }
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Said::NotAll,
                _ => Said::Gone,
            },
        }
    }

    pub(super) fn into_stream(self) -> UnixStream {
        self.stream
    }
}

/// Answers somebody who is not let in. Nothing is lost if that fails: the connection ends anyway.
pub(super) fn answer(mut stream: &UnixStream, welcome: &Welcome) {
    let mut message = [0; HELLO_BYTES];
    welcome.emit(&mut message);
    let _ = stream.write(&message);
}
