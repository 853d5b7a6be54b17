#!/usr/bin/env bash
# Live tori, over both kinds of links: every operation exactly once between all processors, ordered requests in order,
# single-bit errors on the wires of flits corrected at the packets' destination, and virtual channel tables replaced
# under traffic.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

# ways NAME: adaptive packets of eight words and ordered ones between all processors.
ways() {
    rate_case "$1: puts of eight words" 1000 --seconds 0.4 --size 64
    rate_case "$1: ordered puts" 1000 --seconds 0.4 --routing ordered
}
# operations NAME: the other operations.
operations() {
    rate_case "$1: puts of a word" 1000 --seconds 0.4
    rate_case "$1: gets of a word" 1000 --seconds 0.4 --op get
    rate_case "$1: gets of eight words" 1000 --seconds 0.4 --op get --size 64
    rate_case "$1: additions" 1000 --seconds 0.4 --op amo
}

# corrected NAME: packets with a wrong bit arrive intact, and are counted where they were corrected.
corrected() {
    local router=r0 before after
    before=$(counter_sum '\.rx_corrected_packets$')
    check "$1: lane 3 of a link becomes noisy" t_ctl "$router" fault lane-noise 0 3 1/20000
    rate_case "$1: puts over a noisy lane" 1000 --seconds 1 --size 64
    check "$1: the lane is quiet again" t_ctl "$router" fault lane-noise 0 3 0
    after=$(counter_sum '\.rx_corrected_packets$')
    check "$1: wrong bits were corrected ($(( after - before )))" test "$after" -gt "$before"
}

manage() { "$PHITWIRE_BIN_DIR/phitwire" manage "$1" --lab "$LAB" --json "${@:2}" >"$T_SCRATCH/report" 2>"$T_SCRATCH/report.err" \
    || { cat "$T_SCRATCH/report" "$T_SCRATCH/report.err"; return 1; }; }
report_is() { jq -e "$1" "$T_SCRATCH/report" >/dev/null || { cat "$T_SCRATCH/report"; return 1; }; }
# Packets that entered a ring on one channel before the tables changed may be overtaken by those on the other
# afterwards.
all_arrived() {
    jq -e '.sent == .acknowledged and .sent >= 1000 and .lost == 0 and .duplicated == 0 and .corrupted == 0 and .timed_out == 0' \
        "$1" >/dev/null || { cat -- "$1" "$1.err"; return 1; }
}
# load NAME TABLES [--via maintenance ROUTER]: loads tables that differ from the current ones while the lab has traffic,
# and messages still flow.
load() {
    local name=$1
    check "$name: they are loaded under traffic" manage channels "${@:2}"
    check "$name: some were others, and all were read back" report_is '.failed == [] and .forced == null and (.changed | length) > 0'
    detail < <(jq -c '{registers, routers, changed: (.changed | length)}' "$T_SCRATCH/report")
    check "$name: traffic continues" goes_on nic0
}
# channels TOPOLOGY: channel tables are searched for, saved, loaded and replaced while the lab runs.
channels() {
    local runner right=$T_SCRATCH/right.toml other=$T_SCRATCH/other.toml zeros=$T_SCRATCH/zeros.toml
    local search=("$PHITWIRE_BIN_DIR/phitwire" topology channels "$1")
    check "tables are searched for" "${search[@]}" --output "$right"
    check "and others, by another seed" "${search[@]}" --seed 1 --output "$other"
    sed -E 's/"[01]{8}"/"00000000"/' "$right" >"$zeros"
    steady_rate "$T_SCRATCH/load.json" --size 64 &
    runner=$!
    under_way nic0
    load "other tables" "$other"
    load "tables of zeros, by maintenance packets" "$zeros" --via maintenance r0
    check "as a maintenance packet finds" test "$(t_ctl r3 get vc_table.0 --via maintenance r0 --json | jq .value)" = 0
    check_fails "--via accepts only maintenance" 'expected .--via maintenance ROUTER' manage channels "$right" --via network r0
    load "the first tables" "$right"
    stop_job "$runner"
    check "everything has arrived once" all_arrived "$T_SCRATCH/load.json"
    check "those are the description's" manage reroute
    check "as a reroute finds too" report_is '.status == "nothing-to-do" and .changed_routers == []'
}

t_up "torus_udp" t3e-4x2x2-partial --link udp --timeout 60
ways "4x2x2 and a partial plane over udp"
! t_long || operations "4x2x2 and a partial plane over udp"
corrected "4x2x2 and a partial plane over udp"
check "it goes down" "$PHW_SCRIPTS/down.sh" --lab "$LAB"

# The smallest ring whose tables differ from zeros. Each register of a larger network takes as long, and shows the same.
printf '%s\n' 'family = "t3e"' 'name = "ring"' 'size = "4x1x1"' >"$T_SCRATCH/ring.toml"
t_up "torus_ring" "$T_SCRATCH/ring.toml"
channels "$T_SCRATCH/ring.toml"
check "it goes down" "$PHW_SCRIPTS/down.sh" --lab "$LAB"

t_up "torus_ethernet" t3e-2x2x2 --link ethernet --timeout 60
ways "2x2x2 over ethernet"
operations "2x2x2 over ethernet"
check "it goes down" "$PHW_SCRIPTS/down.sh" --lab "$LAB"
