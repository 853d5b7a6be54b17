/* A program's interface to a phitwire network interface: see client/README.md.
 * Written by cbindgen from client/src/ffi; do not edit. */

#ifndef PHITWIRE_H
#define PHITWIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Success.
 */
#define PHW_OK 0

/**
 * No completion (yet).
 */
#define PHW_NOTHING 1

/**
 * Too many commands are in flight: take completions first.
 */
#define PHW_FULL -1

/**
 * No such command: a put has 1 to 64 bytes.
 */
#define PHW_NO_COMMAND -2

/**
 * Some of the bytes are outside of the program's data.
 */
#define PHW_OUT_OF_RANGE -3

/**
 * The NIC is gone: attach again once it runs again.
 */
#define PHW_GONE -4

/**
 * The NIC has violated the protocol: leave it.
 */
#define PHW_BROKEN -5

/**
 * The system call for waiting failed.
 */
#define PHW_WAIT -6

/**
 * The program was refused.
 */
#define PHW_REFUSED -7

/**
 * A required pointer is null, or a code is invalid.
 */
#define PHW_ARGUMENT -8

/**
 * A bug in this library.
 */
#define PHW_PANIC -9

/**
 * The NIC supports atomic operations. Abilities are or-ed.
 */
#define PHW_HAS_ATOMICS 1

/**
 * It supports puts with an event for the target program.
 */
#define PHW_HAS_EVENTS 2

/**
 * It supports block transfers.
 */
#define PHW_HAS_BLOCKS 4

/**
 * It supports sends and receives.
 */
#define PHW_HAS_MESSAGES 8

/**
 * It supports collective operations.
 */
#define PHW_HAS_COLLECTIVES 16

/**
 * Stands for any free member number.
 */
#define PHW_ANY_MEMBER 255

/**
 * Others may put. Rights on registered memory are or-ed.
 */
#define PHW_MAY_PUT 1

/**
 * Others may get.
 */
#define PHW_MAY_GET 2

/**
 * Others may use atomic operations.
 */
#define PHW_MAY_ATOMIC 4

/**
 * Kinds of completions.
 */
enum PhwKind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * A command has ended. Fields: name, status, word, bytes.
   */
  PHW_KIND_END,
  /**
   * A receive has its message, or will have none. Fields: name, status, processor, bytes.
   */
  PHW_KIND_RECEIVED,
  /**
   * A put with an event has arrived. Fields: processor, handle, offset, bytes.
   */
  PHW_KIND_LANDED,
  /**
   * A block with an event has arrived. Fields: processor, handle, word.
   */
  PHW_KIND_TOLD,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PhwKind PhwKind;
#else
typedef uint8_t PhwKind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How a command ended; phw_status_name names it. The guide's page on the client API has a table of
 * causes and remedies.
 */
enum PhwStatus
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The command was executed.
   */
  PHW_STATUS_DONE,
  /**
   * The NIC does not support the operation: see phw_operations.
   */
  PHW_STATUS_UNSUPPORTED,
  /**
   * The entry is not a valid command. The functions of this library post no such entry.
   */
  PHW_STATUS_MALFORMED,
  /**
   * The processor does not exist.
   */
  PHW_STATUS_NO_PROCESSOR,
  /**
   * Part of the local range is outside of the program's data.
   */
  PHW_STATUS_NOT_IN_SEGMENT,
  /**
   * The operation does not allow this length (BlackWidow: or it crosses a line of 32 bytes).
   */
  PHW_STATUS_LENGTH,
  /**
   * The part to register does not begin at a multiple of 64, or a remote offset is too large.
   */
  PHW_STATUS_OFFSET,
  /**
   * The handle or the engine belongs to another program, or to none.
   */
  PHW_STATUS_NOT_YOURS,
  /**
   * All handles, or all slots for receives, are in use.
   */
  PHW_STATUS_TOO_MANY,
  /**
   * The handle does not exist at the target: mistyped, or its program has ended.
   */
  PHW_STATUS_NO_HANDLE,
  /**
   * The handle, or the engine, at the target belongs to another job.
   */
  PHW_STATUS_WRONG_KEY,
  /**
   * Part of the remote range is outside of the registered memory.
   */
  PHW_STATUS_OUT_OF_BOUNDS,
  /**
   * The remote address is not aligned as the operation requires.
   */
  PHW_STATUS_MISALIGNED,
  /**
   * The registration does not grant this access (PHW_MAY_PUT and so on).
   */
  PHW_STATUS_FORBIDDEN,
  /**
   * The request arrived damaged and was not executed: try again.
   */
  PHW_STATUS_DAMAGED,
  /**
   * The target has no room now, or the engine is in use: try again.
   */
  PHW_STATUS_BUSY,
  /**
   * The target posted no receive during all attempts (two seconds).
   */
  PHW_STATUS_NO_RECEIVE,
  /**
   * The source gave up before the whole message was sent.
   */
  PHW_STATUS_ABORTED,
  /**
   * No response within the request time-out (default: 20 s): executed or not, or still to be.
   */
  PHW_STATUS_TIMED_OUT,
  /**
   * The response arrived damaged: the operation was executed or not.
   */
  PHW_STATUS_DAMAGED_ANSWER,
  /**
   * The participants of a collective operation joined different ones; the next one works.
   */
  PHW_STATUS_MISMATCH,
  /**
   * A participant left the collective operation: the word is its processor number.
   */
  PHW_STATUS_LEFT,
  /**
   * A participant of a collective operation was late: the word is its processor number.
   */
  PHW_STATUS_ABSENT,
  /**
   * The NIC cannot access the program's own memory: not mapped, or not permitted.
   */
  PHW_STATUS_UNREACHABLE,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PhwStatus PhwStatus;
#else
typedef uint8_t PhwStatus;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How an atomic operation changes a word.
 */
enum PhwAtomic
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  PHW_ATOMIC_AND,
  PHW_ATOMIC_OR,
  PHW_ATOMIC_XOR,
  PHW_ATOMIC_ADD,
  PHW_ATOMIC_AND_XOR,
  PHW_ATOMIC_SWAP,
  PHW_ATOMIC_COMPARE_SWAP,
  PHW_ATOMIC_SIGNED_MIN,
  PHW_ATOMIC_SIGNED_MAX,
  PHW_ATOMIC_FLOAT_ADD,
  PHW_ATOMIC_FLOAT_MIN,
  PHW_ATOMIC_FLOAT_MAX,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PhwAtomic PhwAtomic;
#else
typedef uint8_t PhwAtomic;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How a collective operation combines the words of all.
 */
enum PhwReduction
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  PHW_REDUCTION_BARRIER = 0,
  PHW_REDUCTION_AND_I32 = 1,
  PHW_REDUCTION_AND_I64 = 2,
  PHW_REDUCTION_OR_I32 = 5,
  PHW_REDUCTION_OR_I64 = 6,
  PHW_REDUCTION_XOR_I32 = 9,
  PHW_REDUCTION_XOR_I64 = 10,
  PHW_REDUCTION_SUM_I32 = 13,
  PHW_REDUCTION_SUM_I64 = 14,
  PHW_REDUCTION_SUM_F32 = 15,
  PHW_REDUCTION_SUM_F64 = 16,
  PHW_REDUCTION_MIN_I32 = 17,
  PHW_REDUCTION_MIN_I64 = 18,
  PHW_REDUCTION_MIN_F32 = 19,
  PHW_REDUCTION_MIN_F64 = 20,
  PHW_REDUCTION_MAX_I32 = 21,
  PHW_REDUCTION_MAX_I64 = 22,
  PHW_REDUCTION_MAX_F32 = 23,
  PHW_REDUCTION_MAX_F64 = 24,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PhwReduction PhwReduction;
#else
typedef uint8_t PhwReduction;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A network interface (NIC) that the program is attached to. One thread at a time may use it.
 */
typedef struct PhwNic PhwNic;

/**
 * An address in the registered memory of a program of the same job at another NIC.
 */
typedef struct PhwRemote {
  /**
   * Byte offset in the registered part.
   */
  uint64_t offset;
  /**
   * Processor number of the NIC.
   */
  uint16_t processor;
  /**
   * The handle from the completion of phw_register there.
   */
  uint16_t handle;
} PhwRemote;

/**
 * A part of the program's own data.
 */
typedef struct PhwLocal {
  /**
   * First byte.
   */
  uint64_t offset;
  /**
   * Length in bytes.
   */
  uint64_t bytes;
} PhwLocal;

/**
 * A completion; fields that its kind lacks are zero.
 */
typedef struct PhwCompletion {
  /**
   * Name of the command or the receive.
   */
  uint64_t name;
  /**
   * The old value of an atomic operation, the handle of registered memory, whether a receive was
   * taken back (1), the result of a collective operation or the processor that prevented one;
   * the word of an event.
   */
  uint64_t word;
  /**
   * Bytes that have arrived; for collective minima and maxima: the location.
   */
  uint64_t bytes;
  /**
   * Byte offset in the registered part.
   */
  uint64_t offset;
  /**
   * Processor number of the origin.
   */
  uint16_t processor;
  /**
   * Handle of the registered part.
   */
  uint16_t handle;
  /**
   * One of PhwKind.
   */
  uint8_t kind;
  /**
   * One of PhwStatus.
   */
  uint8_t status;
} PhwCompletion;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Attaches to the NIC whose door is the socket at `door`, for a program of `job`: member 0 to 254
 * of those there, or PHW_ANY_MEMBER, with `data_bytes` bytes of data memory, rounded up to a
 * multiple of 64 KiB (all of them usable). On failure `why` (which may be null) gets up to
 * `why_bytes` bytes of text, zero-terminated.
 *
 * # Safety
 * Each pointer is null or valid: `door` is zero-terminated, `nic` has room for a pointer, `why`
 * has `why_bytes` bytes.
 */
int phw_attach(const char *door,
               uint64_t job,
               uint8_t member,
               uint64_t data_bytes,
               struct PhwNic **nic,
               char *why,
               uintptr_t why_bytes);

/**
 * Detaches from a NIC: the program's registrations end, and so do its commands in flight.
 *
 * # Safety
 * `nic` is null or a NIC of `phw_attach`, and is not used again.
 */
void phw_leave(struct PhwNic *nic);

/**
 * The NIC's processor number.
 *
 * # Safety
 * `nic` is null or a NIC of `phw_attach`. The same holds for the other functions with this
 * parameter.
 */
int phw_processor(struct PhwNic *nic);

/**
 * The program's member number in the job on this NIC.
 */
int phw_member(struct PhwNic *nic);

/**
 * Longest put or get, in bytes.
 */
int phw_longest_put(struct PhwNic *nic);

/**
 * What the NIC supports besides puts and gets: `PHW_HAS_ATOMICS` and so on, or-ed.
 */
int phw_operations(struct PhwNic *nic);

/**
 * Copies `bytes` bytes of the program's data, from byte `offset`, to `out`.
 *
 * # Safety
 * `out` has `bytes` bytes.
 */
int phw_read(struct PhwNic *nic, uint64_t offset, uint8_t *out, uintptr_t bytes);

/**
 * Copies `bytes` bytes of `data` to byte `offset` of the program's data.
 *
 * # Safety
 * `data` has `bytes` bytes.
 */
int phw_write(struct PhwNic *nic, uint64_t offset, const uint8_t *data, uintptr_t bytes);

/**
 * The word of the program's data at byte `offset`, a multiple of eight: for example a flag that
 * others put. Access it only with __atomic functions; null if there is no such word.
 */
uint64_t *phw_word(struct PhwNic *nic, uint64_t offset);

/**
 * The virtual time in nanoseconds since the start of the lab; PHW_NOTHING if the lab is not
 * virtual.
 *
 * # Safety
 * `ns` has room for a word.
 */
int phw_time(struct PhwNic *nic, uint64_t *ns);

/**
 * In a virtual lab, waits until something arrives, a put into the program's memory included, or
 * for `most_ns` nanoseconds of virtual time: for programs that poll a word. Otherwise returns at
 * once.
 */
int phw_pause(struct PhwNic *nic, uint64_t most_ns);

/**
 * In a virtual lab, waits for `ns` nanoseconds of virtual time. Otherwise returns at once.
 */
int phw_sleep(struct PhwNic *nic, uint64_t ns);

/**
 * Writes 1 to 64 bytes to `to`. With `event`, the target program gets PHW_KIND_LANDED.
 *
 * # Safety
 * `data` has `bytes` bytes.
 */
int phw_put(struct PhwNic *nic,
            uint64_t name,
            struct PhwRemote to,
            const uint8_t *data,
            uintptr_t bytes,
            bool event);

/**
 * Reads up to 64 remote bytes into the program's data.
 */
int phw_get(struct PhwNic *nic, uint64_t name, struct PhwRemote from, struct PhwLocal into);

/**
 * Changes a 64-bit word at `at`, by one of PhwAtomic; with `fetch`, the completion returns its old
 * value.
 */
int phw_atomic(struct PhwNic *nic,
               uint64_t name,
               struct PhwRemote at,
               uint8_t op,
               uint64_t a,
               uint64_t b,
               bool fetch);

/**
 * Writes data of the program to `to`. Unless `event` is null, the target program gets the word it
 * points to (PHW_KIND_TOLD) when all bytes are in its memory.
 *
 * # Safety
 * `event` is null or points to a word.
 */
int phw_block_put(struct PhwNic *nic,
                  uint64_t name,
                  struct PhwRemote to,
                  struct PhwLocal from,
                  const uint64_t *event);

/**
 * Reads remote bytes into the program's data.
 */
int phw_block_get(struct PhwNic *nic, uint64_t name, struct PhwRemote from, struct PhwLocal into);

/**
 * Sends data of the program to a receive of another program of the job.
 */
int phw_send(struct PhwNic *nic,
             uint64_t name,
             uint16_t processor,
             uint8_t member,
             struct PhwLocal from);

/**
 * Posts a buffer for a message (PHW_KIND_RECEIVED).
 */
int phw_receive(struct PhwNic *nic, uint64_t name, struct PhwLocal into);

/**
 * Cancels the receive called `name`; the completion's word is 1 if it had no message yet, else 0.
 */
int phw_take_back(struct PhwNic *nic, uint64_t name);

/**
 * Lets the programs of the job access a part of the data that begins at a multiple of 64, with
 * or-ed rights (PHW_MAY_PUT ...); the completion's word is its handle.
 */
int phw_register(struct PhwNic *nic, uint64_t name, struct PhwLocal part, uint8_t rights);

/**
 * Ends a registration.
 */
int phw_deregister(struct PhwNic *nic, uint64_t name, uint16_t handle);

/**
 * Makes posted commands visible to the NIC; phw_wait and an empty phw_poll do too.
 */
int phw_flush(struct PhwNic *nic);

/**
 * The oldest completion; PHW_NOTHING if there is none.
 *
 * # Safety
 * `out` is null or has room for a completion.
 */
int phw_poll(struct PhwNic *nic, struct PhwCompletion *out);

/**
 * The oldest completion; sleeps until there is one. PHW_NOTHING after `timeout_ms` milliseconds
 * (negative: never), and when there is room again for a command refused with PHW_FULL.
 *
 * # Safety
 * `out` is null or has room for a completion.
 */
int phw_wait(struct PhwNic *nic, int64_t timeout_ms, struct PhwCompletion *out);

/**
 * For programs with their own event loop: requests a wake. 1: the program may sleep until phw_fd
 * or phw_socket is readable; 0: there is something to poll. In both cases call phw_disarm
 * afterwards.
 */
int phw_arm(struct PhwNic *nic);

/**
 * Ends the request of phw_arm: the program is awake.
 */
int phw_disarm(struct PhwNic *nic);

/**
 * A descriptor that is readable when the NIC has woken the program.
 */
int phw_fd(struct PhwNic *nic);

/**
 * A descriptor that is readable when the NIC is gone.
 */
int phw_socket(struct PhwNic *nic);

/**
 * The name of a function's return value, for messages: "ok" for PHW_OK, "out_of_range" for
 * PHW_OUT_OF_RANGE; "unknown" for other numbers. Never null; do not free it.
 */
const char *phw_error_name(int code);

/**
 * Copies the name of one of PhwStatus, zero-terminated, up to `bytes` bytes.
 *
 * # Safety
 * `out` has `bytes` bytes.
 */
int phw_status_name(uint8_t status, char *out, uintptr_t bytes);

/**
 * Makes the NIC node number `rank` of a tree over the NICs whose numbers are in the data, two
 * bytes each: engine 0 to 3, up to `branching` children (1 to 32), an `epoch` that no earlier tree
 * of the engine had, and how long to wait for others. All but `rank` is the same for all.
 */
int phw_collective_set_up(struct PhwNic *nic,
                          uint64_t name,
                          uint8_t engine,
                          uint16_t rank,
                          uint8_t branching,
                          uint32_t epoch,
                          uint32_t patience_ms,
                          struct PhwLocal processors);

/**
 * Joins the engine's next operation: one of PhwReduction, the same for all. The completion's word
 * is the result.
 */
int phw_collective_join(struct PhwNic *nic,
                        uint64_t name,
                        uint8_t engine,
                        uint8_t reduction,
                        uint64_t word,
                        uint64_t location);

/**
 * Releases the engine when nothing is in flight there.
 */
int phw_collective_leave(struct PhwNic *nic, uint64_t name, uint8_t engine);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* PHITWIRE_H */
