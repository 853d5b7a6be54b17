//! The control socket's protocol: invalid input, bounds, many clients at once.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use phitwire_nodes::control::server::Server;
use phitwire_nodes::control::{
    Client, ClientError, Code, Holder, MAX_LINE_BYTES, Refusal, Request,
};
use serde_json::{Value, json};

/// A server that answers `get` with the doubled address, and `info` with a very long text.
struct Fixture {
    _dir: tempfile::TempDir,
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<usize>>,
}

/// A request for a register, by number or name.
fn get(register: impl ToString) -> Request {
    let register = register.to_string().parse();
    Request::Get {
        register: register.expect("everything is a number or a name"),
    }
}

fn answer(request: Request) -> Result<Value, String> {
    match request {
        Request::Get { register } => Ok(json!(register)),
        Request::Info => Ok(json!("x".repeat(MAX_LINE_BYTES))),
        Request::Stats => Ok(json!("y".repeat(MAX_LINE_BYTES / 2))),
        Request::Claim(_) => Ok(json!({})),
        other => Err(format!("no {other:?}")),
    }
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("n.sock");
        let mut server = Server::bind(&path, &[]).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let mut requests = 0;
            while !stopped.load(Ordering::SeqCst) {
                requests += server
                    .serve(|_, request| answer(request))
                    .expect("clients cannot break the server")
                    .requests;
                thread::sleep(Duration::from_micros(200));
            }
            requests
        });
        Self {
            _dir: dir,
            path,
            stop,
            thread: Some(thread),
        }
    }

    /// Ends the server and returns the number of requests answered.
    fn end(mut self) -> usize {
        self.stop.store(true, Ordering::SeqCst);
        self.thread
            .take()
            .unwrap()
            .join()
            .expect("the server did not panic")
    }
}

fn connect(path: &Path) -> UnixStream {
    let stream = UnixStream::connect(path).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    stream
}

fn lines(stream: UnixStream) -> Vec<Value> {
    BufReader::new(stream)
        .lines()
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect()
}

#[test]
fn malformed_requests_get_an_error_and_the_connection_goes_on() {
    let fixture = Fixture::new();
    let mut stream = connect(&fixture.path);
    let bad: [&[u8]; 6] = [
        b"{",
        b"nonsense",
        b"[]",
        b"\xff\xfe",
        b"{\"cmd\":\"boil\"}",
        b"{\"cmd\":\"set\"}",
    ];
    for line in bad {
        stream.write_all(line).unwrap();
        stream.write_all(b"\n").unwrap();
    }
    stream
        .write_all(b"\n  \n{\"cmd\":\"get\",\"register\":7}\r\n")
        .unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let replies = lines(stream);
    assert_eq!(replies.len(), bad.len() + 1, "empty lines get no answer");
    for reply in &replies[..bad.len()] {
        assert_eq!(reply["ok"], false);
        assert!(reply["error"].as_str().unwrap().contains("invalid request"));
        assert_eq!(reply["refusal"]["code"], "not-understood");
    }
    assert_eq!(replies[bad.len()], json!({"ok": true, "data": 7}));
    fixture.end();
}

#[test]
fn a_line_without_end_is_refused_and_its_client_left() {
    let fixture = Fixture::new();
    let mut stream = connect(&fixture.path);
    let chunk = [b'a'; 64 << 10];
    // The server stops reading at its bound, so a further write fails, or blocks and times out.
    stream
        .set_write_timeout(Some(Duration::from_secs(2)))
        .unwrap();
    let written = (0..64)
        .take_while(|_| stream.write_all(&chunk).is_ok())
        .count();
    assert!(written < 64, "4 MiB without a line end were taken");
    // Other clients must be served as before.
    let mut client = Client::connect_to(&fixture.path).unwrap();
    assert_eq!(client.ask(&get(1)).unwrap(), json!(1));
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    if !text.is_empty() {
        assert!(text.contains("the request exceeds"), "{text}");
    }
    fixture.end();
}

#[test]
fn requests_in_one_write_and_requests_in_pieces_are_answered_in_order() {
    let fixture = Fixture::new();
    let mut stream = connect(&fixture.path);
    let mut text = String::new();
    for i in 0..500 {
        text += &format!("{{\"cmd\":\"get\",\"register\":{i}}}\n");
    }
    for piece in text.as_bytes().chunks(997) {
        stream.write_all(piece).unwrap();
        thread::sleep(Duration::from_micros(100));
    }
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let replies = lines(stream);
    assert_eq!(replies.len(), 500);
    for (i, reply) in replies.iter().enumerate() {
        assert_eq!(reply["data"], i);
    }
    assert_eq!(fixture.end(), 500);
}

#[test]
fn parallel_clients_more_than_are_served_at_once_all_get_their_answers() {
    let fixture = Fixture::new();
    let clients: Vec<_> = (0..60u64)
        .map(|c| {
            let path = fixture.path.clone();
            thread::spawn(move || {
                let mut client = Client::connect_to(&path).unwrap();
                for i in 0..20 {
                    let register = c * 20 + i;
                    let data = client.ask(&get(register)).unwrap();
                    assert_eq!(data, json!(register));
                }
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    assert_eq!(fixture.end(), 60 * 20);
}

/// More idle connections than the server keeps: the one idle longest makes room for a new client,
/// but never the one that holds the node.
#[test]
fn idle_connections_are_closed_for_new_ones() {
    let fixture = Fixture::new();
    let mut keeper = Client::connect_to(&fixture.path).unwrap();
    let holder = Holder {
        tool: "test".to_owned(),
        pid: 1,
    };
    keeper.ask(&Request::Claim(holder)).unwrap();
    let mut oldest = Client::connect_to(&fixture.path).unwrap();
    oldest.ask(&get(0)).unwrap();
    let forgotten: Vec<_> = (0..40).map(|_| connect(&fixture.path)).collect();
    let mut client = Client::connect_to(&fixture.path).unwrap();
    client.set_timeout(Duration::from_secs(3)).unwrap();
    for register in [1, 2] {
        let answer = client.ask(&get(register));
        assert_eq!(answer.unwrap(), json!(register));
    }
    let left = oldest.ask(&get(0));
    assert!(matches!(left, Err(ClientError::Io(_))), "{left:?}");
    let answer = keeper.ask(&get(3));
    assert_eq!(answer.unwrap(), json!(3), "who keeps the node stays");
    drop(forgotten);
    fixture.end();
}

#[test]
fn a_client_that_does_not_read_is_not_read_from_and_delays_no_other() {
    let fixture = Fixture::new();
    let mut deaf = connect(&fixture.path);
    deaf.set_nonblocking(true).unwrap();
    // Each reply is half a megabyte: socket buffers fill, and the server must not queue more.
    while deaf.write_all(b"{\"cmd\":\"stats\"}\n").is_ok() {}
    let mut client = Client::connect_to(&fixture.path).unwrap();
    assert_eq!(client.ask(&get(2)).unwrap(), json!(2));
    drop(deaf);
    assert_eq!(client.ask(&get(3)).unwrap(), json!(3));
    drop(client);
    assert!(
        fixture.end() < 20,
        "requests of the deaf client were answered without bound"
    );
}

#[test]
fn refusals_and_overlong_answers_are_errors() {
    let fixture = Fixture::new();
    let mut client = Client::connect_to(&fixture.path).unwrap();
    let refused = client.ask(&Request::Links).unwrap_err();
    assert!(
        refused.refusal() == Some(&Refusal::from("no Links")),
        "{refused}"
    );
    let long = client.ask(&Request::Info).unwrap_err();
    let code = long.refusal().and_then(|refusal| refusal.code);
    assert_eq!(code, Some(Code::TooLong), "{long}");
    assert_eq!(client.ask(&get("a.b")).unwrap(), json!("a.b"));
    fixture.end();
}

/// A process was suspended longer than the client waits. Its late reply must not be mistaken for
/// the reply to the next request.
#[test]
fn a_late_answer_is_not_taken_for_another() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("n.sock");
    let mut server = Server::bind(&path, &[]).unwrap();
    let mut client = Client::connect_to(&path).unwrap();
    assert_eq!(client.process(), Some(std::process::id()));
    client.set_timeout(Duration::from_millis(20)).unwrap();
    for register in [1, 2] {
        let silent = client.ask(&get(register));
        assert!(matches!(silent, Err(ClientError::Silent)), "{silent:?}");
    }
    // The second request has not been sent, so that nothing accumulates.
    let mut served = Vec::new();
    for _ in 0..3 {
        let answer = |_, request| {
            served.push(request);
            Ok::<_, String>(json!("late"))
        };
        server.serve(answer).unwrap();
    }
    assert_eq!(served.len(), 1);
    let answers = thread::spawn(move || {
        let mut gone = Vec::new();
        while gone.is_empty() {
            gone = server.serve(|_, request| answer(request)).unwrap().gone;
            thread::sleep(Duration::from_micros(200));
        }
        gone
    });
    client.set_timeout(Duration::from_secs(5)).unwrap();
    assert_eq!(client.ask(&get(3)).unwrap(), json!(3));
    drop(client);
    assert_eq!(
        answers.join().unwrap(),
        [1],
        "the client that left is reported"
    );
}

/// A suspended process accepts only what fits into its socket's buffer. The next request must not
/// be read as the rest of a partial one.
#[test]
fn a_connection_with_half_a_request_is_of_no_more_use() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("n.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let timeout = Duration::from_millis(200);
    let mut client = Client::connect_within(&path, timeout).unwrap();
    let (mut other, _) = listener.accept().unwrap();
    let large = get("x".repeat(8 << 20));
    let error = client.ask(&large).expect_err("nobody reads");
    assert!(matches!(error, ClientError::HalfSent), "{error}");
    assert!(error.to_string().contains("reconnect"), "{error}");

    // The process resumes, and must not find another request after the partial one.
    other.set_read_timeout(Some(timeout)).unwrap();
    let mut came = vec![0; 1 << 20];
    let drained = |other: &mut UnixStream, came: &mut [u8]| {
        let mut all = 0;
        while let Ok(some) = other.read(came) {
            assert!(!came[..some].contains(&b'\n'), "no line ends");
            all += some;
        }
        all
    };
    assert!(drained(&mut other, &mut came) > 0);
    for _ in 0..2 {
        let error = client.ask(&Request::Info).expect_err("of no use");
        assert!(matches!(error, ClientError::HalfSent), "{error}");
    }
    assert_eq!(drained(&mut other, &mut came), 0, "nothing more was sent");
}

/// As long as nothing of a request was sent, the connection stays usable.
#[test]
fn a_connection_that_takes_nothing_in_can_be_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("n.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let mut client = Client::connect_within(&path, Duration::from_millis(100)).unwrap();
    let (other, _) = listener.accept().unwrap();
    // Each request is sent whole or not at all.
    let some = json!({ "cmd": "x".repeat(100) });
    let mut sent = 0;
    let error = loop {
        match client.send(&some) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
        assert!(sent < 1_000_000, "there is an end to the buffer");
    };
    assert!(matches!(error, ClientError::Silent), "{error}");
    // The process resumes, and reads these requests and the next.
    let mut lines = BufReader::new(other).lines();
    for _ in 0..sent {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(line, some);
    }
    client.send(&json!({ "cmd": "last" })).expect("it has room");
    assert_eq!(lines.next().unwrap().unwrap(), r#"{"cmd":"last"}"#);
}
