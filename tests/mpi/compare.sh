#!/usr/bin/env bash
# compare.sh --suites DIR [TOPOLOGY...]      latency and bandwidth of MPI over the fabric beside TCP over a plain veth
#
# Runs NetPIPE and mpi4py's OSU-style demos with Debian's Open MPI: over each TOPOLOGY (aries-pair and aries-3x4) and, within
# a minute before that lab is up, over TCP (pml ob1, btl tcp) between two network namespaces joined by a veth pair. Prints one
# line per measurement: both figures, and the fabric's speed as a share of TCP's.
#
#   --suites DIR    where tests/mpi/get.sh has fetched mpi4py-3 ($PHITWIRE_MPI_SUITES)
#   --only PATTERN  only measurements whose name matches (extended)
#   --quick         a fifth of the rounds
#
# Two ranks are at two network interfaces, or in the two namespaces. Collective operations have four ranks: two in each
# namespace (and at each network interface of aries-pair). Needs root, or `netns-scripts/rootless.sh`. Status 1 if a
# measurement failed, 4 without Open MPI.
# shellcheck source=../../netns-scripts/lib.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../../netns-scripts/lib.sh"
self=$(readlink -f -- "${BASH_SOURCE[0]}")

# The command by which Open MPI starts its daemon in the other namespace: NAMESPACE COMMAND... The namespace's name is also
# its hostname.
if [[ ${1:-} == --in ]]; then
    # shellcheck disable=SC2016 # the inner shell's
    exec ip netns exec "$2" unshare --uts sh -c 'hostname "$0"; exec sh -c "$*"' "$2" "${@:3}"
fi

suites=${PHITWIRE_MPI_SUITES:-} only='' share=1 topologies=()
while (( $# )); do
    case $1 in
        --suites|--only)
            (( $# > 1 )) || phw_bad_call "$1 wants a value"
            if [[ $1 == --suites ]]; then suites=$2; else only=$2; fi
            shift ;;
        --quick) share=5 ;;
        -h|--help) phw_usage; exit 0 ;;
        -*) phw_bad_call "unknown option $1 (--help lists them)" ;;
        *) topologies+=("$1") ;;
    esac
    shift
done
(( ${#topologies[@]} )) || topologies=(aries-pair aries-3x4)
[[ -d $suites/mpi4py-3/demo ]] || phw_bad_call "--suites wants a directory in which tests/mpi/get.sh has fetched mpi4py-3"
phw_need_root
phw_need_lab_tools
for need in mpiexec.openmpi NPopenmpi; do
    command -v "$need" >/dev/null || phw_skip "no $need here: sudo apt-get install openmpi-bin netpipe-openmpi python3-mpi4py libfabric1"
done
/usr/bin/python3 -c 'import mpi4py' 2>/dev/null || phw_skip "no mpi4py of Open MPI here: sudo apt-get install python3-mpi4py"

scratch=$(mktemp -d)
lab=compare$$ near=phwcmp-$$-a far=phwcmp-$$-b
finish() {
    "$PHW_SCRIPTS/down.sh" --lab "$lab" >/dev/null 2>&1 || true
    ip netns del "$near" 2>/dev/null || true
    ip netns del "$far" 2>/dev/null || true
    rm -rf -- "$scratch"
}
trap finish EXIT
trap 'exit 130' INT TERM

# join: creates two namespaces and a veth pair between them, with the kernel's defaults.
join() {
    local at
    ip netns add "$near"
    ip netns add "$far"
    ip -n "$near" link add veth0 type veth peer name veth0 netns "$far"
    for at in "$near 1" "$far 2"; do
        ip -n "${at% *}" addr add "10.221.7.${at#* }/24" dev veth0
        ip -n "${at% *}" link set lo up
        ip -n "${at% *}" link set veth0 up
    done
}

# over_tcp RANKS PROGRAM...: runs the program, with half of the ranks in each namespace.
over_tcp() {
    local each=$(( $1 / 2 ))
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout --foreground -k 5 60 \
        ip netns exec "$near" unshare --uts sh -c 'hostname "$0"; exec "$@"' "$near" \
        mpiexec.openmpi -n "$1" --host "$near:$each,$far:$each" --bind-to none --mca mpi_yield_when_idle 1 --mca plm_rsh_agent "$self --in" \
        --mca oob_tcp_if_include veth0 --mca pml ob1 --mca btl self,tcp --mca btl_tcp_if_include veth0 "${@:2}"
}
over_fabric() { timeout --foreground -k 5 60 "$PHW_SCRIPTS/mpi.sh" --lab "$lab" --with openmpi -n "$1" "${@:2}"; }

# The measurements: name, ranks, the sizes to show with their units, and the demo's counts. Short one-way messages (bcast,
# gather, scatter) are not shown, because they measure how long the root takes to send them, not when they arrive.
measures=(
    "netpipe|2|8:us 1048576:MB/s|"
    "latency|2|8:us 4096:us 1048576:us|skip=50 loop=500 skip_large=2 loop_large=20 MAX_MSG_SIZE=1048576"
    "multi_lat|4|8:us 4096:us|skip_small=20 loop_small=200 MAX_MSG_SIZE=4096"
    "bw|2|8:MB/s 4096:MB/s 1048576:MB/s|skip=2 loop=10 skip_large=1 loop_large=3 window_size_large=16 MAX_MSG_SIZE=1048576"
    "bibw|2|8:MB/s 4096:MB/s 1048576:MB/s|skip=2 loop=10 skip_large=1 loop_large=3 window_size_large=16 MAX_MSG_SIZE=1048576"
    "barrier|4|0:us|skip=20 loop=200"
    "allreduce|4|8:us 32768:us|skip=20 loop=100 skip_large=2 loop_large=10 MAX_MSG_SIZE=65536"
    "allgather|4|8:us 65536:us|skip=20 loop=100 skip_large=2 loop_large=10 MAX_MSG_SIZE=65536"
    "alltoall|4|8:us 65536:us|skip=20 loop=100 skip_large=2 loop_large=10 MAX_MSG_SIZE=65536"
    "alltoallv|4|8:us 65536:us|skip=20 loop=100 skip_large=2 loop_large=10 MAX_MSG_SIZE=65536"
    "bcast|4|65536:us|skip=20 loop=100 skip_large=2 loop_large=10 MAX_MSG_SIZE=65536"
    "gather|4|65536:us|skip=20 loop=100 skip_large=2 loop_large=10 MAX_MSG_SIZE=65536"
    "scatter|4|65536:us|skip=20 loop=100 skip_large=2 loop_large=10 MAX_MSG_SIZE=65536"
)

# fewer COUNTS: reduces the rounds, with --quick.
fewer() {
    local word
    for word in $1; do
        case $word in
            skip*|loop*) printf '%s=%d\n' "${word%=*}" $(( (${word#*=} + share - 1) / share )) ;;
            *) printf '%s\n' "$word" ;;
        esac
    done
}

# measure OVER RANKS NAME COUNTS: writes lines "SIZE FIGURE [FIGURE]" to $scratch/OVER.NAME; prints the output if it fails.
measure() {
    local said=$scratch/said counts
    if [[ $3 == netpipe ]]; then
        (cd "$scratch" && "$1" 2 NPopenmpi -p 0 -l 8 -u 1048576 -n $(( 60 / share )) -o np.out) >"$said" 2>&1 || return 1
        awk '{ printf "%d %.1f %.1f\n", $1, $3 * 1e6, $2 / 8 * 1.048576 }' "$scratch/np.out" >"$scratch/$1.$3"
    else
        mapfile -t counts < <(fewer "$4")
        "$1" "$2" /usr/bin/python3 "${self%/*}/osu.py" "$suites/mpi4py-3/demo" "$3" "${counts[@]}" >"$said" 2>&1 || return 1
        awk '/^#/ { next } /^[0-9]+ +[0-9.]+$/ { print $1, $2 }' "$said" >"$scratch/$1.$3"
    fi
}

# all OVER: runs every measurement.
all() {
    local line name ranks counts
    for line in "${measures[@]}"; do
        IFS='|' read -r name ranks _ counts <<<"$line"
        [[ -z $only || $name =~ $only ]] || continue
        rm -f -- "$scratch/$1.$name"
        measure "$1" "$ranks" "$name" "$counts" || { failed=1; phw_note "$name $1 failed:"; tail -n 3 "$scratch/said" >&2; }
    done
}

# figure OVER NAME SIZE UNIT
figure() {
    local column=2
    [[ $2 != netpipe || $4 == us ]] || column=3
    awk -v size="$3" -v column=$column '$1 == size { print $column }' "$scratch/$1.$2" 2>/dev/null || true
}

# rows TOPOLOGY: prints the figures side by side; for times the share is inverted.
rows() {
    local line name ranks sizes size
    for line in "${measures[@]}"; do
        IFS='|' read -r name ranks sizes _ <<<"$line"
        [[ -z $only || $name =~ $only ]] || continue
        for size in $sizes; do
            awk -v f="$(figure over_fabric "$name" "${size%:*}" "${size#*:}")" -v t="$(figure over_tcp "$name" "${size%:*}" "${size#*:}")" \
                -v unit="${size#*:}" -v OFS=' | ' -v what="$name, $ranks ranks, ${size%:*} B" -v at="$1" 'BEGIN {
                    sub(", 0 B", "", what)
                    ratio = t > 0 && f > 0 ? sprintf("%.2f", unit == "us" ? t / f : f / t) : "-"
                    print "| " at, what, unit, f == "" ? "failed" : f, t == "" ? "failed" : t, ratio " |" }'
        done
    done
}

failed=0
join
printf '%s\n' "| network | what | unit | fabric | TCP | share |" "|---|---|---|---|---|---|" >"$scratch/table"
for topology in "${topologies[@]}"; do
    all over_tcp
    "$PHW_SCRIPTS/up.sh" "$topology" --lab "$lab" >&2
    all over_fabric
    "$PHW_SCRIPTS/down.sh" --lab "$lab" >&2
    rows "$topology" >>"$scratch/table"
done
cat "$scratch/table"
exit "$failed"
