#!/usr/bin/env bash
# Programs at the doors of NICs: verified traffic between them over lossy links, programs killed under load, a NIC that
# dies under its programs, and machines whose programs have only loads and stores.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

# programs WHAT OPTIONS...: a benchmark between two programs; every message is compared.
programs() { "$PHITWIRE_BIN_DIR/phitwire-bench" "$1" --lab "$LAB" --client "${@:2}"; }
door_sum() { counter_sum "^door\\.$1\$"; }
nobody_is_there() { (( $(door_sum clients) == 0 )); }

t_up door aries-group
t_has_nft && t_impair --nft all loss 1%
for op in put get send; do
    check "messages of every size by $op, with loss" programs bandwidth --op "$op" --size 4,64,1000,20000 --window 16 --seconds 0.1
done
check "additions, with loss" programs latency --op amo --seconds 0.2
rate() { "$PHITWIRE_BIN_DIR/phitwire-msgrate" --lab "$LAB" --client "$@"; }
for op in put get; do
    check "a program at each sends by $op, with loss" rate --op "$op" --size 8,64,3000 --window 32 --seconds 0.3
done
check "a program at each adds, with loss" rate --op amo --pattern hotspot --seconds 0.3
is_json() {
    rate --pattern permutation --count 100 --json >"$T_SCRATCH/rate" || return
    jq -e '.acknowledged > 0 and .acknowledged == .sent and .lost == 0 and .corrupted == 0' "$T_SCRATCH/rate" >/dev/null
}
check "and reports it as JSON" is_json
check_fails "a rate of programs" "cannot be used with" rate --rate 100
check_fails "routes of programs" "cannot be used with" rate --routing minimal
check_fails "too many at a time" "at most 1024 outstanding messages" rate --window 2000

# The examples in C, as docs/guide/src/door.md builds and runs them.
c_example() {
    cc -I"$PHW_ROOT/client/include" "$PHW_ROOT/client/examples/$1.c" -L"$PHITWIRE_BIN_DIR" -Wl,-rpath,"$PHITWIRE_BIN_DIR" \
        -lphitwire_client -o "$T_SCRATCH/$1"
}
doors=$(phw_run_dir)/$LAB
two_processes() { "$T_SCRATCH/remote" target "$doors/nic1.door" | "$T_SCRATCH/remote" source "$doors/nic0.door"; }
if command -v cc >/dev/null; then
    check "the examples in C are built" eval "c_example pair && c_example remote"
    check "one program at two doors, with loss" "$T_SCRATCH/pair" "$doors/nic0.door" "$doors/nic1.door"
    check "two processes, with loss" two_processes
    check_fails "a control socket instead of the door" "its door is $doors/nic1.door" "$T_SCRATCH/pair" "$doors/nic0.door" "$doors/nic1.sock"
else
    skip "the examples in C" "no C compiler"
fi

# mpi.sh starts the launcher that it finds: this one only prints how it was called.
printf '#!/bin/sh\ncase $1 in --version) echo "mpiexec (OpenRTE) 4" ;; *) echo "called: $*" ;; esac\n' >"$T_SCRATCH/mpiexec"
printf 'MPI_Init MPI_Win_allocate MPI_Put' >"$T_SCRATCH/one_sided"
printf 'MPI_Init MPI_Send MPI_Recv' >"$T_SCRATCH/two_sided"
chmod +x "$T_SCRATCH"/{mpiexec,one_sided,two_sided}
# mpi_says PATTERN ARGUMENTS...: what mpi.sh and the launcher print.
mpi_says() {
    local said
    said=$(PATH=$T_SCRATCH:$PATH "$PHW_SCRIPTS/mpi.sh" --lab "$LAB" --with openmpi "${@:2}" 2>&1) || return
    # shellcheck disable=SC2053  # a pattern
    [[ $said == $1 ]] || { printf '%s\n' "$said"; return 1; }
}
warning='*one_sided has one-sided operations, *--apart*'
check "mpi.sh warns of one-sided operations" mpi_says "${warning}called: *one_sided" "$T_SCRATCH/one_sided"
check "but not with --apart, where they use libfabric" mpi_says "called: *--mca osc rdma *one_sided" --apart "$T_SCRATCH/one_sided"
check "nor of other programs" mpi_says "called: *two_sided" "$T_SCRATCH/two_sided"

# Killed under load, at any moment; others continue.
kills=8
! t_long || kills=20
bench=("$PHITWIRE_BIN_DIR/phitwire-bench" bandwidth --lab "$LAB" --client --from nic1 --to nic2)
"${bench[@]}" --size 3000 --window 8 --seconds 60 >/dev/null 2>&1 &
honest=$!
for (( i = 0; i < kills; i++ )); do
    op=put
    (( i % 2 )) || op=send
    "${bench[@]}" --op "$op" --size 200000 --window 32 --seconds 60 >/dev/null 2>&1 &
    victim=$!
    sleep "0.$(( RANDOM % 3 ))$(( RANDOM % 10 ))"
    kill -KILL "$victim"
    wait "$victim" 2>/dev/null || true
done
check "the running tool is not disturbed" kill -0 "$honest"
kill -TERM "$honest"
settled "$honest"
check "and all of its messages were as they were sent" test "$SETTLED" = 130
check "nothing is left of the killed" phw_until 20 nobody_is_there
check "no client was rejected for it" test "$(door_sum dismissed)" = 0
check "programs continue there" programs bandwidth --from nic1 --to nic2 --size 3000 --seconds 0.2

# A NIC dies under its program.
"${bench[@]}" --seconds 60 --size 100 >"$T_SCRATCH/said" 2>&1 &
program=$!
long=("$PHITWIRE_BIN_DIR/phitwire-bench" bandwidth --lab "$LAB" --client --from nic0 --window 8)
"${long[@]}" --to nic1 --seconds 60 --size 4000000 >/dev/null 2>&1 &
sender=$!
sleep 0.5
check "the network interface of a program is killed" "$PHW_SCRIPTS/node.sh" --lab "$LAB" kill nic1
check "what is long and for the dead leaves room for what is not" timeout 10 "${long[@]}" --to nic2 --seconds 0.2 --size 100000
# Do not wait for timeouts.
kill -KILL "$sender"
settled "$sender"
settled "$program"
check "the program is notified, and ends" test "$SETTLED" = 2
check "it says why" grep -q "the NIC is gone" "$T_SCRATCH/said"
check "it is restarted" "$PHW_SCRIPTS/node.sh" --lab "$LAB" start nic1
check "and lets programs in" phw_until 20 programs bandwidth --from nic1 --to nic2 --size 100 --seconds 0.1

check_fails "what programs alone do" "add --client" "$PHITWIRE_BIN_DIR/phitwire-bench" bandwidth --lab "$LAB" --op send
check_fails "both ways at once" "supports only latency and bandwidth" "$PHITWIRE_BIN_DIR/phitwire-bench" bibw --lab "$LAB" --client
check "it goes down" "$PHW_SCRIPTS/down.sh" --lab "$LAB"
check "and leaves nothing" nothing_left "$LAB"

# Machines whose NICs offer programs only puts and gets.
for lab in pair,nic0,nic1 t3e-2x2x2,nic0,nic7; do
    IFS=, read -r topology from to <<<"$lab"
    t_up loads "$topology"
    t_has_nft && t_impair --nft all loss 1%
    for op in put get; do
        check "$topology: words and lines by $op, with loss" programs bandwidth --from "$from" --to "$to" --op "$op" --size 8,32 --window 16 --seconds 0.2
    done
    check "$topology: every size by put" programs latency --from "$from" --to "$to" --seconds 0.05
    if [[ $topology == t3e* ]]; then
        check "$topology: additions" programs latency --from "$from" --to "$to" --op amo --seconds 0.2
    else
        check_fails "$topology: additions" "have no such operation for programs" programs latency --op amo
    fi
    check_fails "$topology: messages" "have no such operation for programs" programs latency --op send
    check_fails "$topology: blocks" "programs can move 1 to" programs latency --size 100
    check "$topology: a program at each puts, with loss" rate --size 8 --seconds 0.3
    check "nothing is left of the programs" phw_until 20 nobody_is_there
    check "it goes down" "$PHW_SCRIPTS/down.sh" --lab "$LAB"
done
