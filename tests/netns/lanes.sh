#!/usr/bin/env bash
# Noise on a lane by the fault command: at the threshold the lane goes, 3 -> 2 -> 1, and the throughput of a paced
# link falls to about 2/3 and 1/3. Without lanes left, the link is down.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

t_up lanes paced
read -r router port peer peer_port < <(phw_plan_links "$LAB" | awk -F '\t' -v routers="$(awk -F '\t' \
    '$1 == "node" && $3 == "router" { print $2 }' "$(phw_lab_dir "$LAB")/plan.tsv" | paste -sd ' ')" '
    BEGIN { n = split(routers, r, " "); for (i = 1; i <= n; i++) is[r[i]] = 1 }
    ($2 in is) && ($4 in is) { print $2, $3, $4, $5; exit }')

lanes_of() {
    t_ctl "$1" links --json | jq --arg port "$2" '(.data? // .)[] | select((.port | tostring) == $port) | .rx_lanes'
}
throughput() {
    t_rate "$T_SCRATCH/$1.json" --op put --size 32 --seconds 4 || true
    check "with $1 lanes: each message exactly once" exactly_once "$T_SCRATCH/$1.json" 100 >&2
    jq '.messages_per_second | floor' "$T_SCRATCH/$1.json"
}

# lose_lane LANE LEFT: noise until the lane is taken out of use, under traffic that gives the noise something to hit.
lose_lane() {
    t_ctl "$router" fault lane-noise "$port" "$1" 1/200
    t_rate "$T_SCRATCH/noise.json" --seconds 4 || true
    check "noise on lane $1 loses no message" exactly_once "$T_SCRATCH/noise.json" 10
    t_ctl "$router" fault lane-noise "$port" "$1" 0
    check "lane $1 is taken out of use, $2 left" test "$(lanes_of "$router" "$port")" = "$2"
}

check "three lanes at first" test "$(lanes_of "$router" "$port")" = 3
full=$(throughput 3)
lose_lane 1 2
two=$(throughput 2)
check "two lanes give about 2/3 ($two of $full messages per second)" between $(( two * 1000 / full )) 580 750
lose_lane 2 1
one=$(throughput 1)
check "one lane gives about 1/3 ($one of $full messages per second)" between $(( one * 1000 / full )) 270 400

t_ctl "$router" fault lane-noise "$port" 0 1/10
t_rate "$T_SCRATCH/none.json" --seconds 4 || true
check "what was on the link that lost its last lane is reported" honest "$T_SCRATCH/none.json"
check "no lane, no link: $peer port $peer_port is down too" bash -c '! "$1" --lab "$2" >/dev/null' bash \
    "$PHW_SCRIPTS/status.sh" "$LAB"
