#!/usr/bin/env bash
# Speed of phitwire sim: the figures of docs/guide/src/results.md, each as the median of five runs. Results are checked by the
# simulator itself: a run in which a checker finds something ends this script.
#
#     bench/sim.sh [--large]      --large: also the network of 32,768 processors, half a minute
set -euo pipefail
shopt -s inherit_errexit
unset CDPATH
cd "$(dirname -- "${BASH_SOURCE[0]}")/.."
cargo build --release --workspace --bins --quiet
phitwire=${CARGO_TARGET_DIR:-target}/release/phitwire

# five KEY OPTIONS...: the median of a number in five reports.
five() {
    local key=$1
    shift
    for _ in 1 2 3 4 5; do "$phitwire" sim "$@" --json | jq ".$key"; done | sort -g | sed -n 3p
}

# In assignments, because a failure within the arguments of another command would go unnoticed.
speed=$(five 'phit_hops_per_second / 1e6' yarc-64 --load 0.6 --threads 1 --warmup 2000 --measure 200000)
printf 'one YARC, uniform, load 0.6, one thread: %.1f M phit-hops per second\n' "$speed"
one=$(five wall_seconds r2-1024 --load 0.5 --warmup 1000 --measure 10000 --threads 1)
two=$(five wall_seconds r2-1024 --load 0.5 --warmup 1000 --measure 10000 --threads 2)
printf '1,024 processors, two threads against one: %.2f times as fast\n' "$(jq -n "$one / $two")"
idle=(--participants 96 --load 0.05 --threads 1 --warmup 0 --measure 400000)
small=$(five 'wall_seconds / .packets' r2-96 "${idle[@]}")
large=$(five 'wall_seconds / .packets' r2-960 "${idle[@]}")
printf 'ten times the network, idle: %.2f times the time per packet\n' "$(jq -n "$large / $small")"
if [[ ${1:-} == --large ]]; then
    "$phitwire" sim r3.5-32768 --load 0.3 --warmup 500 --measure 500 --json | jq -r '
        "32,768 processors: built in \(.build_seconds) s, ran in \(.wall_seconds) s, \(.peak_resident_bytes / 1e9) GB, " +
        "accepted \(.accepted_load), mean latency \(.latency_cycles.mean) cycles"'
fi
