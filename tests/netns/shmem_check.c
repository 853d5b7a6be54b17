/* shmem_check SECONDS: puts, gets, fetched and plain additions around a ring of processing elements, every word
 * checked. Additions are carried out exactly once if the values that they fetch are 0, 1, 2 ...: PE 0 compares sums. It
 * prints a line after the first round, and the result at the end. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WORDS = 600 };
static long block[WORDS], fetched_from, added_to, sum_of_fetched, wrong, stop;

static long add_up(long *word, int pes)
{
    long sum = 0;
    for (int pe = 0; pe < pes; pe++)
        sum += shmem_long_g(word, pe);
    return sum;
}

/* PE 0, at the end: the values fetched by all PEs from a counter that ended at n are 0 to n - 1. */
static long misses(int pes)
{
    long want = 0, misses = 0;
    for (int pe = 0; pe < pes; pe++) {
        long n = shmem_long_g(&fetched_from, pe);
        want += n * (n - 1) / 2;
        misses += shmem_long_g(&added_to, pe) != 3 * n;
    }
    return misses + (want != add_up(&sum_of_fetched, pes));
}

int main(int argc, char **argv)
{
    time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
    long mine[WORDS], round = 0;
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes(), right = (me + 1) % pes, left = (me + pes - 1) % pes;

    do {
        for (int i = 0; i < WORDS; i++)
            mine[i] = (me * 1000000L + round) * WORDS + i;
        shmem_long_put(block, mine, WORDS, right);
        int to = (me + (int)(round % pes)) % pes;
        sum_of_fetched += shmem_long_atomic_fetch_inc(&fetched_from, to);
        shmem_long_atomic_add(&added_to, 3, to);
        shmem_barrier_all();

        for (int i = 0; i < WORDS; i++)
            wrong += block[i] != (left * 1000000L + round) * WORDS + i;
        long back[WORDS];
        shmem_long_get(back, block, WORDS, right);
        for (int i = 0; i < WORDS; i++)
            wrong += back[i] != mine[i];
        if (me == 0 && round == 0) {
            puts("the first round is done");
            fflush(stdout);
        }
        if (me == 0 && time(NULL) >= end)
            for (int pe = 0; pe < pes; pe++)
                shmem_long_p(&stop, 1, pe);
        shmem_barrier_all();
        round++;
    } while (!stop);

    int failed = 0;
    if (me == 0) {
        long words = add_up(&wrong, pes), counters = misses(pes);
        printf("%d PEs, %ld rounds: %ld words and %ld counters are wrong\n", pes, round, words, counters);
        failed = words || counters;
    }
    shmem_finalize();
    return failed;
}
