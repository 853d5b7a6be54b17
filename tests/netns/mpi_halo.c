/* A halo exchange with a known result: a torus of integers, cut into one strip per rank. Each cell becomes a sum of its
 * neighbours and itself, modulo 2^64, so that one wrong bit of a halo spreads to most cells. It runs until the file STOP
 * exists; then rank 0 computes the same alone and compares every cell.
 *
 *     mpi_halo STOP [return] [spoil STEP]
 *
 * Rank 0 prints "step N" now and then. "return": MPI returns errors to the program; each rank prints its error and exits at
 * once, without another MPI call. "spoil": rank 1 flips a bit of the halo received at this step, so that the result must be
 * wrong. The status is 0 for a right result, 1 for a wrong one, 3 for an MPI error. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A row is longer than one message of the provider. */
enum { ROWS = 4, COLUMNS = 1536, EVERY = 5 };
typedef uint64_t row[COLUMNS];

static int rank, ranks;
static long step;

static void must(const char *call, int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int length, class;
    if (code == MPI_SUCCESS) return;
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    text[strcspn(text, "\n")] = 0;
    printf("rank %d: step %ld: %s: MPI error of class %d: %s\n", rank, step, call, class, text);
    fflush(stdout);
    _exit(3);
}

static uint64_t first(long at, int column)
{
    return (uint64_t)at * 2654435761u + (uint64_t)column * 40503u + 1;
}

/* Advances `rows` rows by one step, between a row before the first and one after the last. */
static void advance(row *now, row *next, long rows)
{
    for (long at = 1; at <= rows; at++)
        for (int column = 0; column < COLUMNS; column++)
            next[at][column] = 3 * now[at - 1][column] + 5 * now[at + 1][column] + 7 * now[at][column]
                + 11 * now[at][(column + 1) % COLUMNS];
    memcpy(now + 1, next + 1, rows * sizeof *now);
}

static void exchange(row *now)
{
    int before = (rank + ranks - 1) % ranks, after = (rank + 1) % ranks, code;
    MPI_Request requests[4];
    MPI_Status statuses[4];
    must("receive", MPI_Irecv(now[0], COLUMNS, MPI_UINT64_T, before, 0, MPI_COMM_WORLD, &requests[0]));
    must("receive", MPI_Irecv(now[ROWS + 1], COLUMNS, MPI_UINT64_T, after, 1, MPI_COMM_WORLD, &requests[1]));
    must("send", MPI_Isend(now[ROWS], COLUMNS, MPI_UINT64_T, after, 0, MPI_COMM_WORLD, &requests[2]));
    must("send", MPI_Isend(now[1], COLUMNS, MPI_UINT64_T, before, 1, MPI_COMM_WORLD, &requests[3]));
    code = MPI_Waitall(4, requests, statuses);
    if (code == MPI_ERR_IN_STATUS)
        for (int n = 0; n < 4; n++)
            if (statuses[n].MPI_ERROR != MPI_ERR_PENDING) must(n < 2 ? "receive" : "send", statuses[n].MPI_ERROR);
    must("exchange", code);
}

/* Whether all cells equal those computed by a single process. */
static int is_right(row *now)
{
    row *all = NULL, *alone, *next;
    long rows = (long)ROWS * ranks, wrong = 0;
    if (rank == 0) all = malloc(rows * sizeof *all);
    must("gather", MPI_Gather(now[1], ROWS * COLUMNS, MPI_UINT64_T, all, ROWS * COLUMNS, MPI_UINT64_T, 0, MPI_COMM_WORLD));
    if (rank != 0) return 1;
    alone = malloc((rows + 2) * sizeof *alone);
    next = malloc((rows + 2) * sizeof *next);
    for (long at = 0; at < rows; at++)
        for (int column = 0; column < COLUMNS; column++) alone[at + 1][column] = first(at, column);
    for (long n = 0; n < step; n++) {
        memcpy(alone[0], alone[rows], sizeof *alone);
        memcpy(alone[rows + 1], alone[1], sizeof *alone);
        advance(alone, next, rows);
    }
    for (long at = 0; at < rows; at++)
        for (int column = 0; column < COLUMNS; column++) wrong += all[at][column] != alone[at + 1][column];
    if (wrong) printf("wrong answer: %ld of %ld cells after %ld steps\n", wrong, rows * COLUMNS, step);
    else printf("right answer: %ld cells, %d ranks, %ld steps\n", rows * COLUMNS, ranks, step);
    return wrong == 0;
}

int main(int count, char **words)
{
    static row now[ROWS + 2], next[ROWS + 2];
    long spoiled = -1;
    int ends = 0, right;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int n = 2; n < count; n++) {
        if (!strcmp(words[n], "return")) {
            MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
            MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        }
        if (!strcmp(words[n], "spoil") && n + 1 < count) spoiled = atol(words[n + 1]);
    }
    for (int at = 0; at < ROWS; at++)
        for (int column = 0; column < COLUMNS; column++) now[at + 1][column] = first((long)rank * ROWS + at, column);

    while (!ends) {
        exchange(now);
        if (rank == 1 && step == spoiled) now[0][COLUMNS / 2] ^= 1 << 20;
        advance(now, next, ROWS);
        if (++step % EVERY != 0) continue;
        if (rank == 0) {
            printf("step %ld\n", step);
            fflush(stdout);
            ends = access(words[1], F_OK) == 0;
        }
        must("broadcast", MPI_Bcast(&ends, 1, MPI_INT, 0, MPI_COMM_WORLD));
    }

    right = is_right(now);
    must("broadcast", MPI_Bcast(&right, 1, MPI_INT, 0, MPI_COMM_WORLD));
    MPI_Finalize();
    return right ? 0 : 1;
}
