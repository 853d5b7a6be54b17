//! Where io_uring is forbidden, the plain engine is used instead.

use crate::common::{Take, aside, free_addresses, skip, udp_port};
use phitwire_nodes::io::{self, IoEngine};

/// Makes `io_uring_setup` fail with EPERM in the calling thread, as container runtimes do. Returns
/// false, and reports the reason, if filters cannot be installed.
fn forbid_io_uring() -> bool {
    let statement = |code: u32, k: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    };
    let mut filter = [
        // The system call's number is the first word of `seccomp_data`.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        libc::sock_filter {
            code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            jt: 0,
            jf: 1,
            k: libc::SYS_io_uring_setup as u32,
        },
        statement(
            libc::BPF_RET | libc::BPF_K,
            libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
        ),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: both calls affect only the calling thread; the program and its filter live through
    // the call that copies them.
    let installed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            ) == 0
    };
    if !installed {
        let error = std::io::Error::last_os_error();
        skip(&format!("no seccomp filter can be installed here: {error}"));
    }
    installed
}

#[test]
fn a_forbidden_io_uring_is_replaced_by_plain_calls() {
    aside(|| {
        if !forbid_io_uring() {
            return;
        }
        for engine in [IoEngine::Uring, IoEngine::Auto] {
            let addresses = free_addresses(2);
            let mut near = io::open(
                engine,
                &[udp_port(0, addresses[0], addresses[1], None)],
                None,
            )
            .unwrap();
            let mut far = io::open(
                engine,
                &[udp_port(9, addresses[1], addresses[0], None)],
                None,
            )
            .unwrap();
            assert_eq!((near.engine(), far.engine()), ("plain", "plain"));
            near.frame_buffer(0)[..5].copy_from_slice(b"hello");
            near.queue(0, 5);
            near.flush();
            far.wait(Some(std::time::Duration::from_secs(5))).unwrap();
            let mut frames = Vec::new();
            far.receive(&mut Take::new(|port, bytes| {
                frames.push((port, bytes.to_vec()))
            }));
            assert_eq!(frames, [(9, b"hello".to_vec())]);
        }
    });
}
