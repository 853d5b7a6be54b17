#!/usr/bin/env bash
# mpi-suites.sh      third-party programs and test suites over the fabric, while its links lose one frame in a hundred
#
# fi_pingpong's modes and NetPIPE always run. With PHITWIRE_LONG=1 so do hpcc and the suites that tests/mpi/get.sh has
# fetched to $PHITWIRE_MPI_SUITES: mpi4py's suite with both MPIs and its demos, and MPICH's lists pt2pt, rma, coll,
# datatype. So do libfabric's fabtests of tests/mpi/fabtests.txt, if they are installed in $PHITWIRE_FABTESTS (for
# libfabric 2.x with its library in LD_LIBRARY_PATH). PHITWIRE_MPI_PARTS: run only these, of fi_pingpong netpipe hpcc osu
# mpi4py mpich fabtests.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces
t_need_mpi
# On busy processors, links of this many processes may be down for long: do not declare peers dead here.
export PHITWIRE_PATIENCE=60

suites=${PHITWIRE_MPI_SUITES:-}
parts=(fi_pingpong netpipe) long_parts=(hpcc osu mpi4py mpich fabtests)
if [[ -n ${PHITWIRE_MPI_PARTS:-} ]]; then
    read -ra parts <<<"$PHITWIRE_MPI_PARTS"
elif t_long; then
    parts+=("${long_parts[@]}")
else
    for part in "${long_parts[@]}"; do skip "$part" "takes minutes (tests/run.sh --long, or PHITWIRE_MPI_PARTS=$part)"; done
fi

# mpi SECONDS [options] PROGRAM...
mpi() { timeout --foreground -k 5 "$1" "$PHW_SCRIPTS/mpi.sh" --lab "$LAB" "${@:2}"; }
# With the fetched MPICH.
mpich() { PATH=$suites/venv/bin:$PATH mpi "$1" --with mpich "${@:2}"; }

# fetched WHAT CASE: whether get.sh has fetched it; otherwise CASE is skipped.
fetched() {
    [[ -z $suites || ! -e $suites/$1 ]] || return 0
    skip "$2" "no \$PHITWIRE_MPI_SUITES/$1 (tests/mpi/get.sh fetches it)"
    return 1
}

# ---- fi_pingpong ----

# pingpong FROM TO OPTIONS...: its control connection uses loopback.
port=$(( 20000 + $$ % 20000 ))
pingpong() {
    local from=$1 to=$2 server status=0
    shift 2
    mpi 120 --with none --job "$$" --door "$to" fi_pingpong -p phitwire -B "$port" "$@" >"$T_SCRATCH/server" 2>&1 &
    server=$!
    phw_until 10 listens || status=1
    (( status )) || mpi 120 --with none --job "$$" --door "$from" fi_pingpong -p phitwire -P "$port" "$@" 127.0.0.1 || status=$?
    if (( status )); then phw_stop "$server" || true; else wait "$server" || status=$?; fi
    (( status == 0 )) || cat "$T_SCRATCH/server"
    return "$status"
}
# two_jobs: fi_pingpong with a program of another job, which would wait forever.
two_jobs() {
    local server status=0
    mpi 60 --with none --job "$$" --door "$last" fi_pingpong -p phitwire -B "$port" -e rdm >/dev/null 2>&1 &
    server=$!
    phw_until 10 listens || return
    mpi 15 --with none --job "other$$" --door nic0 fi_pingpong -p phitwire -P "$port" -e rdm 127.0.0.1 || status=$?
    phw_stop "$server" || true
    return "$status"
}
missing_door() { FI_LOG_LEVEL=warn PHITWIRE_DOOR=/nonexistent/nic0.door mpi 20 --with none fi_info -p phitwire; }
listens() { ss -Hltn "sport = :$port" | grep -q .; }

part_fi_pingpong() {
    local mode sizes=(64 65536)
    [[ ${PHITWIRE_LONG:-0} == 0 ]] || sizes=(64 8000 8096 65536 1048576)
    for mode in msg tagged; do
        for size in "${sizes[@]}"; do
            (( ++port ))
            check "fi_pingpong -e rdm -m $mode -S $size" pingpong "$last" nic0 -e rdm -m "$mode" -c -I 5 -S "$size"
        done
    done
    for mode in dgram msg; do
        (( ++port ))
        check_fails "fi_pingpong -e $mode is rejected: unsupported end points" 'fi_getinfo.*No data available' \
            pingpong "$last" nic0 -e "$mode" -I 5 -S 64
    done
    (( ++port ))
    check_fails "fi_pingpong with another job: the provider reports it" 'is of another job' two_jobs
    check_fails "a missing door is named in libfabric's log" 'phitwire:core.*/nonexistent/nic0.door does not exist' missing_door
}

# ---- NetPIPE ----

# Sizes up to $1, a third of a second each; it reports any corruption.
netpipe() { (cd "$T_SCRATCH" && mpi 600 --with openmpi -n 2 NPopenmpi -i -u "$1" -o "$T_SCRATCH/np.out"); }
part_netpipe() {
    command -v NPopenmpi >/dev/null || { skip "NetPIPE" "no NPopenmpi (sudo apt-get install netpipe-openmpi)"; return; }
    local most=1000
    [[ ${PHITWIRE_LONG:-0} == 0 ]] || most=1048576
    check "NetPIPE verifies messages up to $most bytes" netpipe "$most"
}

# ---- hpcc ----

# hpcc_input N: a problem of N unknowns on two by two ranks.
hpcc_input() {
    printf '%s\n' "HPLinpack benchmark input file" "two by two" "HPL.out" 8 1 "$1" 1 40 0 1 2 2 16.0 1 1 1 4 1 2 1 1 1 1 1 1 2 64 0 0 1 8 \
        "-" 0 "$1" 0 40
}
hpcc_whole() {
    mkdir -p "$T_SCRATCH/hpcc"
    hpcc_input 240 >"$T_SCRATCH/hpcc/hpccinf.txt"
    (cd "$T_SCRATCH/hpcc" && mpi 3600 --with openmpi -n 4 hpcc && hpcc_is_right hpccoutf.txt)
}
# Every verifying benchmark reports success, and the summary exists.
hpcc_is_right() {
    grep -qx 'Success=1' "$1" && ! grep -E 'FAILED|[1-9][0-9]* tests completed and failed|Node\(s\) with error [1-9]' "$1"
}
part_hpcc() {
    command -v hpcc >/dev/null || { skip "hpcc" "no hpcc (sudo apt-get install hpcc)"; return; }
    check "hpcc ends without an error" hpcc_whole
}

# ---- mpi4py ----

# The demos' default of 10,000 rounds per size would take hours.
osu_counts=(skip=10 loop=50 skip_small=10 loop_small=50 skip_large=1 loop_large=3 window_size_large=8 MAX_MSG_SIZE=65536)
part_osu() {
    fetched mpi4py "OSU-style demos" || return 0
    local demo ranks name
    for demo in "$suites"/mpi4py/demo/osu_*.py; do
        case $demo in
            *_latency.py|*_bw.py|*_bibw.py|*_multi_lat.py) ranks=2 ;;
            *) ranks=4 ;;
        esac
        name=$(basename "$demo" .py)
        check "$name, $ranks ranks" mpich 600 -n "$ranks" "$suites/venv/bin/python" "$PHW_ROOT/tests/mpi/osu.py" "$suites/mpi4py/demo" "${name#osu_}" "${osu_counts[@]}"
    done
}

# suite DIR: mpi4py's tests, except those that start processes.
suite_options=(-e spawn -e dynproc)
# Over `mtl ofi` a synchronous send never learns of a matched receive (docs/guide/src/mpi.md).
env_mpi4py() { MPI4PY_RC_RECV_MPROBE=0 mpi "$@"; }
part_mpi4py() {
    if fetched mpi4py "mpi4py's suite, MPICH"; then
        check "mpi4py's suite, MPICH, 3 ranks" mpich 3600 -n 3 "$suites/venv/bin/python" "$suites/mpi4py/test/main.py" "${suite_options[@]}"
    fi
    if ! /usr/bin/python3 -c 'import mpi4py' 2>/dev/null; then
        skip "mpi4py's suite, Open MPI" "no mpi4py for Open MPI (sudo apt-get install python3-mpi4py)"
    elif fetched mpi4py-3 "mpi4py's suite, Open MPI"; then
        check "mpi4py's suite, Open MPI, 3 ranks" env_mpi4py 3600 --with openmpi -n 3 /usr/bin/python3 \
            "$PHW_ROOT/tests/mpi/mpi4py_tests.py" "$suites/mpi4py-3/test" "$PHW_ROOT/tests/mpi/mpi4py-openmpi-left-out.txt" "${suite_options[@]}"
    fi
}

# ---- MPICH ----

part_mpich() {
    fetched mpich/datatype/testlist "MPICH's own lists" || return 0
    local list
    for list in datatype pt2pt coll rma; do
        PATH=$suites/venv/bin:$PATH "$PHW_ROOT/tests/mpi/mpich.sh" --lab "$LAB" --tests "$suites/mpich" "$list" || T_FAILED=1
    done
}

# ---- fabtests ----

# fabtest KIND PROGRAM ARGUMENTS...: as tests/mpi/fabtests.txt describes.
fabtest() { "fabtest_$1" "$PHITWIRE_FABTESTS/bin/$2" -p phitwire "${@:3}"; }
at() { mpi 120 --with none --job "$$-$port" --door "$@"; }
fabtest_one() { at nic0 "$@"; }
# The end of the server counts, too, once the client has ended.
fabtest_pair() {
    local server status=0
    at "$last" "$@" "-E=$port" >"$T_SCRATCH/server" 2>&1 &
    server=$!
    phw_until 20 listens || status=1
    (( status )) || at nic0 "$@" "-E=$port" 127.0.0.1 || status=$?
    if (( status )); then phw_stop "$server" || true; else wait "$server" || status=$?; fi
    (( status == 0 )) || cat "$T_SCRATCH/server"
    return "$status"
}
fabtest_three() {
    local rank ranks=() status=0
    for rank in 0 1 2; do
        at "nic$rank" "$@" -n 3 -s 127.0.0.1 >"$T_SCRATCH/rank$rank" 2>&1 &
        ranks+=($!)
        sleep 0.2
    done
    for rank in 0 1 2; do wait "${ranks[rank]}" || { status=$?; cat "$T_SCRATCH/rank$rank"; }; done
    return "$status"
}
part_fabtests() {
    [[ -d ${PHITWIRE_FABTESTS:-/none}/bin ]] || { skip "fabtests" "PHITWIRE_FABTESTS is not a directory with libfabric's fabtests"; return; }
    local kind program arguments usage
    while read -r kind program arguments; do
        [[ -n $kind && $kind != \#* ]] || continue
        [[ -x $PHITWIRE_FABTESTS/bin/$program ]] || { skip "$program $arguments" "no $PHITWIRE_FABTESTS/bin/$program: this version of fabtests does not have it"; continue; }
        # 1.17 has another name for the option of fi_multinode.
        usage=$("$PHITWIRE_FABTESTS/bin/$program" -h 2>&1) || true
        [[ $program != fi_multinode || $usage == *"-x <xfer_mode>"* ]] || arguments=${arguments/-x/-C}
        (( ++port ))
        # shellcheck disable=SC2086  # a list
        check "$program $arguments" fabtest "$kind" "$program" $arguments
    done <"$PHW_ROOT/tests/mpi/fabtests.txt"
}

# Two ranks need only one group.
topology=aries-group last=nic7
! t_long || topology=aries-3x4 last=nic11
t_up suites "$topology"
if ! t_impair --nft all loss 1% >/dev/null 2>&1; then
    skip "links lose one frame in a hundred" "nftables cannot drop frames here"
fi
for part in "${parts[@]}"; do
    [[ $part =~ ^(fi_pingpong|netpipe|hpcc|osu|mpi4py|mpich|fabtests)$ ]] || skip_all "unknown part $part in PHITWIRE_MPI_PARTS"
    "part_$part"
done
