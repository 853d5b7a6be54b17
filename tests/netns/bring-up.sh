#!/usr/bin/env bash
# Bringing up labs in unusual conditions: any umask, processes that end, full file systems, directories of other users.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

up=$PHW_SCRIPTS/up.sh down=$PHW_SCRIPTS/down.sh
real=$PHITWIRE_BIN_DIR

# ---- Any umask ----------------------------------------------------------------------------------

mode_of() { stat -c %a -- "$1"; }
# The two extremes. quickstart.sh covers 002, the default of Ubuntu.
masks=(000 0777)
! t_long || masks=(002 000 0777)
for mask in "${masks[@]}"; do
    t_lab umask
    run=$T_SCRATCH/run$mask
    # shellcheck disable=SC2016  # expanded by the inner shell
    check "a lab comes up with umask $mask" bash -c 'umask "$1"; PHITWIRE_RUN_DIR=$2 "$3" pair --lab "$4"' \
        bash "$mask" "$run" "$up" "$LAB"
    check "its run directory is private" test "$(mode_of "$run")" = 700
    check "so is its own" test "$(mode_of "$run/$LAB")" = 700
    # shellcheck disable=SC2016  # expanded by the inner shell
    check "a node of it starts again" bash -c 'umask "$1"; PHITWIRE_RUN_DIR=$2 "$3/node.sh" --lab "$4" restart nic0' \
        bash "$mask" "$run" "$PHW_SCRIPTS" "$LAB"
    check "it goes down" env "PHITWIRE_RUN_DIR=$run" "$down" --lab "$LAB"
    check "with the directory that up.sh made" test ! -e "$run"
done

# ---- Processes that end -------------------------------------------------------------------------

# A phitwire whose processes end as the script $1 specifies.
stub() {
    mkdir -p "$T_SCRATCH/bin"
    # shellcheck disable=SC2016  # expanded by the stub
    printf '#!/bin/bash\nreal=%q\n%s\nexec "$real" "$@"\n' "$real/phitwire" "$1" >"$T_SCRATCH/bin/phitwire"
    chmod +x "$T_SCRATCH/bin/phitwire"
}

# fails_soon SAYS COMMAND...: COMMAND fails within 10 s, although it may wait for 30, and reports SAYS once.
fails_soon() {
    local says=$1 status=0 begin
    shift
    begin=$(phw_ms)
    "$@" >"$T_SCRATCH/said" 2>&1 || status=$?
    cat "$T_SCRATCH/said"
    (( status == 1 && $(phw_ms) - begin < 10000 && $(grep -cE -- "$says" "$T_SCRATCH/said") == 1 ))
}

# shellcheck disable=SC2016  # expanded by the stub
stub '[[ $1 != run ]] || { echo "Error: the $(date +%N)th processor of ${*: -3} is on fire" >&2; exit 3; }'
for mode in '' --loopback; do
    t_lab dead
    # shellcheck disable=SC2086  # none or one
    check "up.sh $mode does not wait for processes that have all ended" fails_soon "on fire" \
        env "PHITWIRE_BIN_DIR=$T_SCRATCH/bin" "$up" quickstart --lab "$LAB" $mode
    check "and says how many" grep -F "10 processes have ended" "$T_SCRATCH/said"
    check "and leaves nothing" nothing_left "$LAB"
done
# shellcheck disable=SC2016  # expanded by the stub
stub '[[ $1 != run || "$*" != *"--node nic3 "* ]] || { echo "Error: no more of it" >&2; exit 3; }'
t_lab dead
check "nor for a single one" fails_soon "process nic3 has ended" \
    env "PHITWIRE_BIN_DIR=$T_SCRATCH/bin" "$up" quickstart --lab "$LAB"
check "it says why" grep -F "no more of it" "$T_SCRATCH/said"
check "and leaves nothing" nothing_left "$LAB"
status=0
"$up" pair --io bad 2>"$T_SCRATCH/said" || status=$?
check "an invalid engine is rejected before anything starts" test "$status" = 2
check "with those that are" grep -F "auto, uring or plain" "$T_SCRATCH/said"

# ---- Full file systems --------------------------------------------------------------------------

# A separate file system under the run directory, in a separate mount namespace.
# full OPTION TOPOLOGY: up.sh must fail soon, and report that there is no room, and where.
full() {
    # shellcheck disable=SC2016  # expanded by the inner shell
    PHITWIRE_BIN_DIR=$bin fails_soon "$says" unshare -m bash -c 'mount -t tmpfs -o "mode=700,$1" tmpfs "$2" && export PHITWIRE_RUN_DIR=$2 \
        && { "$3/up.sh" quickstart --lab "$4"; status=$?; rm -f "$2/ballast"; "$3/down.sh" --lab "$4" 2>/dev/null; exit "$status"; }' \
        bash "$1" "$T_SCRATCH/tiny" "$PHW_SCRIPTS" "$LAB"
}
mkdir "$T_SCRATCH/tiny"
if unshare -m mount -t tmpfs -o size=64k tmpfs "$T_SCRATCH/tiny" 2>/dev/null; then
    bin=$real says="^up.sh: $T_SCRATCH/tiny is full: .*free some space, or set PHITWIRE_RUN_DIR"
    for option in size=4k size=64k size=100k nr_inodes=3 nr_inodes=30; do
        t_lab full
        check "a file system with $option is full, and up.sh reports it" full "$option"
        check "and leaves nothing" nothing_left "$LAB"
    done
    # It fills up while the lab comes up: when the plan is written, and when processes start.
    bin=$T_SCRATCH/bin says="cannot write to .*No space left on device"
    # shellcheck disable=SC2016  # expanded by the stub
    for when in '"$1" == topology' '"$1" == run'; do
        stub "[[ $when ]] && head -c 64M /dev/zero >\$PHITWIRE_RUN_DIR/ballast 2>/dev/null"
        t_lab full
        check "one that fills up is reported ($when)" full size=1M
        check "and leaves nothing" nothing_left "$LAB"
    done
else
    skip "full file systems" "this namespace does not allow mounts"
fi

# ---- Directories of others ----------------------------------------------------------------------

mine=$T_SCRATCH/mine
mkdir -m 700 "$mine"
t_lab mine
check_fails "up.sh fails in an existing run directory" "nmae" \
    env "PHITWIRE_RUN_DIR=$mine" "$up" --lab "$LAB" <(echo 'nmae = "x"')
check "which is still there" test -d "$mine"
check "a lab comes up in it, of a description that can be read but once" \
    env "PHITWIRE_RUN_DIR=$mine" "$up" --loopback --lab "$LAB" <("$real/phitwire" topology generate blackwidow --processors 2)
check "and goes down" env "PHITWIRE_RUN_DIR=$mine" "$down" --lab "$LAB"
check "it is still there, and empty" test -d "$mine" -a -z "$(ls -A "$mine")"
mkdir "$mine/$LAB"
check_fails "an empty directory of the lab's name is not used" "left behind" \
    env "PHITWIRE_RUN_DIR=$mine" "$up" pair --loopback --lab "$LAB"
check "nor removed" test -d "$mine/$LAB"

# ---- Without root -------------------------------------------------------------------------------

if phw_is_machine_root && id nobody >/dev/null 2>&1 && runuser -u nobody -- test -r "$up" -a -x "$real/phitwire"; then
    for way in "rootless.sh bash" "--loopback"; do
        check_fails "up.sh without root names $way" "$way" runuser -u nobody -- env HOME=/tmp "$up" pair
    done
else
    skip "up.sh without root names the alternatives" "needs root, and read access to this directory for the user 'nobody'"
fi
