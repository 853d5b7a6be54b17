/* Two processes at two network interfaces. The target registers memory, and prints where it is:
 * its processor number and the handle. The source reads these, puts words into that memory, gets
 * them back, adds to a counter there, and verifies everything.
 *
 *   L=$PWD/target/release
 *   cc -Iclient/include client/examples/remote.c -L$L -Wl,-rpath,$L -lphitwire_client -o remote
 *   ./remote target /run/phitwire/LAB/nic1.door | ./remote source /run/phitwire/LAB/nic0.door
 */
#include "phitwire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOB = 0x7e57, WORDS = 128, ROUNDS = 100, LIMIT_MS = 30000 };
/* The target's registered memory, in bytes: the words, a counter, and a flag for the end. */
enum { COUNTER_AT = 8 * WORDS, DONE_AT = COUNTER_AT + 8, BYTES = COUNTER_AT + 64 };

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "failed: %s: %s\n", what, why);
    exit(1);
}

/* What a function of the library has returned. */
static void need(int code, const char *what)
{
    if (code != PHW_OK)
        fail(what, phw_error_name(code));
}

static void check(int is_right, const char *what)
{
    if (!is_right)
        fail(what, "wrong");
}

static PhwNic *attached(const char *door)
{
    PhwNic *nic = NULL;
    char why[512];
    /* Both processes state the same job: others cannot access its memory. */
    if (phw_attach(door, JOB, PHW_ANY_MEMBER, BYTES, &nic, why, sizeof why) != PHW_OK)
        fail("attach", why);
    return nic;
}

/* The end of a command: its completion, which must report success. */
static PhwCompletion ended(PhwNic *nic, const char *what)
{
    PhwCompletion end;
    need(phw_wait(nic, LIMIT_MS, &end), what);
    if (end.status != PHW_STATUS_DONE) {
        char reason[32] = "";
        phw_status_name(end.status, reason, sizeof reason);
        fail(what, reason);
    }
    return end;
}

static uint64_t word_of(uint64_t n)
{
    return (n + 1) * 0x9e3779b97f4a7c15;
}

static uint64_t loaded(PhwNic *nic, uint64_t offset)
{
    return __atomic_load_n(phw_word(nic, offset), __ATOMIC_ACQUIRE);
}

static void target(PhwNic *nic)
{
    PhwLocal part = {.offset = 0, .bytes = BYTES};
    need(phw_register(nic, 0, part, PHW_MAY_PUT | PHW_MAY_GET | PHW_MAY_ATOMIC), "register");
    unsigned handle = (unsigned)ended(nic, "register").word;
    printf("%d %u\n", phw_processor(nic), handle);
    fflush(stdout);

    /* A put without an event does not wake a program: look once a millisecond. */
    PhwCompletion none;
    for (int ms = 0; !loaded(nic, DONE_AT); ms++) {
        check(ms < LIMIT_MS, "the source has ended in time");
        int code = phw_wait(nic, 1, &none);
        if (code != PHW_NOTHING)
            need(code, "wait");
    }
    for (uint64_t n = 0; n < WORDS; n++)
        check(loaded(nic, 8 * n) == word_of(n), "a word at the target");
    check(loaded(nic, COUNTER_AT) == 3 * ROUNDS, "the counter");
    fputs("target: all words are right\n", stderr);
}

static void source(PhwNic *nic)
{
    unsigned processor, handle;
    check(scanf("%u %u", &processor, &handle) == 2, "processor and handle on standard input");
    PhwRemote at = {.processor = (uint16_t)processor, .handle = (uint16_t)handle};

    /* Up to 1,024 commands may be in flight; the names tell their completions apart. */
    for (uint64_t n = 0; n < WORDS; n++) {
        uint64_t word = word_of(n);
        at.offset = 8 * n;
        need(phw_put(nic, n, at, (const uint8_t *)&word, sizeof word, false), "put");
    }
    for (int n = 0; n < WORDS; n++)
        ended(nic, "put");
    for (uint64_t n = 0; n < WORDS; n++) {
        at.offset = 8 * n;
        need(phw_get(nic, n, at, (PhwLocal){.offset = 8 * n, .bytes = 8}), "get");
    }
    for (int n = 0; n < WORDS; n++)
        ended(nic, "get");
    for (uint64_t n = 0; n < WORDS; n++)
        check(loaded(nic, 8 * n) == word_of(n), "a word that was read back");

    at.offset = COUNTER_AT;
    for (uint64_t n = 0; n < ROUNDS; n++) {
        need(phw_atomic(nic, n, at, PHW_ATOMIC_ADD, 3, 0, true), "add");
        check(ended(nic, "add").word == 3 * n, "the counter's old value");
    }
    uint64_t done = 1;
    at.offset = DONE_AT;
    need(phw_put(nic, 0, at, (const uint8_t *)&done, sizeof done, false), "put");
    ended(nic, "put");
    puts("source: all words are right");
}

int main(int count, char **words)
{
    if (count != 3 || (strcmp(words[1], "target") && strcmp(words[1], "source"))) {
        fputs("usage: remote target DOOR | remote source DOOR\n", stderr);
        return 2;
    }
    PhwNic *nic = attached(words[2]);
    if (!strcmp(words[1], "target"))
        target(nic);
    else
        source(nic);
    phw_leave(nic);
    return 0;
}
