/* A program's way into a network interface of phitwire: see client/README.md.
 * Written by cbindgen from client/src/ffi; do not edit. */

#ifndef PHITWIRE_H
#define PHITWIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * It was done.
 */
#define PHW_OK 0

/**
 * There is no completion (yet).
 */
#define PHW_NOTHING 1

/**
 * As many commands are under way as can be: take completions first.
 */
#define PHW_FULL -1

/**
 * There is no such command: a put has 1 to 64 bytes.
 */
#define PHW_NO_COMMAND -2

/**
 * Some of the bytes are not in the program's data.
 */
#define PHW_OUT_OF_RANGE -3

/**
 * The network interface is gone: attach anew once it runs again.
 */
#define PHW_GONE -4

/**
 * The network interface has done what it must not: leave it.
 */
#define PHW_BROKEN -5

/**
 * The system does not let the program wait.
 */
#define PHW_WAIT -6

/**
 * The program was not let in.
 */
#define PHW_REFUSED -7

/**
 * A pointer is null, or a code is none.
 */
#define PHW_ARGUMENT -8

/**
 * A mistake in this library.
 */
#define PHW_PANIC -9

/**
 * The network interface has atomic operations. What it has is or-ed.
 */
#define PHW_HAS_ATOMICS 1

/**
 * It has puts that tell the program there.
 */
#define PHW_HAS_EVENTS 2

/**
 * It has block transfers.
 */
#define PHW_HAS_BLOCKS 4

/**
 * It has sends and receives.
 */
#define PHW_HAS_MESSAGES 8

/**
 * It has collective operations.
 */
#define PHW_HAS_COLLECTIVES 16

/**
 * The member that stands for "whichever is free".
 */
#define PHW_ANY_MEMBER 255

/**
 * Others may put. Rights of registered memory are or-ed.
 */
#define PHW_MAY_PUT 1

/**
 * Others may get.
 */
#define PHW_MAY_GET 2

/**
 * Others may do atomic operations.
 */
#define PHW_MAY_ATOMIC 4

/**
 * What a completion is of.
 */
enum PhwKind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * A command has ended: name, status, word, bytes.
   */
  PHW_KIND_END,
  /**
   * A receive has its message, or will have none: name, status, processor, bytes.
   */
  PHW_KIND_RECEIVED,
  /**
   * A put that asked for an event is here: processor, handle, offset, bytes.
   */
  PHW_KIND_LANDED,
  /**
   * A block that asked for an event is here: processor, handle, word.
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
 * How a command ended; phw_status_name names it.
 */
enum PhwStatus
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  PHW_STATUS_DONE,
  PHW_STATUS_UNSUPPORTED,
  PHW_STATUS_MALFORMED,
  PHW_STATUS_NO_PROCESSOR,
  PHW_STATUS_NOT_IN_SEGMENT,
  PHW_STATUS_LENGTH,
  PHW_STATUS_OFFSET,
  PHW_STATUS_NOT_YOURS,
  PHW_STATUS_TOO_MANY,
  PHW_STATUS_NO_HANDLE,
  PHW_STATUS_WRONG_KEY,
  PHW_STATUS_OUT_OF_BOUNDS,
  PHW_STATUS_MISALIGNED,
  PHW_STATUS_FORBIDDEN,
  PHW_STATUS_DAMAGED,
  PHW_STATUS_BUSY,
  PHW_STATUS_NO_RECEIVE,
  PHW_STATUS_ABORTED,
  PHW_STATUS_TIMED_OUT,
  PHW_STATUS_DAMAGED_ANSWER,
  PHW_STATUS_MISMATCH,
  PHW_STATUS_LEFT,
  PHW_STATUS_ABSENT,
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
 * How the words of all become one.
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
 * A network interface that the program is attached to. One thread at a time may use it.
 */
typedef struct PhwNic PhwNic;

/**
 * An address in the memory of another network interface's programs, of the same job.
 */
typedef struct PhwRemote {
  /**
   * Byte in what was registered.
   */
  uint64_t offset;
  /**
   * The number of the network interface.
   */
  uint16_t processor;
  /**
   * What the completion of phw_register told there.
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
   * Bytes.
   */
  uint64_t bytes;
} PhwLocal;

/**
 * A completion; what its kind does not have is zero.
 */
typedef struct PhwCompletion {
  /**
   * The command's or the receive's.
   */
  uint64_t name;
  /**
   * The word that an atomic operation found, the handle of registered memory, whether a receive
   * was taken back (1), the result of a collective operation or the processor for whose sake
   * there is none; what an event says.
   */
  uint64_t word;
  /**
   * Bytes that have arrived; of collective minima and maxima: the location.
   */
  uint64_t bytes;
  /**
   * Byte in what was registered.
   */
  uint64_t offset;
  /**
   * Who it comes from.
   */
  uint16_t processor;
  /**
   * Where it went.
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
 * Attaches to the network interface whose door is the socket at `door`, for a program of `job`:
 * member 0 to 254 of those there, or PHW_ANY_MEMBER, with `data_bytes` of memory for its data.
 * If it is not let in, `why` (which may be null) gets up to `why_bytes` bytes of text, with a zero
 * behind.
 *
 * # Safety
 * The pointers are null or right: `door` ends with a zero, `nic` takes a pointer, `why` has
 * `why_bytes` bytes.
 */
int phw_attach(const char *door,
               uint64_t job,
               uint8_t member,
               uint64_t data_bytes,
               struct PhwNic **nic,
               char *why,
               uintptr_t why_bytes);

/**
 * Leaves a network interface: what the program has registered, and what is under way, ends.
 *
 * # Safety
 * `nic` is null or one of `phw_attach`, and is not used again.
 */
void phw_leave(struct PhwNic *nic);

/**
 * The number of the network interface.
 *
 * # Safety
 * `nic` is null or one of `phw_attach`; here and below.
 */
int phw_processor(struct PhwNic *nic);

/**
 * Which of the job's programs at this network interface this one is.
 */
int phw_member(struct PhwNic *nic);

/**
 * Most bytes of a put or a get.
 */
int phw_longest_put(struct PhwNic *nic);

/**
 * What the network interface has beside puts and gets: `PHW_HAS_ATOMICS` and so on, or-ed.
 */
int phw_operations(struct PhwNic *nic);

/**
 * Copies `bytes` of the program's data from byte `offset` on.
 *
 * # Safety
 * `out` has `bytes` bytes.
 */
int phw_read(struct PhwNic *nic, uint64_t offset, uint8_t *out, uintptr_t bytes);

/**
 * Changes `bytes` of the program's data from byte `offset` on.
 *
 * # Safety
 * `data` has `bytes` bytes.
 */
int phw_write(struct PhwNic *nic, uint64_t offset, const uint8_t *data, uintptr_t bytes);

/**
 * The word of the program's data at byte `offset`, a multiple of eight: a flag that others put,
 * say. To be read and written by __atomic functions only; null if it is not there.
 */
uint64_t *phw_word(struct PhwNic *nic, uint64_t offset);

/**
 * Writes 1 to 64 bytes there. With `event`, the program there is told (PHW_KIND_LANDED).
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
 * Reads up to 64 bytes there into one's own data.
 */
int phw_get(struct PhwNic *nic, uint64_t name, struct PhwRemote from, struct PhwLocal into);

/**
 * Changes a word of 64 bits there, by one of PhwAtomic; with `fetch`, the completion tells it as
 * it was.
 */
int phw_atomic(struct PhwNic *nic,
               uint64_t name,
               struct PhwRemote at,
               uint8_t op,
               uint64_t a,
               uint64_t b,
               bool fetch);

/**
 * Writes bytes of one's own data there. Unless it is null, the program there is told what `event`
 * points to when all of them are in its memory (PHW_KIND_TOLD).
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
 * Reads bytes there into one's own data.
 */
int phw_block_get(struct PhwNic *nic, uint64_t name, struct PhwRemote from, struct PhwLocal into);

/**
 * Sends bytes of one's own data to a receive of a program of the job.
 */
int phw_send(struct PhwNic *nic,
             uint64_t name,
             uint16_t processor,
             uint8_t member,
             struct PhwLocal from);

/**
 * Posts a place for a message (PHW_KIND_RECEIVED).
 */
int phw_receive(struct PhwNic *nic, uint64_t name, struct PhwLocal into);

/**
 * Takes the receive of that name back, if it has no message yet: the word is 1 if so.
 */
int phw_take_back(struct PhwNic *nic, uint64_t name);

/**
 * Lets the programs of the job reach a part of the data, at a multiple of 64, by or-ed rights
 * (PHW_MAY_PUT ...); the word of the completion is its handle.
 */
int phw_register(struct PhwNic *nic, uint64_t name, struct PhwLocal part, uint8_t rights);

/**
 * Ends that.
 */
int phw_deregister(struct PhwNic *nic, uint64_t name, uint16_t handle);

/**
 * Shows the network interface what was asked for; phw_wait and an empty phw_poll do too.
 */
int phw_flush(struct PhwNic *nic);

/**
 * The oldest completion; PHW_NOTHING if there is none now.
 *
 * # Safety
 * `out` is null or a place for a completion.
 */
int phw_poll(struct PhwNic *nic, struct PhwCompletion *out);

/**
 * The oldest completion; if there is none, sleeps until there is. PHW_NOTHING after `timeout_ms`
 * milliseconds (below zero: never), and when there is room again for a command that was refused
 * with PHW_FULL.
 *
 * # Safety
 * `out` is null or a place for a completion.
 */
int phw_wait(struct PhwNic *nic, int64_t timeout_ms, struct PhwCompletion *out);

/**
 * For programs that sleep in an event loop of their own: asks to be woken. 1: one may sleep until
 * phw_fd or phw_socket can be read; 0: there is something to poll. Call phw_disarm either way then.
 */
int phw_arm(struct PhwNic *nic);

/**
 * Says that the program is awake.
 */
int phw_disarm(struct PhwNic *nic);

/**
 * A descriptor that can be read when the network interface has woken the program.
 */
int phw_fd(struct PhwNic *nic);

/**
 * A descriptor that can be read when the network interface is gone.
 */
int phw_socket(struct PhwNic *nic);

/**
 * Copies the name of one of PhwStatus, with a zero behind, up to `bytes` bytes.
 *
 * # Safety
 * `out` has `bytes` bytes.
 */
int phw_status_name(uint8_t status, char *out, uintptr_t bytes);

/**
 * Makes the network interface a node of a tree over those whose numbers are in the data, two bytes
 * each, as number `rank` of them: engine 0 to 3, up to `branching` children (1 to 32), an `epoch`
 * that no earlier tree of the engine had, and how long others are waited for. All but `rank` is
 * the same for all.
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
 * Joins the next operation of the engine: one of PhwReduction, the same for all. The word of the
 * completion is the result.
 */
int phw_collective_join(struct PhwNic *nic,
                        uint64_t name,
                        uint8_t engine,
                        uint8_t reduction,
                        uint64_t word,
                        uint64_t location);

/**
 * Gives the engine back, when nothing is under way there.
 */
int phw_collective_leave(struct PhwNic *nic, uint64_t name, uint8_t engine);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* PHITWIRE_H */
