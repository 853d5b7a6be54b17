/*
 * Completes short writes of the extended processor state, for user-mode Linux on processors with AMX.
 *
 * A user-mode Linux kernel before 6.13 keeps 2.7 kB of each process's extended state (XSAVE) and writes that much back
 * with PTRACE_SETREGSET. The host accepts only the whole state, and with AMX the whole is 11 kB: it returns EFAULT, and
 * the guest kernel panics before its first process. So this object is preloaded (LD_PRELOAD) into linux.uml, which is
 * linked dynamically: if a state to be written is shorter than the host's, the object first reads the process's own
 * state, copies the caller's bytes over its beginning, and writes the whole. All other requests pass through unchanged.
 *
 *   cc -O2 -shared -fPIC -o uml-xstate.so uml-xstate.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Larger than the state of any processor so far, and the alignment that XSAVE requires. */
enum { LARGEST = 64 * 1024, ALIGNMENT = 64 };

/* Number of completed writes, for tests. */
unsigned long uml_xstate_completed;

typedef long ptrace_function(enum __ptrace_request, pid_t, void *, void *);
static ptrace_function *next_ptrace;

__attribute__((constructor)) static void find_next(void)
{
	next_ptrace = (ptrace_function *)dlsym(RTLD_NEXT, "ptrace");
}

static long set_whole(pid_t pid, void *set, struct iovec *given)
{
	/* Not on the stack, which is only 16 KiB in user-mode Linux. Only one thread traces. */
	static unsigned char state[LARGEST] __attribute__((aligned(ALIGNMENT)));
	struct iovec whole = { .iov_base = state, .iov_len = sizeof(state) };

	if (next_ptrace(PTRACE_GETREGSET, pid, set, &whole) != 0 || given->iov_len >= whole.iov_len)
		return next_ptrace(PTRACE_SETREGSET, pid, set, given);
	memcpy(state, given->iov_base, given->iov_len);
	uml_xstate_completed++;
	return next_ptrace(PTRACE_SETREGSET, pid, set, &whole);
}

long ptrace(enum __ptrace_request request, ...)
{
	va_list arguments;
	va_start(arguments, request);
	pid_t pid = va_arg(arguments, pid_t);
	void *address = va_arg(arguments, void *);
	void *data = va_arg(arguments, void *);
	va_end(arguments);

	if (!next_ptrace)
		find_next();
	if (request == PTRACE_SETREGSET && (unsigned long)address == NT_X86_XSTATE && data)
		return set_whole(pid, address, data);
	return next_ptrace(request, pid, address, data);
}
