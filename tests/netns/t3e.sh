#!/usr/bin/env bash
# Tori live, on both kinds of links: every operation exactly once between all processors, ordered requests in order, and
# single wrong bits on the wires of flits corrected where packets end.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

# operations NAME: each between all processors.
operations() {
    rate_case "$1: puts of a word" 1000 --seconds 0.5
    rate_case "$1: puts of eight words" 1000 --seconds 0.5 --size 64
    rate_case "$1: gets of a word" 1000 --seconds 0.5 --op get
    rate_case "$1: gets of eight words" 1000 --seconds 0.5 --op get --size 64
    rate_case "$1: additions" 1000 --seconds 0.5 --op amo
    rate_case "$1: ordered puts" 1000 --seconds 0.5 --routing ordered
}

# corrected NAME: packets with a wrong bit arrive as they were sent, and are counted where they were corrected.
corrected() {
    local router=r0 before after
    before=$(counter_sum '\.rx_corrected_packets$')
    check "$1: lane 3 of a link becomes noisy" t_ctl "$router" fault lane-noise 0 3 1/20000
    rate_case "$1: puts over a noisy lane" 1000 --seconds 1 --size 64
    check "$1: the lane is quiet again" t_ctl "$router" fault lane-noise 0 3 0
    after=$(counter_sum '\.rx_corrected_packets$')
    check "$1: wrong bits were corrected ($(( after - before )))" test "$after" -gt "$before"
}

t_up "torus_udp" t3e-4x2x2-partial --link udp --timeout 60
operations "4x2x2 and a partial plane over udp"
corrected "4x2x2 and a partial plane over udp"
check "it goes down" "$PHW_SCRIPTS/down.sh" --lab "$LAB"

t_up "torus_ethernet" t3e-2x2x2 --link ethernet --timeout 60
operations "2x2x2 over ethernet"
check "it goes down" "$PHW_SCRIPTS/down.sh" --lab "$LAB"
