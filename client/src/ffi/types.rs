//! Types and constants that C and Rust exchange.

use std::ffi::c_int;

use phitwire_framing::door::{AtomicOp, Completion, Local, Reduction, Remote, Status};

/// Success.
pub const PHW_OK: c_int = 0;
/// No completion (yet).
pub const PHW_NOTHING: c_int = 1;
/// Too many commands are in flight: take completions first.
pub const PHW_FULL: c_int = -1;
/// No such command: a put has 1 to 64 bytes.
pub const PHW_NO_COMMAND: c_int = -2;
/// Some of the bytes are outside of the program's data.
pub const PHW_OUT_OF_RANGE: c_int = -3;
/// The NIC is gone: attach again once it runs again.
pub const PHW_GONE: c_int = -4;
/// The NIC has violated the protocol: leave it.
pub const PHW_BROKEN: c_int = -5;
/// The system call for waiting failed.
pub const PHW_WAIT: c_int = -6;
/// The program was refused.
pub const PHW_REFUSED: c_int = -7;
/// A required pointer is null, or a code is invalid.
pub const PHW_ARGUMENT: c_int = -8;
/// A bug in this library.
pub const PHW_PANIC: c_int = -9;

/// The NIC supports atomic operations. Abilities are or-ed.
pub const PHW_HAS_ATOMICS: c_int = 1;
/// It supports puts with an event for the target program.
pub const PHW_HAS_EVENTS: c_int = 2;
/// It supports block transfers.
pub const PHW_HAS_BLOCKS: c_int = 4;
/// It supports sends and receives.
pub const PHW_HAS_MESSAGES: c_int = 8;
/// It supports collective operations.
pub const PHW_HAS_COLLECTIVES: c_int = 16;

/// Stands for any free member number.
pub const PHW_ANY_MEMBER: u8 = 255;
/// Others may put. Rights on registered memory are or-ed.
pub const PHW_MAY_PUT: u8 = 1;
/// Others may get.
pub const PHW_MAY_GET: u8 = 2;
/// Others may use atomic operations.
pub const PHW_MAY_ATOMIC: u8 = 4;

/// An address in the registered memory of a program of the same job at another NIC.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PhwRemote {
    /// Byte offset in the registered part.
    pub offset: u64,
    /// Processor number of the NIC.
    pub processor: u16,
    /// The handle from the completion of phw_register there.
    pub handle: u16,
}

/// A part of the program's own data.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PhwLocal {
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// Kinds of completions.
#[repr(u8)]
#[derive(Clone, Copy, Debug, Default)]
pub enum PhwKind {
    /// A command has ended. Fields: name, status, word, bytes.
    #[default]
    End,
    /// A receive has its message, or will have none. Fields: name, status, processor, bytes.
    Received,
    /// A put with an event has arrived. Fields: processor, handle, offset, bytes.
    Landed,
    /// A block with an event has arrived. Fields: processor, handle, word.
    Told,
}

/// A completion; fields that its kind lacks are zero.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PhwCompletion {
    /// Name of the command or the receive.
    pub name: u64,
    /// The old value of an atomic operation, the handle of registered memory, whether a receive was
    /// taken back (1), the result of a collective operation or the processor that prevented one;
    /// the word of an event.
    pub word: u64,
    /// Bytes that have arrived; for collective minima and maxima: the location.
    pub bytes: u64,
    /// Byte offset in the registered part.
    pub offset: u64,
    /// Processor number of the origin.
    pub processor: u16,
    /// Handle of the registered part.
    pub handle: u16,
    /// One of PhwKind.
    pub kind: u8,
    /// One of PhwStatus.
    pub status: u8,
}

/// How a command ended; phw_status_name names it. The guide's page on the client API has a table of
/// causes and remedies.
#[repr(u8)]
#[derive(Clone, Copy, Debug)]
pub enum PhwStatus {
    /// The command was executed.
    Done,
    /// The NIC does not support the operation: see phw_operations.
    Unsupported,
    /// The entry is not a valid command. The functions of this library post no such entry.
    Malformed,
    /// The processor does not exist.
    NoProcessor,
    /// Part of the local range is outside of the program's data.
    NotInSegment,
    /// The operation does not allow this length (BlackWidow: or it crosses a line of 32 bytes).
    Length,
    /// The part to register does not begin at a multiple of 64, or a remote offset is too large.
    Offset,
    /// The handle or the engine belongs to another program, or to none.
    NotYours,
    /// All handles, or all slots for receives, are in use.
    TooMany,
    /// The handle does not exist at the target: mistyped, or its program has ended.
    NoHandle,
    /// The handle, or the engine, at the target belongs to another job.
    WrongKey,
    /// Part of the remote range is outside of the registered memory.
    OutOfBounds,
    /// The remote address is not aligned as the operation requires.
    Misaligned,
    /// The registration does not grant this access (PHW_MAY_PUT and so on).
    Forbidden,
    /// The request arrived damaged and was not executed: try again.
    Damaged,
    /// The target has no room now, or the engine is in use: try again.
    Busy,
    /// The target posted no receive during all attempts (two seconds).
    NoReceive,
    /// The source gave up before the whole message was sent.
    Aborted,
    /// No response within the request time-out (default: 20 s): executed or not, or still to be.
    TimedOut,
    /// The response arrived damaged: the operation was executed or not.
    DamagedAnswer,
    /// The participants of a collective operation joined different ones; the next one works.
    Mismatch,
    /// A participant left the collective operation: the word is its processor number.
    Left,
    /// A participant of a collective operation was late: the word is its processor number.
    Absent,
    /// The NIC cannot access the program's own memory: not mapped, or not permitted.
    Unreachable,
}

/// How an atomic operation changes a word.
#[repr(u8)]
#[allow(missing_docs, reason = "documented at `AtomicOp`")]
#[derive(Clone, Copy, Debug)]
pub enum PhwAtomic {
    And,
    Or,
    Xor,
    Add,
    AndXor,
    Swap,
    CompareSwap,
    SignedMin,
    SignedMax,
    FloatAdd,
    FloatMin,
    FloatMax,
}

/// How a collective operation combines the words of all.
#[repr(u8)]
#[allow(missing_docs, reason = "documented at `Reduction`")]
#[derive(Clone, Copy, Debug)]
pub enum PhwReduction {
    Barrier = 0,
    AndI32 = 1,
    AndI64 = 2,
    OrI32 = 5,
    OrI64 = 6,
    XorI32 = 9,
    XorI64 = 10,
    SumI32 = 13,
    SumI64 = 14,
    SumF32 = 15,
    SumF64 = 16,
    MinI32 = 17,
    MinI64 = 18,
    MinF32 = 19,
    MinF64 = 20,
    MaxI32 = 21,
    MaxI64 = 22,
    MaxF32 = 23,
    MaxF64 = 24,
}

/// Asserts that the enumeration for C has the values of ours.
macro_rules! same {
    ($theirs:ident, $ours:ident: $($value:ident)+) => {
        const _: () = assert!($ours::ALL.len() == [$($theirs::$value),+].len());
        $(const _: () = assert!($ours::$value as u8 == $theirs::$value as u8);)+
    };
}
same!(PhwStatus, Status: Done Unsupported Malformed NoProcessor NotInSegment Length Offset NotYours
    TooMany NoHandle WrongKey OutOfBounds Misaligned Forbidden Damaged Busy NoReceive Aborted
    TimedOut DamagedAnswer Mismatch Left Absent Unreachable);
same!(PhwReduction, Reduction: Barrier AndI32 AndI64 OrI32 OrI64 XorI32 XorI64 SumI32 SumI64 SumF32
    SumF64 MinI32 MinI64 MinF32 MinF64 MaxI32 MaxI64 MaxF32 MaxF64);
same!(PhwAtomic, AtomicOp: And Or Xor Add AndXor Swap CompareSwap SignedMin SignedMax FloatAdd
    FloatMin FloatMax);

impl From<PhwRemote> for Remote {
    fn from(remote: PhwRemote) -> Self {
        Self {
            processor: remote.processor,
            handle: remote.handle,
            offset: remote.offset,
        }
    }
}

impl From<PhwLocal> for Local {
    fn from(local: PhwLocal) -> Self {
        Self {
            offset: local.offset,
            bytes: local.bytes,
        }
    }
}

impl From<Completion> for PhwCompletion {
    fn from(completion: Completion) -> Self {
        let of = |kind| Self {
            kind: kind as u8,
            ..Self::default()
        };
        match completion {
            Completion::End {
                name,
                status,
                word,
                bytes,
            } => Self {
                name,
                status: status as u8,
                word,
                bytes,
                ..of(PhwKind::End)
            },
            Completion::Received {
                name,
                status,
                processor,
                bytes,
            } => Self {
                name,
                status: status as u8,
                processor,
                bytes,
                ..of(PhwKind::Received)
            },
            Completion::PutEvent {
                processor,
                handle,
                offset,
                bytes,
            } => Self {
                processor,
                handle,
                offset,
                bytes,
                ..of(PhwKind::Landed)
            },
            Completion::BlockEvent {
                processor,
                handle,
                word,
            } => Self {
                processor,
                handle,
                word,
                ..of(PhwKind::Told)
            },
        }
    }
}
