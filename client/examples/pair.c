/* One program with two doors: puts from the first network interface into memory at the second,
 * adds to a counter there, and verifies both. Exits with 0 only if everything is correct.
 *
 *   L=$PWD/target/release
 *   cc -Iclient/include client/examples/pair.c -L$L -Wl,-rpath,$L -lphitwire_client -o put
 *   ./put /run/phitwire/LAB/nic0.door /run/phitwire/LAB/nic1.door
 */
#include "phitwire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOB = 0x9a1f, REGISTER = 1, PUT = 2, COUNT = 3, ROUNDS = 100 };

static void need(int is_right, const char *what)
{
    if (!is_right) {
        fprintf(stderr, "failed: %s\n", what);
        exit(1);
    }
}

static PhwNic *attached(const char *door)
{
    PhwNic *nic = NULL;
    char why[512];
    if (phw_attach(door, JOB, PHW_ANY_MEMBER, 4096, &nic, why, sizeof why) != PHW_OK) {
        fprintf(stderr, "failed: %s\n", why);
        exit(1);
    }
    return nic;
}

/* The next completion, which must be of this kind and name, and report success. */
static PhwCompletion next(PhwNic *nic, uint8_t kind, uint64_t name)
{
    PhwCompletion found;
    need(phw_wait(nic, 30000, &found) == PHW_OK, "a completion arrives within 30 s");
    need(found.kind == kind, "the completion is of the expected kind");
    if (found.status != PHW_STATUS_DONE) {
        char reason[32] = "";
        phw_status_name(found.status, reason, sizeof reason);
        need(0, reason);
    }
    need(found.name == name, "the completion has the expected name");
    return found;
}

int main(int count, char **words)
{
    need(count == 3, "usage: pair DOOR DOOR");
    PhwNic *here = attached(words[1]), *there = attached(words[2]);

    PhwLocal part = {.offset = 64, .bytes = 128};
    uint8_t rights = PHW_MAY_PUT | PHW_MAY_GET | PHW_MAY_ATOMIC;
    need(phw_register(there, REGISTER, part, rights) == PHW_OK, "register");
    PhwRemote at = {.processor = (uint16_t)phw_processor(there)};
    at.handle = (uint16_t)next(there, PHW_KIND_END, REGISTER).word;

    const char text[] = "phit by phit";
    need(phw_put(here, PUT, at, (const uint8_t *)text, sizeof text, true) == PHW_OK, "put");
    next(here, PHW_KIND_END, PUT);
    PhwCompletion landed = next(there, PHW_KIND_LANDED, 0);
    need(landed.bytes == sizeof text && landed.processor == phw_processor(here), "event");
    char found[sizeof text];
    need(phw_read(there, part.offset, (uint8_t *)found, sizeof found) == PHW_OK, "read");
    need(memcmp(found, text, sizeof text) == 0, "the bytes are correct");

    at.offset = 64;
    for (uint64_t n = 0; n < ROUNDS; n++) {
        need(phw_atomic(here, COUNT, at, PHW_ATOMIC_ADD, 3, 0, true) == PHW_OK, "atomic");
        need(next(here, PHW_KIND_END, COUNT).word == 3 * n, "the count is correct");
    }
    uint64_t *word = phw_word(there, part.offset + at.offset);
    need(word && __atomic_load_n(word, __ATOMIC_ACQUIRE) == 3 * ROUNDS, "the sum is correct");

    need(phw_put(here, PUT, at, NULL, 1, false) == PHW_ARGUMENT, "null data are rejected");
    need(phw_poll(NULL, &landed) == PHW_ARGUMENT, "a null network interface is rejected");
    need(phw_poll(here, &landed) == PHW_NOTHING, "no completion is left");
    phw_leave(here);
    phw_leave(there);
    puts("ok");
    return 0;
}
