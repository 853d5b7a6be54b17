//! Connections whose hello has not arrived yet.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use phitwire_framing::door::hello::{HELLO_BYTES, Hello, Welcome};

/// A connection whose hello is incomplete.
#[derive(Debug)]
pub(super) struct PendingHello {
    stream: UnixStream,
    hello_bytes: [u8; HELLO_BYTES],
    received: usize,
}

/// Progress of a connection's hello.
pub(super) enum HelloProgress {
    Incomplete,
    /// The complete hello; `None` if it is invalid.
    Hello(Option<Hello>),
    Gone,
}

impl PendingHello {
    /// A connection without a hello. `stream` must not block.
    pub(super) fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            hello_bytes: [0; HELLO_BYTES],
            received: 0,
        }
    }

    /// Reads the bytes that have arrived.
    pub(super) fn read_hello(&mut self) -> HelloProgress {
        match self.stream.read(&mut self.hello_bytes[self.received..]) {
            Ok(0) => HelloProgress::Gone,
            Ok(bytes) => {
                self.received += bytes;
                match self.received == HELLO_BYTES {
                    true => HelloProgress::Hello(Hello::parse(&self.hello_bytes).ok()),
                    false => HelloProgress::Incomplete,
                }
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => HelloProgress::Incomplete,
                _ => HelloProgress::Gone,
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
