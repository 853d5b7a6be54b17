#!/usr/bin/env bash
# openshmem.sh      OpenSHMEM programs over the fabric: that of docs/guide/src/openshmem.md, and one that checks every
# word while links lose one frame in a hundred and a router stands still
#
# PHITWIRE_SOS: where Sandia OpenSHMEM is installed. PHITWIRE_SOS_TESTS: where its unit tests were built
# (modules/tests-sos of its build). They run on two and four processing elements, without loss and with it, with the
# arguments in tests/mpi/openshmem.txt. They take an hour: only with PHITWIRE_LONG=1, or with PHITWIRE_SOS_PART, an
# extended pattern of programs such as 'unit/put.*'.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces
sos=${PHITWIRE_SOS:-/none} tests=${PHITWIRE_SOS_TESTS:-/none}/test
[[ -x $sos/bin/oshcc ]] || skip_all "Sandia OpenSHMEM is not in \$PHITWIRE_SOS (docs/guide/src/openshmem.md)"
PATH=${PHITWIRE_MPICH:+$PHITWIRE_MPICH/bin:}$PATH
command -v mpiexec.hydra >/dev/null || skip_all "no mpiexec.hydra in PATH or \$PHITWIRE_MPICH/bin (pip install mpich)"
# On busy processors, links of this many processes may be down for long: do not declare peers dead here.
export PHITWIRE_PATIENCE=60
export LD_LIBRARY_PATH=$sos/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# shmem SECONDS PEs PROGRAM...
shmem() { timeout --foreground -k 5 "$1" "$PHW_SCRIPTS/mpi.sh" --lab "$LAB" -n "$2" --with mpich "${@:3}"; }

# ---- The page -----------------------------------------------------------------------------------

page=$PHW_ROOT/docs/guide/src/openshmem.md
awk '/^```c$/{ code = 1; next } /^```/{ code = 0 } code' "$page" >"$T_SCRATCH/ring.c"
# The expected output: the first line indented by four blanks after the program.
shown=$(awk '/^```c$/{ code = 1 } /^```$/ && code { behind = 1 } behind && sub(/^    /, "")' "$page" | head -n 1)
says_what_is_shown() {
    local output
    output=$(shmem 120 4 "$T_SCRATCH/ring") || { printf '%s\n' "$output"; return 1; }
    grep -qxF -- "$shown" <<<"$output" || { echo "not '$shown': $output"; return 1; }
}

# A message lost to a stop is resent after three seconds instead of twenty.
t_topology "$T_SCRATCH/impatient.toml" aries-3x4 request_timeout_ms=3000
t_up shmem "$T_SCRATCH/impatient.toml"
check "the page's program compiles" "$sos/bin/oshcc" -O2 -Wall -o "$T_SCRATCH/ring" "$T_SCRATCH/ring.c"
check "it prints what the page shows" says_what_is_shown
check "the checking program compiles" \
    "$sos/bin/oshcc" -O2 -Wall -o "$T_SCRATCH/shmem_check" "$PHW_ROOT/tests/netns/shmem_check.c"
check "12 PEs: every word and counter is right" shmem 120 12 "$T_SCRATCH/shmem_check" 2

# ---- A router that stands still -----------------------------------------------------------------

# Long enough for its links to be given up, with what is on them.
has_begun() { grep -q 'first round' "$T_SCRATCH/out"; }
stands_still() {
    local runner status=0 router
    router=$(<"$(phw_lab_dir "$LAB")/$1.pid")
    shmem 240 4 "$T_SCRATCH/shmem_check" 12 >"$T_SCRATCH/out" 2>&1 &
    runner=$!
    phw_until 60 has_begun || status=1
    sleep 1
    kill -STOP "$router"
    sleep "$2"
    kill -CONT "$router"
    wait "$runner" || status=$?
    (( status == 0 )) || cat "$T_SCRATCH/out"
    return "$status"
}
for seconds in 0.5 2.5; do
    check "a router stands still for $seconds s: additions are carried out once, every word is right" \
        stands_still g0-c0s0 "$seconds"
    check "all links are up again" "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$LAB" --timeout 30
done

# ---- Loss, and the unit tests -------------------------------------------------------------------

# Programs whose arguments keep them below a gigabyte, and those that are known to fail: KIND PROGRAM ARGUMENTS...
declare -A arguments=() failing=()
while read -r kind program rest; do
    case $kind in
        with) arguments[$program]=$rest ;;
        fails) failing[$program]=$rest ;;
    esac
done <"$PHW_ROOT/tests/mpi/openshmem.txt"

# unit_tests PEs LINKS
unit_tests() {
    local program name
    if [[ ! -d $tests/unit/.libs ]]; then
        skip "unit tests, $1 PEs, $2" "PHITWIRE_SOS_TESTS is not a directory with SOS's built tests (test/unit)"
        return
    elif ! t_long && [[ -z ${PHITWIRE_SOS_PART:-} ]]; then
        skip "unit tests, $1 PEs, $2" "take an hour (PHITWIRE_LONG=1, or PHITWIRE_SOS_PART=PATTERN)"
        return
    fi
    for program in "$tests"/{unit,spec-example,shmemx,apps}/.libs/*; do
        name=${program#"$tests/"} name=${name/.libs\//}
        [[ -f $program && -x $program && $name =~ ^(${PHITWIRE_SOS_PART:-.*})$ ]] || continue
        [[ -z ${failing[$name]:-} ]] || { skip "$name, $1 PEs, $2" "${failing[$name]}"; continue; }
        # shellcheck disable=SC2086  # a list
        check "$name, $1 PEs, $2" shmem 120 "$1" "$program" ${arguments[$name]:-}
    done
}
unit_tests 2 "no loss"
unit_tests 4 "no loss"
if ! t_impair --nft all loss 1% >/dev/null 2>&1; then
    skip "links lose one frame in a hundred" "nftables cannot drop frames here"
    exit
fi
check "12 PEs over lossy links: every word and counter is right" shmem 120 12 "$T_SCRATCH/shmem_check" 2
unit_tests 2 "1 % loss"
unit_tests 4 "1 % loss"
