#!/usr/bin/env bash
# A link is cut for 10 s under traffic, and restored: nothing is lost, and the traffic resumes. Over udp; --long adds
# Ethernet, where dead-wires.sh cuts a link, too.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces
t_has_nft || skip_all "nftables cannot cut a link here"

# Whether no message of the run is answered for a second.
quiet() {
    local before
    before=$(puts_done nic0)
    sleep 1
    test "$(puts_done nic0)" = "$before"
}

# The timeout of a request is longer than the cut.
t_topology "$T_SCRATCH/patient.toml" quickstart request_timeout_ms=30000

kinds=(udp)
! t_long || kinds+=(ethernet)
for kind in "${kinds[@]}"; do
    t_up "cut_$kind" "$T_SCRATCH/patient.toml" --link "$kind"
    id=$(phw_find_links "$LAB" nic0-r1-0 | cut -f 1)
    steady_rate "$T_SCRATCH/cut.json" &
    runner=$!
    under_way nic0
    t_impair --nft "$id" loss 100%
    since=$(phw_ms)
    # Frames that passed before the cut may wait in a process that the scheduler delays.
    check "$kind: its messages stop at the cut" phw_until 5 quiet
    cut=$(puts_done nic0)
    left=$(( since + 10000 - $(phw_ms) ))
    (( left <= 0 )) || sleep "$(( left / 1000 + 1 ))"
    still=$(puts_done nic0)
    t_impair "$id" clear
    check "$kind: none of its messages got through while the link was cut" test "$still" -eq "$cut"
    check "$kind: its messages flow after it" goes_on nic0
    stop_job "$runner"
    check "$kind: the run ends well (status $SETTLED)" test "$SETTLED" = 130
    check "$kind: nothing of anybody was lost over a cut of 10 s" exactly_once "$T_SCRATCH/cut.json"
    "$PHW_SCRIPTS/down.sh" --lab "$LAB"
done
