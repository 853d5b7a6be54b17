#!/usr/bin/env bash
# runner.sh STATUS TEST ARGUMENTS...: runs a test binary of cargo's, in the directory of its package, where cargo starts
# it. If PHITWIRE_TESTED holds the output of an earlier run of it, prints that instead. Tests of the nodes make network
# namespaces, and run in rootless.sh, with building forbidden, if STATUS is 0.
scripts="$(dirname -- "${BASH_SOURCE[0]}")/../netns-scripts"
rootless=$1 before=${PHITWIRE_TESTED:-/nonexistent}/${2##*/}
shift
if [[ $# == 1 && -s $before.status ]]; then
    cat -- "$before.out"
    cat -- "$before.err" >&2
    exit "$(<"$before.status")"
fi
[[ $rootless != 0 || ${PWD##*/} != nodes ]] || exec env PHITWIRE_BIN_DIR=none "$scripts/rootless.sh" "$@"
exec "$@"
