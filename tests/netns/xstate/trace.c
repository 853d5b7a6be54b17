/*
 * A tracer and a tracee. The tracee fills vector registers and stops; the tracer writes a state that is truncated to 576
 * bytes (the legacy area and the header) with one register changed, and lets the tracee check its registers.
 *
 *   trace short|whole     what to write: the truncated state, or all of it
 *
 * Ends with 0 if the write was accepted, the written bytes are there and all others are unchanged; 1 if one of these
 * fails; 2 if the write was rejected; 4 if this processor has no AVX. Prints how many writes the preloaded object has
 * completed (0 without it).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEGACY_AND_HEADER = 576, XMM0 = 160, REGISTER = 16, LARGEST = 64 * 1024 };

/* Two registers of 32 bytes; the lower halves are in the legacy area, the upper ones after the header. */
struct registers { unsigned char ymm0[32], ymm1[32]; };

__attribute__((noinline, target("avx"))) static void stop_with(struct registers *registers, long pid)
{
	/* The system call is between the loads and the stores, so that no compiled code comes between them. */
	long result = 62; /* kill */
	register long signal asm("rsi") = SIGSTOP;
	asm volatile("vmovdqu (%[r]), %%ymm0\n\tvmovdqu 32(%[r]), %%ymm1\n\tsyscall\n\t"
		     "vmovdqu %%ymm0, (%[r])\n\tvmovdqu %%ymm1, 32(%[r])"
		     : "+a"(result)
		     : [r] "r"(registers), "D"(pid), "r"(signal)
		     : "rcx", "r11", "xmm0", "xmm1", "memory");
}

static int tracee(void)
{
	struct registers registers, expected;
	memset(registers.ymm0, 0x11, 32);
	memset(registers.ymm1, 0x22, 32);
	expected = registers;
	memset(expected.ymm0, 0x5a, REGISTER);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
		return 3;
	stop_with(&registers, getpid());
	return memcmp(&registers, &expected, sizeof(registers)) != 0;
}

static unsigned char before[LARGEST] __attribute__((aligned(64)));
static unsigned char after[LARGEST] __attribute__((aligned(64)));

static size_t state_of(pid_t pid, unsigned char *state)
{
	struct iovec whole = { .iov_base = state, .iov_len = LARGEST };
	if (ptrace(PTRACE_GETREGSET, pid, (void *)NT_X86_XSTATE, &whole) != 0) {
		perror("reading the state");
		exit(1);
	}
	return whole.iov_len;
}

int main(int count, char **arguments)
{
	if (!__builtin_cpu_supports("avx"))
		return 4;
	int whole = count > 1 && strcmp(arguments[1], "whole") == 0;
	pid_t pid = fork();
	if (pid == 0)
		_exit(tracee());

	int status, taken;
	waitpid(pid, &status, 0);
	size_t length = state_of(pid, before);
	memset(before + XMM0, 0x5a, REGISTER);
	struct iovec given = { .iov_base = before, .iov_len = whole ? length : LEGACY_AND_HEADER };
	taken = ptrace(PTRACE_SETREGSET, pid, (void *)NT_X86_XSTATE, &given) == 0;
	if (!taken)
		printf("refused: %s\n", strerror(errno));
	else if (state_of(pid, after) != length || memcmp(before, after, length) != 0)
		taken = -1;
	unsigned long *completed = dlsym(RTLD_DEFAULT, "uml_xstate_completed");
	printf("%zu bytes, completed %lu\n", length, completed ? *completed : 0);
	ptrace(PTRACE_CONT, pid, NULL, NULL);
	waitpid(pid, &status, 0);
	if (taken == 0)
		return 2;
	return taken < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}
