//! Tests of misbehaving clients over loopback.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;

use super::*;

/// Stops the server when dropped, even if the test fails.
struct Ends<'a>(&'a Stop);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.request();
    }
}

/// Starts a server, runs `talk` against it, and ends it. Returns how long that took.
fn served(talk: impl FnOnce(SocketAddr)) -> Duration {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (at, stop) = (listener.local_addr().unwrap(), Stop::new().unwrap());
    let answer = |request: &Request| {
        let response = format!("{} {} {:?}", request.method, request.path(), request.body);
        match request.path() {
            // Exceeds the kernel's buffers for a client that does not read.
            "/large" => Answer::new(200, "text/plain", vec![b'x'; 32 << 20]),
            _ => Answer::plain(200, &response),
        }
    };
    thread::scope(|scope| {
        let server = scope.spawn(|| serve(&listener, &stop, answer));
        let ends = Ends(&stop);
        talk(at);
        let begun = Instant::now();
        drop(ends);
        server.join().unwrap().unwrap();
        begun.elapsed()
    })
}

fn connect(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(at).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    stream
}

/// The whole response to these bytes.
fn exchange(at: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = connect(at);
    // Ignore an error: the server may respond and close before it has read everything.
    let _ = stream.write_all(bytes);
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response);
    String::from_utf8(response).unwrap()
}

fn is_well(at: SocketAddr) {
    let response = exchange(at, b"GET /a?b=c HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert!(
        response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("\r\n\r\nGET /a []\n"),
        "{response}"
    );
}

#[test]
fn requests_are_answered_one_after_the_other() {
    served(|at| {
        let response = exchange(
            at,
            b"HEAD /x HTTP/1.1\r\n\r\nPOST /p HTTP/1.1\r\ncontent-length: 3\r\n\r\n\x01\x02\x03GET / HTTP/1.0\r\n\r\nGET /never HTTP/1.1\r\n\r\n",
        );
        let bodies: Vec<&str> = response.split("HTTP/1.1 200 OK\r\n").collect();
        assert_eq!(bodies.len(), 4, "{response}");
        assert!(
            bodies[1].contains("Content-Length: 11\r\n") && bodies[1].ends_with("\r\n\r\n"),
            "{response}"
        );
        assert!(
            bodies[2].ends_with("\r\n\r\nPOST /p [1, 2, 3]\n"),
            "{response}"
        );
        assert!(
            bodies[3].contains("Connection: close\r\n") && bodies[3].ends_with("GET / []\n"),
            "{response}"
        );
    });
}

#[test]
fn invalid_requests_are_refused_without_effect_on_others() {
    let head = |more: &str| format!("POST / HTTP/1.1\r\n{more}\r\n\r\n").into_bytes();
    let many = "a: b\r\n".repeat(200);
    served(|at| {
        for (bytes, status) in [
            (b"\0\0\0\0\r\n\r\n".to_vec(), "400"),
            (b"GET\r\n\r\n".to_vec(), "400"),
            (b"GET / HTTP/9.9\r\n\r\n".to_vec(), "400"),
            (head("Content-Length: -7"), "400"),
            (head("Content-Length: 1\r\nContent-Length: 2"), "400"),
            (head("Content-Length:"), "400"),
            (head("Content-Length: 999999999999999"), "413"),
            (head(&format!("Content-Length: {}", "9".repeat(40))), "413"),
            (head("Transfer-Encoding: chunked"), "501"),
            (head(&many), "431"),
            (
                [b"GET / HTTP/1.1\r\nX: ".to_vec(), vec![b'a'; 1 << 16]].concat(),
                "431",
            ),
        ] {
            let response = exchange(at, &bytes);
            let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
            assert!(
                response.starts_with(&format!("HTTP/1.1 {status} ")),
                "{shown}: {response}"
            );
            is_well(at);
        }
    });
}

#[test]
fn a_slow_client_delays_no_other_and_ends_with_the_server() {
    let took = served(|at| {
        let mut slow = Vec::new();
        for _ in 0..12 {
            let mut half = connect(at);
            half.write_all(b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\n")
                .unwrap();
            let mut deaf = connect(at);
            deaf.write_all(b"GET /large HTTP/1.1\r\n\r\n").unwrap();
            slow.extend([half, deaf, connect(at)]);
        }
        is_well(at);
    });
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn of_too_many_connections_the_oldest_end() {
    served(|at| {
        let mut first = connect(at);
        let held: Vec<_> = (0..3 * MOST_CONNECTIONS).map(|_| connect(at)).collect();
        is_well(at);
        let end = first.read(&mut [0]).map_err(|error| error.kind());
        assert!(
            matches!(end, Ok(0) | Err(io::ErrorKind::ConnectionReset)),
            "it was closed: {end:?}"
        );
        drop(held);
        is_well(at);
    });
}
