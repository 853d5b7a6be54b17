/* onesided.c [ROUNDS [MOST_BYTES [WAITING_SECONDS]]]
 *
 * Measures latency and bandwidth of MPI_Put, MPI_Get and MPI_Fetch_and_op between the first and the last rank, and checks that
 * they complete while the target computes without calling MPI. Every moved byte is checked. Each line of figures begins with the
 * operation: `put BYTES us MB/s`. The status is not 0 if a byte is wrong, or if operations wait for a computing target. With
 * WAITING_SECONDS the target computes for that long, and the status is not 0 if they do not wait: for networks that need the
 * target's program.
 *
 * Build: mpicc -O2 -Wall -o onesided onesided.c */
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 8 };                /* operations at once, for bandwidth */
static const double MOST_BUSY = 60; /* seconds that the target computes if the flag does not arrive */

static int rank, ranks, target, rounds = 20;
static double waiting_seconds;
static size_t most = 1 << 20;
static unsigned char *memory, *local;
static MPI_Win window;

static void fail(const char *what, long found)
{
    fprintf(stderr, "rank %d of %d: %s: found %ld\n", rank, ranks, what, found);
    MPI_Abort(MPI_COMM_WORLD, 1);
    _Exit(1);
}

static unsigned char pattern(size_t n, int salt) { return (unsigned char)(n * 13 + n / 251 + salt * 29); }

static void fill(unsigned char *at, size_t bytes, int salt)
{
    for (size_t n = 0; n < bytes; n++) at[n] = pattern(n, salt);
}

static void look(const unsigned char *at, size_t bytes, int salt, const char *what)
{
    for (size_t n = 0; n < bytes; n++)
        if (at[n] != pattern(n, salt)) fail(what, (long)n);
}

static void move(int puts, size_t bytes, size_t slot)
{
    unsigned char *here = local + slot * bytes;
    if (puts) MPI_Put(here, (int)bytes, MPI_BYTE, target, (MPI_Aint)(slot * bytes), (int)bytes, MPI_BYTE, window);
    else MPI_Get(here, (int)bytes, MPI_BYTE, target, (MPI_Aint)(slot * bytes), (int)bytes, MPI_BYTE, window);
}

/* Measures one operation per flush, then WINDOW operations per flush. */
static void measure(int puts, size_t bytes)
{
    const char *name = puts ? "put" : "get";
    int salt = (int)bytes + puts;
    size_t all = bytes * WINDOW;
    if (rank == 0) fill(local, all, puts ? salt : salt + 1);
    if (rank == target) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
        fill(memory, all, puts ? salt + 1 : salt);
        MPI_Win_unlock(rank, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        int times = bytes >= 65536 && rounds > 10 ? rounds / 4 + 5 : rounds;
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window);
        move(puts, bytes, 0);
        MPI_Win_flush(target, window);
        double begin = MPI_Wtime();
        for (int n = 0; n < times; n++) {
            move(puts, bytes, 0);
            MPI_Win_flush(target, window);
        }
        double one = (MPI_Wtime() - begin) / times;
        begin = MPI_Wtime();
        for (int n = 0; n < times; n++) {
            for (size_t slot = 0; slot < WINDOW; slot++) move(puts, bytes, slot);
            MPI_Win_flush(target, window);
        }
        double many = (MPI_Wtime() - begin) / times;
        MPI_Win_unlock(target, window);
        printf("%s %zu %.1f us %.2f MB/s\n", name, bytes, one * 1e6, (double)all / many / 1e6);
        fflush(stdout);
        if (!puts) look(local, all, salt, "byte that was got");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == target && puts) {
        MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
        look(memory, all, salt, "byte that was put");
        MPI_Win_unlock(rank, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* All ranks add to one word and double another. */
static void atomics(void)
{
    int64_t one = 1, two = 2, found = 0, last = -1;
    if (rank == target) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
        memset(memory, 0, 64);
        ((int64_t *)memory)[1] = 1;
        MPI_Win_unlock(rank, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    double begin = MPI_Wtime();
    for (int n = 0; n < rounds; n++) {
        MPI_Fetch_and_op(&one, &found, MPI_INT64_T, target, 0, MPI_SUM, window);
        MPI_Win_flush(target, window);
        if (found <= last) fail("sum that does not grow", (long)found);
        last = found;
    }
    if (rank == 0) printf("fetch_and_op 8 %.1f us\n", (MPI_Wtime() - begin) / rounds * 1e6);
    /* 30 doublings in total, by all ranks: the network interface does not implement products. */
    for (int n = rank; n < 30; n += ranks) {
        MPI_Fetch_and_op(&two, &found, MPI_INT64_T, target, 8, MPI_PROD, window);
        MPI_Win_flush(target, window);
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == target) {
        MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
        int64_t sum = ((int64_t *)memory)[0], product = ((int64_t *)memory)[1];
        MPI_Win_unlock(rank, window);
        if (sum != (int64_t)rounds * ranks) fail("sum of all", (long)sum);
        if (product != 1 << 30) fail("product of all", (long)product);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The target does not call MPI until another rank has put, got and added. That rank begins only when it sees that the target
 * computes: earlier, the target might serve it in its last MPI call. */
static void busy(void)
{
    size_t bytes = most < 100000 ? most : 100000;
    int64_t one = 1, found;
    atomic_llong *flag = (atomic_llong *)memory, *computes = flag + 1;
    if (rank == target) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
        memset(memory, 0, bytes + 64);
        MPI_Win_unlock(rank, window);
    }
    /* A rank that waited here while it holds the lock of all would block the target forever. */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == target) {
        double begin = MPI_Wtime(), took = 0;
        volatile double sum = 0;
        atomic_store(computes, 1);
        while (!atomic_load(flag) && (took = MPI_Wtime() - begin) < (waiting_seconds ? waiting_seconds : MOST_BUSY))
            for (int n = 0; n < 100000; n++) sum += n;
        int came = atomic_load(flag) != 0;
        if (came == (waiting_seconds > 0)) fail("a flag that came while the target computed", came);
        printf("busy target: %s after %.3f s\n", came ? "the flag came" : "no flag", took);
        fflush(stdout);
    } else if (rank == 0) {
        fill(local, bytes, 77);
        int64_t is_computing = 0;
        while (!is_computing) {
            MPI_Get(&is_computing, 8, MPI_BYTE, target, 8, 8, MPI_BYTE, window);
            MPI_Win_flush(target, window);
        }
        double begin = MPI_Wtime();
        MPI_Put(local, (int)bytes, MPI_BYTE, target, 64, (int)bytes, MPI_BYTE, window);
        MPI_Win_flush(target, window);
        MPI_Get(local, (int)bytes, MPI_BYTE, target, 64, (int)bytes, MPI_BYTE, window);
        MPI_Win_flush(target, window);
        look(local, bytes, 77, "byte that was got from a busy target");
        MPI_Fetch_and_op(&one, &found, MPI_INT64_T, target, 0, MPI_SUM, window);
        MPI_Win_flush(target, window);
        printf("busy target: put, get and addition took %.3f s\n", MPI_Wtime() - begin);
        fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == target) look(memory + 64, bytes, 77, "byte that was put to a busy target");
    MPI_Win_unlock_all(window);
}

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    target = ranks - 1;
    if (count > 1) rounds = atoi(words[1]);
    if (count > 2) most = strtoul(words[2], NULL, 0);
    if (count > 3) waiting_seconds = atof(words[3]);
    if (ranks < 2 || rounds < 1 || most < 8 || most > 1 << 26) {
        if (rank == 0) fprintf(stderr, "at least two ranks, one round, 8 bytes and at most 64 MiB\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    local = malloc(most * WINDOW + 64);
    /* MPICH leaves atomic operations to the network interface only if none may use memory that ranks share, and if all
     * concurrent operations on a word are the same. */
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "disable_shm_accumulate", "true");
    MPI_Info_set(info, "accumulate_ops", "same_op");
    MPI_Win_allocate((MPI_Aint)(most * WINDOW + 64), 1, info, MPI_COMM_WORLD, &memory, &window);
    MPI_Info_free(&info);
    for (size_t bytes = 8; bytes <= most; bytes *= bytes < 64 ? 8 : 16) {
        measure(1, bytes);
        measure(0, bytes);
    }
    if (most >= 1001) {
        measure(1, 1001);
        measure(0, 1001);
    }
    atomics();
    busy();
    MPI_Win_free(&window);
    free(local);
    if (rank == 0) printf("ok: %d ranks\n", ranks);
    MPI_Finalize();
    return 0;
}
