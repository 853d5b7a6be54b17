//! Calls through the tables of operations, as libfabric makes them.

use std::mem::ManuallyDrop;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::objects::{DomainOwn, Object, Part, PartObject, Wait, fid, table, until};
use super::*;
use crate::attach_target::AttachTarget;
use crate::domain::{Awaited, Domain};
use crate::engine::elements::Form;
use crate::engine::slots::RECEIVES;
use crate::fake::Fake;

/// A generous limit for what should happen immediately.
const SOON: Duration = Duration::from_secs(20);
/// The same in milliseconds, for calls that wait.
const LONG: c_int = 20_000;

type Fids = *mut c_void;
type Close = unsafe extern "C" fn(Fids) -> c_int;
type Bind = unsafe extern "C" fn(Fids, Fids, u64) -> c_int;
type Read = unsafe extern "C" fn(Fids, *mut c_void, usize) -> isize;
type Sread = unsafe extern "C" fn(Fids, *mut c_void, usize, *const c_void, c_int) -> isize;
type CounterWait = unsafe extern "C" fn(Fids, u64, c_int) -> c_int;
type EventSread = unsafe extern "C" fn(Fids, *mut u32, *mut c_void, usize, c_int, u64) -> isize;
type Inject = unsafe extern "C" fn(Fids, *const c_void, usize, u64) -> isize;
type InjectData = unsafe extern "C" fn(Fids, *const c_void, usize, u64, u64) -> isize;
type Injects5 = unsafe extern "C" fn(Fids, *const c_void, usize, u64, u64, u64) -> isize;
type Injects6 = unsafe extern "C" fn(Fids, *const c_void, usize, u64, u64, u64, u64) -> isize;
type InjectAtomic =
    unsafe extern "C" fn(Fids, *const c_void, usize, u64, u64, u64, c_int, c_int) -> isize;
type SendMsg = unsafe extern "C" fn(Fids, *const Msg, u64) -> isize;

/// An object whose tables do not change.
#[derive(Clone, Copy)]
struct Handle(*mut c_void);

// SAFETY: calls on objects may be made by any thread.
unsafe impl Send for Handle {}

impl Handle {
    fn at(self) -> *mut c_void {
        self.0
    }

    /// The operation at this index of the object's table.
    fn call<F: Copy>(self, number: usize) -> F {
        // SAFETY: the objects of the tests begin like this one.
        operation(unsafe { (*self.0.cast::<FidSimple>()).ops }, number)
    }

    fn close(self) -> c_int {
        // SAFETY: every object begins with its `Fid`.
        let close: Close = operation(unsafe { (*self.0.cast::<Fid>()).ops }, 0);
        // SAFETY: the object is open.
        unsafe { close(self.0) }
    }

    /// Number of calls in progress on the object, whose own part has type `T`.
    fn calls<T>(self) -> usize {
        // SAFETY: the program holds a reference, which stays.
        let object = unsafe { Arc::from_raw(self.0.cast::<Object<FidSimple, T>>()) };
        let object = ManuallyDrop::new(object);
        Arc::strong_count(&object) - 1
    }

    fn sread(self, count: usize, timeout: c_int) -> isize {
        let mut entries = [const { std::mem::MaybeUninit::<CqEntry>::uninit() }; 1];
        let sread: Sread = self.call(3);
        // SAFETY: the object is a queue, and there is room for an entry.
        unsafe { sread(self.0, entries.as_mut_ptr().cast(), count, null(), timeout) }
    }

    fn trywait(self) -> c_int {
        let mut fid = self.0.cast::<Fid>();
        // SAFETY: there is one object.
        unsafe { waiting::trywait(null_mut(), &raw mut fid, 1) }
    }
}

/// The operation at this index of a table, of type `F`.
fn operation<F: Copy>(table: Table, number: usize) -> F {
    assert_eq!(size_of::<F>(), size_of::<Table>());
    // SAFETY: a table has its size and then its operations, and the tests state their types.
    unsafe { table.cast::<F>().add(1 + number).read() }
}

/// A program with a domain on a NIC.
struct Program {
    domain: Handle,
    _fake: Fake,
}

impl Program {
    fn new() -> Self {
        static OPS: Ops<6> = Ops::new([null(); 6]);
        let fake = Fake::start(1);
        let target = AttachTarget {
            door: fake.doors[0].clone(),
            job: 7,
            reach: false,
            receives: RECEIVES,
        };
        let own = DomainOwn {
            domain: Arc::new(Domain::new().expect("there are descriptors")),
            target,
            is_virtual: true,
            gives_keys: true,
            progress: None,
        };
        let fid = FidDomain {
            fid: fid(FI_CLASS_DOMAIN, null_mut(), &OPS),
            ops: table(&OPS),
            mr: table(&OPS),
        };
        Self {
            domain: Handle(Object::give(fid, own)),
            _fake: fake,
        }
    }

    /// Requests that operations of peers are counted (`FI_RMA_EVENT`).
    fn count_peers(&self) {
        // SAFETY: the domain is open.
        let object = unsafe { objects::DomainObject::of(self.domain.0, FI_CLASS_DOMAIN) };
        let object = object.expect("it is one");
        let mut state = object
            .own
            .domain
            .lock()
            .expect("no test has failed with it");
        state.shared.counts = true;
    }

    fn region(&self, bytes: &mut [u8]) -> Handle {
        let (at, len) = (bytes.as_mut_ptr().cast(), bytes.len());
        let access = FI_REMOTE_READ | FI_REMOTE_WRITE;
        self.opened(|domain, out| unsafe {
            domains::register(domain, at, len, access, 0, 0, 0, out, null_mut())
        })
    }

    fn opened(&self, open: impl FnOnce(*mut c_void, *mut *mut c_void) -> c_int) -> Handle {
        let mut out = null_mut();
        assert_eq!(open(self.domain.0, &raw mut out), 0);
        Handle(out)
    }

    fn queue(&self) -> Handle {
        // SAFETY: the domain and the result are valid; here and below.
        self.opened(|domain, out| unsafe {
            events::open_queue(domain, null_mut(), out, null_mut())
        })
    }

    fn counter(&self) -> Handle {
        self.opened(|domain, out| unsafe { events::open_counter(domain, null(), out, null_mut()) })
    }

    fn vector(&self) -> Handle {
        self.opened(|domain, out| unsafe { vectors::open(domain, null_mut(), out, null_mut()) })
    }

    fn events(&self) -> Handle {
        self.opened(|_, out| unsafe { event_queues::open(null_mut(), null(), out, null_mut()) })
    }

    fn endpoint(&self) -> Handle {
        // SAFETY: all fields are numbers and pointers.
        let info: Info = unsafe { std::mem::zeroed() };
        self.opened(|domain, out| unsafe { endpoints::open(domain, &info, out, null_mut()) })
    }
}

/// `fi_bind` of any object.
fn bind(object: Handle, other: Handle, flags: u64) -> c_int {
    // SAFETY: every object begins with its `Fid`.
    let bind: Bind = operation(unsafe { (*object.0.cast::<Fid>()).ops }, 1);
    // SAFETY: both are open.
    unsafe { bind(object.0, other.0, flags) }
}

/// Closes an object, of type `T`, while a thread waits on it. Returns the result of the waiting
/// call.
fn closed_while<T, A: Send>(object: Handle, wait: fn(Handle) -> A) -> A {
    std::thread::scope(|scope| {
        let waits = scope.spawn(move || wait(object));
        let end = Instant::now() + SOON;
        while object.calls::<T>() == 0 {
            assert!(Instant::now() < end, "no call uses it");
            std::thread::yield_now();
        }
        // The thread is nearly always asleep by now. If it is not, its call must end all the same.
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(object.close(), 0);
        waits.join().expect("no panic")
    })
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: the domain is open, and closed once.
        drop(unsafe { objects::DomainObject::take(self.domain.0, FI_CLASS_DOMAIN) });
    }
}

#[test]
fn closing_ends_waits() {
    let program = Program::new();
    let interrupted = -(libc::EINTR as isize);
    let read = |queue: Handle| queue.sread(1, LONG);
    assert_eq!(closed_while::<Part, _>(program.queue(), read), interrupted);
    let wait = |counter: Handle| {
        let wait: CounterWait = counter.call(4);
        // SAFETY: it is a counter.
        unsafe { wait(counter.at(), 1, LONG) }
    };
    assert_eq!(
        closed_while::<Part, _>(program.counter(), wait),
        -libc::EINTR
    );
    let read = |events: Handle| {
        let (sread, mut event, mut bytes): (EventSread, _, _) = (events.call(3), 0, [0; 8]);
        let out = bytes.as_mut_ptr();
        // SAFETY: it is an event queue, and the results are valid.
        unsafe { sread(events.at(), &mut event, out.cast::<c_void>(), 8, LONG, 0) }
    };
    assert_eq!(
        closed_while::<event_queues::Own, _>(program.events(), read),
        interrupted
    );
}

/// A waiter does not read the queue that takes the slot of a closed one.
#[test]
fn a_slot_that_is_used_again_is_another_queue() {
    let program = Program::new();
    let queue = program.queue();
    // SAFETY: it is a queue; the reference is that of a call.
    let call = unsafe { PartObject::of(queue.at(), FI_CLASS_CQ) }.expect("it is open");
    assert_eq!(queue.close(), 0);
    let next = program.queue();
    let wait = Wait {
        part: &call.own,
        awaits: Awaited::Queue(call.own.slot),
        most: None,
    };
    let read = until(wait, |shared| shared.queues.get(call.own.slot).map(|_| ()));
    assert_eq!(read, Err(libc::EINTR));
    assert_eq!(next.close(), 0);
}

#[test]
fn a_signal_counts_once() {
    let program = Program::new();
    let queue = program.queue();
    let signal: Close = queue.call(5);
    // SAFETY: it is a queue.
    assert_eq!(unsafe { signal(queue.at()) }, 0);
    assert_eq!(queue.trywait(), -libc::EAGAIN, "it is signalled");
    assert_eq!(queue.trywait(), 0, "the signal was taken");
    // SAFETY: as above.
    assert_eq!(unsafe { signal(queue.at()) }, 0);
    assert_eq!(queue.sread(1, LONG), -(libc::EAGAIN as isize));
    assert_eq!(queue.trywait(), 0);
    assert_eq!(queue.close(), 0);
}

#[test]
fn a_read_without_room_does_not_wait() {
    let program = Program::new();
    let queue = program.queue();
    let begin = Instant::now();
    assert_eq!(queue.sread(0, LONG), -(libc::EAGAIN as isize));
    assert!(begin.elapsed() < SOON);
    assert_eq!(queue.close(), 0);
}

#[test]
fn injected_bytes_have_a_limit() {
    let program = Program::new();
    let ep = program.endpoint();
    let too_long = vec![0_u8; info::MOST_INJECT + 1];
    let (from, len) = (too_long.as_ptr().cast::<c_void>(), too_long.len());
    // SAFETY: it is an endpoint, and the bytes are valid.
    let answers = unsafe {
        let object = &*ep.at().cast::<FidEp>();
        let (messages, tagged) = (object.msg, object.tagged);
        let ep = ep.at();
        let iov = Iovec {
            base: from.cast_mut(),
            len,
        };
        let msg = Msg {
            msg_iov: &raw const iov,
            desc: null_mut(),
            iov_count: 1,
            addr: 0,
            context: null_mut(),
            data: 0,
        };
        [
            operation::<Inject>(messages, 6)(ep, from, len, 0),
            operation::<InjectData>(messages, 8)(ep, from, len, 0, 0),
            operation::<InjectData>(tagged, 6)(ep, from, len, 0, 0),
            operation::<Injects5>(tagged, 8)(ep, from, len, 0, 0, 0),
            operation::<Injects5>(object.rma, 6)(ep, from, len, 0, 0, 0),
            operation::<Injects6>(object.rma, 8)(ep, from, len, 0, 0, 0, 0),
            // Elements of eight bytes, to be added.
            operation::<InjectAtomic>(object.atomic, 3)(ep, from, len / 8 + 1, 0, 0, 0, 7, 2),
            operation::<SendMsg>(messages, 5)(ep, &raw const msg, FI_INJECT),
        ]
    };
    assert_eq!(answers, [-(libc::EMSGSIZE as isize); 8]);
    // At the limit the length is accepted; the call fails because no address vector is bound.
    // SAFETY: as above.
    let most = unsafe {
        let object = &*ep.at().cast::<FidEp>();
        operation::<Inject>(object.msg, 6)(ep.at(), from, info::MOST_INJECT, 0)
    };
    assert_eq!(most, -(libc::EINVAL as isize));
    assert_eq!(ep.close(), 0);
}

/// Operations that `fi_query_atomic` does not report are refused before any other check.
#[test]
fn unsupported_atomic_operations_are_refused() {
    let program = Program::new();
    let (ep, bytes) = (program.endpoint(), [0_u8; 32]);
    // SAFETY: it is an endpoint.
    let inject: InjectAtomic = operation(unsafe { (*ep.at().cast::<FidEp>()).atomic }, 3);
    for (datatype, op) in (-1..20).flat_map(|op| (-1..20).map(move |of| (of, op))) {
        let found = domains::elements_of(datatype, op, Form::Write);
        // Without an address vector, supported operations fail later.
        let errno = found.map_or(libc::EOPNOTSUPP, |_| libc::EINVAL);
        // SAFETY: the memory is that of the longest element.
        let begun = unsafe { inject(ep.at(), bytes.as_ptr().cast(), 1, 0, 0, 0, datatype, op) };
        assert_eq!(begun, -(errno as isize), "{datatype} {op}");
    }
    assert_eq!(ep.close(), 0);
}

#[test]
fn objects_of_other_classes_are_refused() {
    let program = Program::new();
    let (ep, queue, vector) = (program.endpoint(), program.queue(), program.vector());
    let (counter, events) = (program.counter(), program.events());
    let bind: Bind = operation(
        // SAFETY: every object begins with its `Fid`.
        unsafe { (*ep.at().cast::<Fid>()).ops },
        1,
    );
    // SAFETY: all objects are open, or null.
    unsafe {
        assert_eq!(bind(ep.at(), queue.at(), FI_SEND | FI_RECV), 0);
        assert_eq!(bind(ep.at(), vector.at(), 0), 0);
        assert_eq!(bind(ep.at(), counter.at(), FI_SEND), 0);
        assert_eq!(bind(ep.at(), events.at(), 0), 0);
        assert_eq!(bind(ep.at(), ep.at(), 0), -libc::ENOSYS);
        assert_eq!(bind(ep.at(), null_mut(), 0), -libc::EINVAL);
        assert_eq!(bind(queue.at(), vector.at(), 0), -libc::EINVAL);
        let mut out = null_mut();
        let domains = [ep.at(), null_mut()];
        for domain in domains {
            let opened = events::open_queue(domain, null_mut(), &raw mut out, null_mut());
            assert_eq!(opened, -libc::EINVAL);
        }
        let (sread, read): (Sread, Read) = (queue.call(3), queue.call(0));
        let mut entry = [0_u64; 8];
        let entry = entry.as_mut_ptr().cast::<c_void>();
        for other in [vector.at(), counter.at(), ep.at(), null_mut()] {
            assert_eq!(sread(other, entry, 1, null(), 0), -(libc::EINVAL as isize));
        }
        assert_eq!(read(queue.at(), null_mut(), 1), -(libc::EINVAL as isize));
        assert_eq!(vector.trywait(), -libc::EINVAL);
        assert_eq!(Handle(null_mut()).trywait(), -libc::EINVAL);
        let inject: Inject = operation((*ep.at().cast::<FidEp>()).msg, 6);
        let refused = inject(vector.at(), entry, 8, 0);
        assert_eq!(refused, -(libc::EINVAL as isize));
        let send: SendMsg = operation((*ep.at().cast::<FidEp>()).msg, 5);
        assert_eq!(send(ep.at(), null(), 0), -(libc::EINVAL as isize));
        let close_queue: Close = operation((*queue.at().cast::<Fid>()).ops, 0);
        assert_eq!(close_queue(vector.at()), -libc::EINVAL, "and is still open");
    }
    let other = Program::new();
    let foreign = other.queue();
    // SAFETY: both are open.
    let bound = unsafe { bind(ep.at(), foreign.at(), FI_SEND) };
    assert_eq!(bound, -libc::EINVAL, "its slot is that of another queue");
    for object in [ep, queue, vector, counter, events, foreign] {
        assert_eq!(object.close(), 0);
    }
}

#[test]
fn operations_of_peers_are_counted_on_request() {
    let program = Program::new();
    let mut bytes = [0; 64];
    let (ep, counter) = (program.endpoint(), program.counter());
    let region = program.region(&mut bytes);
    for object in [ep, region] {
        let bound = bind(object, counter, FI_REMOTE_WRITE);
        assert_eq!(bound, -libc::EOPNOTSUPP, "it was not requested");
    }
    program.count_peers();
    for object in [ep, region] {
        assert_eq!(bind(object, counter, FI_REMOTE_WRITE | FI_REMOTE_READ), 0);
    }
    assert_eq!(bind(region, counter, FI_SEND), -libc::EINVAL);
    assert_eq!(
        bind(region, program.queue(), FI_REMOTE_WRITE),
        -libc::EINVAL
    );
    assert_eq!(bind(region, ep, 0), 0);
    let other = Program::new();
    other.count_peers();
    let foreign = other.counter();
    assert_eq!(bind(region, foreign, FI_REMOTE_WRITE), -libc::EINVAL);
    for object in [region, ep, counter, foreign] {
        assert_eq!(object.close(), 0);
    }
}

/// Objects of other providers have the same classes as this provider's, but other contents.
#[test]
fn objects_of_other_providers_are_refused() {
    static OPS: Ops<6> = Ops::new([null(); 6]);
    let program = Program::new();
    let mut bytes = [0; 64];
    let (ep, events, region) = (
        program.endpoint(),
        program.events(),
        program.region(&mut bytes),
    );
    let own = [program.queue(), program.counter(), program.vector()];
    let invalid = -libc::EINVAL;
    // Only the header is allocated: a read beyond it is out of bounds.
    let foreign = |fclass: usize, ops: Table| {
        let context = null_mut();
        let fid = Box::leak(Box::new(Fid {
            fclass,
            context,
            ops,
        }));
        Handle(std::ptr::from_mut(fid).cast())
    };
    let classes = [FI_CLASS_EQ, FI_CLASS_CQ, FI_CLASS_CNTR, FI_CLASS_AV];
    for class in classes {
        for ops in [table(&OPS), null()] {
            let other = foreign(class, ops);
            assert_eq!(bind(ep, other, FI_SEND), invalid, "class {class}");
            assert_eq!(
                bind(region, other, FI_REMOTE_WRITE),
                invalid,
                "class {class}"
            );
            assert_eq!(other.trywait(), invalid, "class {class}");
            for object in own.into_iter().chain([events]) {
                // SAFETY: every object begins with its `Fid`.
                let close: Close = operation(unsafe { (*object.0.cast::<Fid>()).ops }, 0);
                // SAFETY: the header is valid.
                assert_eq!(unsafe { close(other.at()) }, invalid, "class {class}");
            }
        }
    }
    assert_eq!(bind(region, foreign(FI_CLASS_EP, table(&OPS)), 0), invalid);
    let domain = foreign(FI_CLASS_DOMAIN, table(&OPS)).at();
    let mut out = null_mut();
    // SAFETY: the header is valid, and so is the result.
    let opened = unsafe {
        let info: Info = std::mem::zeroed();
        [
            endpoints::open(domain, &info, &raw mut out, null_mut()),
            events::open_queue(domain, null_mut(), &raw mut out, null_mut()),
            events::open_counter(domain, null(), &raw mut out, null_mut()),
            vectors::open(domain, null_mut(), &raw mut out, null_mut()),
            domains::register(domain, null(), 0, 0, 0, 0, 0, &raw mut out, null_mut()),
        ]
    };
    assert_eq!(opened, [invalid; 5]);
    for object in [ep, events, region].into_iter().chain(own) {
        assert_eq!(object.close(), 0);
    }
}

#[test]
fn objects_with_bindings_stay_open() {
    let program = Program::new();
    program.count_peers();
    let mut bytes = [0; 64];
    let (ep, region) = (program.endpoint(), program.region(&mut bytes));
    let (queue, vector, events) = (program.queue(), program.vector(), program.events());
    let (counter, of_memory) = (program.counter(), program.counter());
    assert_eq!(bind(ep, queue, FI_SEND), 0);
    assert_eq!(bind(ep, vector, 0), 0);
    assert_eq!(bind(ep, events, 0), 0);
    assert_eq!(bind(ep, counter, FI_RECV), 0);
    assert_eq!(bind(region, of_memory, FI_REMOTE_WRITE), 0);
    for object in [queue, vector, events, counter, of_memory] {
        assert_eq!(object.close(), -libc::EBUSY);
    }
    assert_eq!(queue.sread(0, 0), -(libc::EAGAIN as isize), "it is open");
    assert_eq!(region.close(), 0);
    assert_eq!(of_memory.close(), 0);
    assert_eq!(counter.close(), -libc::EBUSY);
    assert_eq!(ep.close(), 0);
    for object in [queue, vector, events, counter] {
        assert_eq!(object.close(), 0);
    }
}

/// Triggered operations are refused with `ENOSYS` or `EOPNOTSUPP`, and a line in the log.
#[test]
fn triggered_operations_are_refused() {
    type Control = unsafe extern "C" fn(Fids, c_int, *mut c_void) -> c_int;
    let program = Program::new();
    let (ep, from) = (program.endpoint(), [0_u8; 8]);
    let iov = Iovec {
        base: from.as_ptr().cast_mut().cast(),
        len: from.len(),
    };
    let msg = Msg {
        msg_iov: &raw const iov,
        desc: null_mut(),
        iov_count: 1,
        addr: 0,
        context: null_mut(),
        data: 0,
    };
    let table = domains::OPS.calls[2];
    // SAFETY: it is the third operation of a domain, and the call reads no argument.
    let control: Control = unsafe { std::mem::transmute(table) };
    // SAFETY: the objects are open, and the message is valid.
    unsafe {
        let work = [FI_QUEUE_WORK, FI_CANCEL_WORK, FI_FLUSH_WORK];
        let refused = work.map(|command| control(program.domain.at(), command, null_mut()));
        assert_eq!(refused, [-libc::ENOSYS; 3]);
        let send: SendMsg = operation((*ep.at().cast::<FidEp>()).msg, 5);
        let sent = send(ep.at(), &raw const msg, FI_TRIGGER);
        assert_eq!(sent, -(libc::EOPNOTSUPP as isize));
    }
    assert_eq!(ep.close(), 0);
}
