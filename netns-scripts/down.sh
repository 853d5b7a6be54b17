#!/usr/bin/env bash
# down.sh [--lab NAME | --all]      takes down a lab, whatever its state
#
# Ends its processes, and removes its namespaces (interfaces and qdiscs go with them) and its directory. May be called
# again, after a crash, and while up.sh is still running. Status 0 also if there was nothing to do; 1 if something is
# left, after trying every lab.
# shellcheck source=lib.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/lib.sh"

lab=$(phw_default_lab) all=0
while (( $# )); do
    case $1 in
        --lab) (( $# > 1 )) || phw_bad_call "--lab needs a name"; lab=$2; shift ;;
        --all) all=1 ;;
        -h|--help) phw_usage; exit 0 ;;
        *) phw_bad_call "unknown argument $1 (--help lists them)" ;;
    esac
    shift
done

# A running up.sh cleans up when it is stopped.
stop_up() {
    local pid
    pid=$(phw_recorded "$(phw_lab_dir "$1")/.up") || return 0
    phw_is_ancestor "$pid" || PHW_STOP_SECONDS=15 phw_stop "$pid"
}

take_down() {
    phw_check_lab "$1"
    if ! phw_lab_exists "$1"; then
        phw_note "lab '$1' is not up"
        return 0
    fi
    stop_up "$1"
    phw_remove_lab "$1" || phw_die "cannot take down all of lab '$1'"
}

if (( all )); then
    labs=$(phw_labs) status=0
    for lab in $labs; do
        (take_down "$lab") || status=1
    done
    exit "$status"
else
    take_down "$lab"
fi
