//! Connections whose hello has not arrived yet.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use phitwire_framing::door::hello::{HELLO_BYTES, Hello, Welcome};

/// A connection whose hello is incomplete.
#[derive(Debug)]
pub(super) struct Guest {
    stream: UnixStream,
    said: [u8; HELLO_BYTES],
    heard: usize,
}

/// Progress of a connection's hello.
pub(super) enum Said {
    NotAll,
    /// The complete hello; `None` if it is invalid.
    Hello(Option<Hello>),
    Gone,
}

impl Guest {
    /// A connection without a hello. `stream` must not block.
    pub(super) fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            said: [0; HELLO_BYTES],
            heard: 0,
        }
    }

    /// Reads the bytes that have arrived.
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

/// Refuses a program. Failure to send can be ignored, since the connection ends anyway.
pub(super) fn answer(mut stream: &UnixStream, welcome: &Welcome) {
    let mut message = [0; HELLO_BYTES];
    welcome.emit(&mut message);
    let _ = stream.write(&message);
}
