#!/usr/bin/env bash
# mpi.sh      MPI and libfabric programs communicate over the fabric while its links lose frames
#
# PHITWIRE_LONG=1: three groups instead of one, more rounds, and all ranks also over links without loss.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces
t_need_mpi
# On busy processors, links of this many processes may be down for long: do not declare peers dead here.
export PHITWIRE_PATIENCE=60

topology=aries-group nics=8 many=12 rounds=5
! t_long || topology=aries-3x4 nics=12 many=16 rounds=500
mpi() { timeout --foreground -k 5 300 "$PHW_SCRIPTS/mpi.sh" --lab "$LAB" "$@"; }

listed() { mpi --with none fi_info -p phitwire | grep -q 'provider: phitwire'; }

# pingpong SIZE: between the first and the last NIC; its control connection uses loopback.
pingpong() {
    local port=$(( 20000 + $$ % 20000 )) server status=0
    mpi --with none --job "$$" --door nic0 fi_pingpong -e rdm -p phitwire -B "$port" -I "$rounds" -c -S "$1" >"$T_SCRATCH/server" 2>&1 &
    server=$!
    phw_until 10 listens "$port" || status=1
    (( status )) || mpi --with none --job "$$" --door "nic$(( nics - 1 ))" fi_pingpong -e rdm -p phitwire -P "$port" -I "$rounds" -c -S "$1" 127.0.0.1 || status=$?
    if (( status )); then phw_stop "$server" || true; else wait "$server" || status=$?; fi
    (( status == 0 )) || cat "$T_SCRATCH/server"
    return "$status"
}
listens() { ss -Hltn "sport = :$1" | grep -q .; }

# one_sided RANKS [mpi.sh options] PROGRAM: puts, gets and additions, also while their target computes. With $waiting they
# must wait for it, that many seconds.
one_sided() { mpi -n "$@" "$rounds" 65536 ${waiting:+"$waiting"}; }
waits_for_target() { waiting=4 PHITWIRE_REACH=0 one_sided "$@"; }

t_up mpi "$topology"
check "libfabric lists the provider" listed
# mpi-suites.sh sends 64 bytes over lossy links.
! t_long || check "fi_pingpong, 64 bytes" pingpong 64
check "fi_pingpong, 300000 bytes" pingpong 300000

# A receiver that makes no call, over a thread of its domain.
progresses() {
    local receiver status=0
    mpi --with none --job "$$" --door nic1 "$T_SCRATCH/mpi_progress" 1 "$T_SCRATCH" &
    receiver=$!
    mpi --with none --job "$$" --door nic0 "$T_SCRATCH/mpi_progress" 0 "$T_SCRATCH" || status=$?
    wait "$receiver" || status=$?
    return "$status"
}
if [[ ! -e /usr/include/rdma/fabric.h ]]; then
    skip "automatic progress" "no rdma/fabric.h (sudo apt-get install libfabric-dev)"
elif cc -O1 -Wall -o "$T_SCRATCH/mpi_progress" "$PHW_ROOT/tests/netns/mpi_progress.c" -lfabric; then
    check "automatic progress: a long message arrives while its receiver makes no call" progresses
else
    not_ok "the program without MPI compiles" "cc fails"
fi

if ! check_mpi=$(mpicc -O1 -Wall -o "$T_SCRATCH/mpi_check" "$PHW_ROOT/tests/netns/mpi_check.c" 2>&1); then
    not_ok "the MPI program compiles" "mpicc fails"
    detail <<<"$check_mpi"
else
    if t_long || ! t_has_nft; then
        check "$nics ranks: messages, collectives, one-sided operations" mpi "$T_SCRATCH/mpi_check" "$rounds"
    fi
    check "$many ranks at $nics network interfaces" mpi -n "$many" "$T_SCRATCH/mpi_check" 2
    if mpicc -O2 -o "$T_SCRATCH/onesided" "$PHW_ROOT/tests/mpi/onesided.c"; then
        check "three ranks apart: puts, gets, additions, locks by libfabric's operations" one_sided 3 --with openmpi --apart "$T_SCRATCH/onesided"
    else
        not_ok "the one-sided program compiles" "mpicc fails"
    fi
    if [[ -x ${PHITWIRE_MPICH:-/none}/bin/mpicc ]] && "$PHITWIRE_MPICH/bin/mpicc" -O2 -o "$T_SCRATCH/onesided_mpich" "$PHW_ROOT/tests/mpi/onesided.c"; then
        PATH=$PHITWIRE_MPICH/bin:$PATH check "MPICH: the same" one_sided 3 --with mpich "$T_SCRATCH/onesided_mpich"
        PATH=$PHITWIRE_MPICH/bin:$PATH check "MPICH: all goes by messages where memory is not reached, and a target that computes keeps others waiting" waits_for_target 3 --with mpich "$T_SCRATCH/onesided_mpich"
    else
        skip "MPICH: one-sided operations" "PHITWIRE_MPICH is not a directory with bin/mpicc of MPICH 5 (a virtual environment with pip install mpich)"
    fi
    if t_impair --nft all loss 1% >/dev/null 2>&1; then
        check "$nics ranks while links lose one frame in a hundred: messages, collectives, one-sided operations" mpi "$T_SCRATCH/mpi_check" "$rounds"
        check "frames were lost" test "$(nft_lost_share)" -gt 0
    else
        skip "MPI while links lose frames" "nftables cannot drop frames here"
    fi
fi
