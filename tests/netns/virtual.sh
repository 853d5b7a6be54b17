#!/usr/bin/env bash
# A lab in virtual time, without root and namespaces: programs at the doors and MPI programs, the same times and the same
# trace on an idle and on a busy host, and clean ends.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"

phw_binaries
export PHITWIRE_RUN_DIR=$T_SCRATCH/run
examples=${PHITWIRE_EXAMPLES:-$PHITWIRE_BIN_DIR/examples}

# up_virtual NAME TOPOLOGY OPTIONS...: brings up a virtual lab with the name $LAB.
up_virtual() {
    t_lab "$1"
    check "a virtual lab of $2 comes up" "$PHW_SCRIPTS/up.sh" "$2" --lab "$LAB" --virtual "${@:3}"
}
down() { "$PHW_SCRIPTS/down.sh" --lab "$LAB"; }
stat_of() { phw ctl --lab "$LAB" nic0 stats --json | jq -r ".[\"virtual.$1\"]"; }
doors() { printf '%s\n' "$PHITWIRE_RUN_DIR/$LAB"/*.door | sort -V; }
# Takes the lab down and prints what its process reported.
report() {
    local log=$PHITWIRE_RUN_DIR/$LAB/virtual.log
    exec {kept}<"$log"
    down >/dev/null 2>&1
    cat <&"$kept"
    exec {kept}<&-
}

example() {
    # shellcheck disable=SC2046  # a list
    timeout 60 "$examples/$1" --door $(doors)
}
if [[ -x $examples/put_get ]]; then
    for topology in aries-pair aries-3x4; do
        up_virtual "v_${topology//-/_}" "$topology"
        for name in put_get counter ring halo; do
            check "$name at the doors of $topology" example "$name"
        done
        check "the lab of $topology is taken down" down
    done
    for topology in pair t3e-2x2x2; do
        up_virtual "v_${topology//-/_}" "$topology"
        check "loads and stores at the doors of $topology" example stores
        check "the lab of $topology is taken down" down
    done
else
    skip "examples at the doors" "no examples in $examples (cargo build --release --examples)"
fi

up_virtual v_ends aries-pair
check_fails "a lab in use" "is already running|is up already" phw virtual "$PHW_SCRIPTS/topologies/aries-pair.toml" --lab "$LAB"
check_fails "requests that virtual labs do not have yet" "virtual labs answer only" phw ctl --lab "$LAB" nic0 pipeline
check_fails "impairments" "is virtual" "$PHW_SCRIPTS/impair.sh" --lab "$LAB" all loss 1%
check_fails "a node alone" "is virtual" "$PHW_SCRIPTS/node.sh" --lab "$LAB" stop nic0
check_fails "a virtual lab on loopback" "excludes --loopback" "$PHW_SCRIPTS/up.sh" aries-pair --lab "${LAB}d" --loopback --virtual
check_fails "direct links" "need encoded links" "$PHW_SCRIPTS/up.sh" aries-pair --lab "${LAB}d" --virtual --links direct
ended_by_signal() {
    local pid
    pid=$(phw_recorded "$PHITWIRE_RUN_DIR/$LAB/virtual.process") || return
    kill -TERM "$pid"
    phw_until 10 phw_all_gone "$pid" && [[ ! -e $PHITWIRE_RUN_DIR/$LAB ]]
}
check "SIGTERM removes the lab's directory" ended_by_signal

cat >"$T_SCRATCH/ping.c" <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, bad = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (long i = 0; i < 300; i++) {
        long out = i * 7 + rank, in = -1;
        if (rank == 0)
            MPI_Send(&out, 1, MPI_LONG, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(&in, 1, MPI_LONG, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(&out, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD);
        bad += in != i * 7 + 1 - rank;
    }
    double took = MPI_Wtime() - begin;
    if (rank == 0)
        printf("%.3f us one way, %d wrong\n", took / 600 * 1e6, bad);
    MPI_Finalize();
    return bad != 0;
}
C
# ping_pong: brings up a lab, runs the program, and prints its line and the line with time and trace.
ping_pong() {
    "$PHW_SCRIPTS/up.sh" aries-pair --lab "$LAB" --virtual --seed 5 2>/dev/null || return
    timeout 120 "$PHW_SCRIPTS/mpi.sh" --lab "$LAB" -n 2 "$T_SCRATCH/ping" || return
    report | grep trace
}
same_beside() {
    local spinner=() quiet busy
    quiet=$(ping_pong) || { printf '%s\n' "$quiet"; return 1; }
    for _ in 1 2; do
        sh -c 'while :; do :; done' &
        spinner+=("$!")
    done
    busy=$(ping_pong)
    kill "${spinner[@]}"
    printf '%s\n%s\n' "$quiet" "$busy"
    [[ $quiet == "$busy" && $quiet == *" 0 wrong"* ]]
}
if command -v mpicc >/dev/null && command -v mpiexec >/dev/null; then
    t_lab v_mpi
    check "the MPI program is built" mpicc -O2 -o "$T_SCRATCH/ping" "$T_SCRATCH/ping.c"
    check "the same times and trace beside two busy loops" same_beside
else
    skip "an MPI program" "no Open MPI (openmpi-bin libopenmpi-dev libfabric1)"
fi
T_DONE=1
