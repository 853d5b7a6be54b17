/*
 * Simulates a host with AMX for the library preloaded before it: the extended state that it reads and writes has 11,008
 * bytes, and a shorter one is rejected with EFAULT, as by Linux. The state of the real processor is at its beginning.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

/* XTILECFG and XTILEDATA end at this offset on Sapphire Rapids. */
enum { WHOLE = 11008 };

typedef long ptrace_function(enum __ptrace_request, pid_t, void *, void *);

long ptrace(enum __ptrace_request request, ...)
{
	static ptrace_function *next;
	va_list arguments;
	va_start(arguments, request);
	pid_t pid = va_arg(arguments, pid_t);
	void *address = va_arg(arguments, void *);
	void *data = va_arg(arguments, void *);
	va_end(arguments);

	if (!next)
		next = (ptrace_function *)dlsym(RTLD_NEXT, "ptrace");
	if ((request != PTRACE_SETREGSET && request != PTRACE_GETREGSET) || (unsigned long)address != NT_X86_XSTATE)
		return next(request, pid, address, data);

	struct iovec *given = data;
	size_t room = given->iov_len < WHOLE ? given->iov_len : WHOLE;
	if (request == PTRACE_SETREGSET && room < WHOLE) {
		errno = EFAULT;
		return -1;
	}
	long result = next(request, pid, address, given);
	if (result == 0 && request == PTRACE_GETREGSET && given->iov_len < room)
		memset((char *)given->iov_base + given->iov_len, 0, room - given->iov_len);
	if (result == 0)
		given->iov_len = room;
	return result;
}
