#!/usr/bin/env bash
# Every ready-made topology comes up and moves messages, each exactly once, between all its processors. Without
# PHITWIRE_LONG=1, skips those that other tests bring up, or similar ones.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

# bridge.sh and dead-wires.sh bring up the pair, t3e-faults.sh a torus of that size; yarc-64 has one router, like r1-32.
elsewhere=(aries-pair t3e-3x3x3 r1-32)

for file in "$PHW_SCRIPTS"/topologies/*.toml; do
    name=$(basename "$file" .toml)
    if ! t_long && { [[ " ${elsewhere[*]} " == *" $name "* ]] \
        || grep -qE "^[^#]*(t_up|one_machine) [^ ]+ $name( |\$)" "${0%/*}"/*.sh; }; then
        continue
    fi
    t_up "ready${#T_LABS[@]}" "$name" --timeout 60
    rate_case "$name: $(awk -F '\t' '$1 == "node" { n[$3]++ } END { print n["nic"], "processors,", n["router"], "chips" }' \
        "$(phw_lab_dir "$LAB")/plan.tsv"): puts" 500 --seconds 0.3 --window 64
    check "$name: nothing is unroutable or against the rules" test \
        "$(counter_sum '^(unroutable_packets|up_down_violations|virtual_router_violations|headless_packets|discard_)')" = 0
    check "$name: it goes down" "$PHW_SCRIPTS/down.sh" --lab "$LAB"
done
