//! When descriptors run out, the control socket neither ends the process nor spins. The test binary
//! has one test, because the limit applies to the whole process.

use std::io::{Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use phitwire_nodes::control::server::{Served, Server};
use serde_json::json;

#[test]
fn a_client_that_there_is_no_descriptor_for_is_served_later() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("n.sock");
    let mut server = Server::bind(&path, &[]).unwrap();
    // SAFETY: the server, which owns the descriptor, lives until the end of the test.
    let epoll = unsafe { BorrowedFd::borrow_raw(server.raw_fd()) };
    let readable = || {
        let mut fds = [PollFd::new(epoll, PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::ZERO).unwrap() == 1
    };
    let serve = |server: &mut Server| {
        let answer = |_, _| Ok::<_, String>(json!("here"));
        server.serve(answer).expect("it goes on")
    };
    let mut client = UnixStream::connect(&path).unwrap();
    client.write_all(b"{\"cmd\":\"stats\"}\n").unwrap();
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    assert!(readable());
    setrlimit(Resource::RLIMIT_NOFILE, 3, hard).unwrap();
    for _ in 0..3 {
        assert_eq!(serve(&mut server), Served::default());
        assert!(!readable(), "or the event loop would turn at full speed");
        let pause = server.pause().expect("it says when to come again");
        assert!(pause <= Duration::from_millis(100));
        std::thread::sleep(pause);
    }
    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
    let start = Instant::now();
    while serve(&mut server).requests == 0 {
        assert!(start.elapsed() < Duration::from_secs(5), "never served");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(server.pause(), None);
    let mut reply = [0; 64];
    let bytes = client.read(&mut reply).unwrap();
    assert!(reply[..bytes].ends_with(b"\"here\"}\n"));
}
