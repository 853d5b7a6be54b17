/* Checks the received data of messages of all lengths and in any order, probes, a halo exchange, collectives, puts, gets and
 * atomic operations. The argument is the number of rounds of the halo exchange. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, next, before;

static void fail(const char *what, long found)
{
    fprintf(stderr, "rank %d of %d: %s: found %ld\n", rank, ranks, what, found);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static unsigned char pattern(int of, int length, int n) { return (unsigned char)(n * 7 + n / 256 + of * 31 + length); }

static void lengths(void)
{
    static const int all[] = {0, 1, 64, 5000, 8096, 8097, 65536, 262144, 262145, 1 << 20, 3000001};
    for (unsigned k = 0; k < sizeof all / sizeof *all; k++) {
        int length = all[k], got;
        unsigned char *out = malloc(length + 1), *in = calloc(length + 1, 1);
        MPI_Status status;
        for (int n = 0; n < length; n++) out[n] = pattern(rank, length, n);
        MPI_Sendrecv(out, length, MPI_BYTE, next, k, in, length, MPI_BYTE, before, k, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &got);
        if (got != length) fail("length", got);
        for (int n = 0; n < length; n++)
            if (in[n] != pattern(before, length, n)) fail("byte of a message", n);
        free(out);
        free(in);
    }
}

/* Receives in the reverse order of sending, so that nearly all messages have to wait; probes for some of them first. */
static void backwards(void)
{
    enum { COUNT = 100, BIG = 20000 };
    static int out[COUNT][BIG], in[BIG];
    MPI_Request requests[COUNT];
    for (int n = 0; n < COUNT; n++) {
        out[n][0] = rank * 1000 + n;
        MPI_Isend(out[n], n % 10 ? 1 : BIG, MPI_INT, next, n, MPI_COMM_WORLD, &requests[n]);
    }
    for (int n = COUNT - 1; n >= 0; n--) {
        MPI_Message message;
        MPI_Status status;
        int count;
        if (n % 3 == 0) {
            MPI_Mprobe(before, n, MPI_COMM_WORLD, &message, &status);
            MPI_Get_count(&status, MPI_INT, &count);
            if (count != (n % 10 ? 1 : BIG)) fail("length of a probed message", count);
            MPI_Mrecv(in, count, MPI_INT, &message, &status);
        } else {
            if (n % 3 == 1) MPI_Probe(before, n, MPI_COMM_WORLD, &status);
            MPI_Recv(in, BIG, MPI_INT, before, n, MPI_COMM_WORLD, &status);
        }
        if (in[0] != before * 1000 + n) fail("message with a tag", in[0]);
    }
    MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
}

/* Every cell becomes the mean of three, so that the sum of all cells stays the same. */
static void halo(int rounds)
{
    enum { CELLS = 1000 };
    double cells[CELLS + 2], old[CELLS + 2], sum = 0, all, wanted = 0;
    for (int n = 0; n < CELLS + 2; n++) cells[n] = rank;
    for (int round = 0; round < rounds; round++) {
        MPI_Sendrecv(&cells[1], 1, MPI_DOUBLE, before, 0, &cells[CELLS + 1], 1, MPI_DOUBLE, next, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(&cells[CELLS], 1, MPI_DOUBLE, next, 1, &cells[0], 1, MPI_DOUBLE, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        memcpy(old, cells, sizeof old);
        for (int n = 1; n <= CELLS; n++) cells[n] = (old[n - 1] + old[n] + old[n + 1]) / 3;
    }
    for (int n = 1; n <= CELLS; n++) sum += cells[n];
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int n = 0; n < ranks; n++) wanted += (double)n * CELLS;
    if (all - wanted > 1e-6 || wanted - all > 1e-6) fail("sum of all cells", (long)all);
}

static void one_sided(void)
{
    enum { WORDS = 30000 };
    long *words, one = 1, mine = rank + 1, got = -1, *block = malloc(WORDS * sizeof *block);
    MPI_Win window;
    MPI_Win_allocate((WORDS + 300) * sizeof *words, sizeof *words, MPI_INFO_NULL, MPI_COMM_WORLD, &words, &window);
    memset(words, 0, (WORDS + 300) * sizeof *words);
    for (int n = 0; n < WORDS; n++) block[n] = n * 3L + rank;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_fence(0, window);
    MPI_Put(&mine, 1, MPI_LONG, next, 0, 1, MPI_LONG, window);
    MPI_Put(block, WORDS, MPI_LONG, next, 300, WORDS, MPI_LONG, window);
    for (int n = 0; n < 10; n++) MPI_Accumulate(&one, 1, MPI_LONG, 0, 100, 1, MPI_LONG, MPI_SUM, window);
    MPI_Win_fence(0, window);
    if (words[0] != before + 1) fail("word that was put", words[0]);
    for (int n = 0; n < WORDS; n++)
        if (words[300 + n] != n * 3L + before) fail("block that was put", n);
    if (rank == 0 && words[100] != 10L * ranks) fail("word that all have added to", words[100]);
    MPI_Get(block, WORDS, MPI_LONG, next, 300, WORDS, MPI_LONG, window);
    MPI_Win_fence(0, window);
    for (int n = 0; n < WORDS; n++)
        if (block[n] != n * 3L + rank) fail("block that was got", n);
    MPI_Win_lock_all(0, window);
    for (int n = 0; n < 5; n++) {
        MPI_Fetch_and_op(&one, &got, MPI_LONG, 0, 200, MPI_SUM, window);
        MPI_Win_flush(0, window);
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    MPI_Get(&got, 1, MPI_LONG, 0, 200, 1, MPI_LONG, window);
    MPI_Win_unlock(0, window);
    if (got != 5L * ranks) fail("word of fetching additions", got);
    MPI_Win_free(&window);
    free(block);
}

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    next = (rank + 1) % ranks;
    before = (rank + ranks - 1) % ranks;
    lengths();
    backwards();
    halo(count > 1 ? atoi(words[1]) : 20);
    one_sided();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("ok: %d ranks\n", ranks);
    MPI_Finalize();
    return 0;
}
