//! One HTTP connection.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::{Answer, Request};

/// Size limit of a request's head, and of its body, in bytes.
const MOST_HEAD: usize = 16 << 10;
const MOST_BODY: usize = 64 << 10;
/// Maximum number of headers of a request.
const MOST_HEADERS: usize = 100;
/// Timeout of an idle connection, and of reading a request.
const READ: Duration = Duration::from_secs(10);
/// Timeout of writing a response.
const WRITE: Duration = Duration::from_secs(10);

/// Why a connection ends.
#[derive(Debug)]
enum Trouble {
    /// The connection was closed, or timed out.
    Gone,
    /// The request is invalid: a status and the reason.
    Wrong(u16, &'static str),
}

impl From<io::Error> for Trouble {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// Responds to the requests on a connection in order, until the connection ends.
pub fn converse(
    stream: &TcpStream,
    asks: &dyn Fn(),
    answer: &(impl Fn(&Request) -> Answer + ?Sized),
) {
    // Set the mode explicitly: accepted sockets may not inherit the listener's.
    if stream.set_nonblocking(false).is_err() {
        return;
    }
    let _ = stream.set_nodelay(true);
    let mut unread = Vec::new();
    loop {
        match request(stream, &mut unread) {
            Ok(request) => {
                asks();
                let is_head = request.method == "HEAD";
                let is_written = write(stream, &answer(&request), is_head, request.is_last);
                if is_written.is_err() || request.is_last {
                    return;
                }
            }
            Err(Trouble::Wrong(status, why)) => {
                let _ = write(stream, &Answer::plain(status, why), false, true);
                // Read the rest first: closing with unread data would make the kernel discard the
                // response.
                drain(stream);
                return;
            }
            Err(Trouble::Gone) => return,
        }
    }
}

/// The next request. `unread` holds bytes that arrived after the previous one.
fn request(stream: &TcpStream, unread: &mut Vec<u8>) -> Result<Request, Trouble> {
    let deadline = Instant::now() + READ;
    let (mut request, begin, length) = loop {
        if let Some(found) = head(unread)? {
            break found;
        }
        if unread.len() >= MOST_HEAD {
            return Err(Trouble::Wrong(431, "request header too large"));
        }
        more(stream, unread, deadline)?;
    };
    if length > MOST_BODY {
        return Err(Trouble::Wrong(413, "request body too large"));
    }
    let waits = |value: &str| value.eq_ignore_ascii_case("100-continue");
    if unread.len() < begin + length && request.header("Expect").is_some_and(waits) {
        stream.set_write_timeout(Some(WRITE))?;
        let mut to = stream;
        to.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    while unread.len() < begin + length {
        more(stream, unread, deadline)?;
    }
    request.body = unread[begin..begin + length].to_vec();
    unread.drain(..begin + length);
    Ok(request)
}

/// Appends the bytes that have arrived.
fn more(stream: &TcpStream, to: &mut Vec<u8>, deadline: Instant) -> Result<(), Trouble> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(Trouble::Gone);
    }
    stream.set_read_timeout(Some(left))?;
    let mut bytes = [0; 4_096];
    let mut from = stream;
    match from.read(&mut bytes) {
        Ok(0) => Err(Trouble::Gone),
        Ok(count) => {
            to.extend(&bytes[..count]);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        Err(_) => Err(Trouble::Gone),
    }
}

/// Parses the head of a request, once complete. Also returns the position and length of the body.
fn head(bytes: &[u8]) -> Result<Option<(Request, usize, usize)>, Trouble> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let begin = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(begin)) => begin,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(Trouble::Wrong(431, "too many request headers"));
        }
        Err(_) => return Err(Trouble::Wrong(400, "malformed request")),
    };
    let is_newest = parsed.version == Some(1);
    let owned = |header: &httparse::Header<'_>| {
        let value = String::from_utf8_lossy(header.value).into_owned();
        (header.name.to_owned(), value)
    };
    let mut request = Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        target: parsed.path.unwrap_or_default().to_owned(),
        headers: parsed.headers.iter().map(owned).collect(),
        ..Request::default()
    };
    let closes = |value: &str| value.to_ascii_lowercase().contains("close");
    request.is_last = !is_newest || request.header("Connection").is_some_and(closes);
    if request.header("Transfer-Encoding").is_some() {
        return Err(Trouble::Wrong(
            501,
            "Transfer-Encoding is not supported: send the body with a \
                                        Content-Length",
        ));
    }
    // Reject two lengths, since another parser might use the other one.
    let is_length = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("Content-Length");
    let mut lengths = request.headers.iter().filter(is_length);
    let length = match (lengths.next(), lengths.next()) {
        (None, _) => Some(0),
        (Some((_, one)), None) if one.bytes().all(|digit| digit.is_ascii_digit()) => {
            // Treat a number with too many digits as too long.
            (!one.is_empty()).then(|| one.parse().unwrap_or(usize::MAX))
        }
        _ => None,
    };
    let length = length.ok_or(Trouble::Wrong(400, "invalid Content-Length"))?;
    Ok(Some((request, begin, length)))
}

fn write(stream: &TcpStream, answer: &Answer, is_head: bool, is_last: bool) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {} {}\r\n", answer.status, reason(answer.status));
    for (name, value) in &answer.headers {
        // Keep line breaks in a value from beginning a new header line.
        let value = value.replace(['\r', '\n'], " ");
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let connection = if is_last { "close" } else { "keep-alive" };
    let length = answer.body.len();
    head.push_str(&format!(
        "Content-Length: {length}\r\nConnection: {connection}\r\n\r\n"
    ));
    let body: &[u8] = if is_head { &[] } else { &answer.body };
    let deadline = Instant::now() + WRITE;
    for mut bytes in [head.as_bytes(), body] {
        while !bytes.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            stream.set_write_timeout(Some(left))?;
            let mut to = stream;
            match to.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Reads and discards the rest of a request, for a short while.
fn drain(stream: &TcpStream) {
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let deadline = Instant::now() + Duration::from_secs(1);
    let mut forgotten = Vec::new();
    while more(stream, &mut forgotten, deadline).is_ok() {
        forgotten.clear();
    }
}

const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        _ => "-",
    }
}
