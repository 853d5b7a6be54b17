#!/usr/bin/env bash
# A link that is cut for 10 s under traffic, and restored: nothing is lost, and the traffic goes on.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces
t_has_nft || skip_all "nftables cannot cut a link here"

# A request waits longer than the cut lasts before it is given up.
t_topology "$T_SCRATCH/patient.toml" quickstart request_timeout_ms=30000

for kind in udp ethernet; do
    t_up "cut_$kind" "$T_SCRATCH/patient.toml" --link "$kind"
    id=$(phw_plan_links "$LAB" | head -n 1 | cut -f 1)
    T_RATE_TIMEOUT=60 t_rate "$T_SCRATCH/cut.json" --seconds 16 &
    runner=$!
    sleep 2
    before=$(counter_sum '^nic.*acknowledged$')
    t_impair --nft "$id" loss 100%
    sleep 1
    cut=$(counter_sum '^nic.*acknowledged$')
    sleep 9
    still=$(counter_sum '^nic.*acknowledged$')
    t_impair "$id" clear
    check "$kind: messages flowed before the cut" test "$before" -gt 0
    check "$kind: none got through while the link was cut" test "$still" -eq "$cut"
    check "$kind: the run ends well" wait "$runner"
    check "$kind: nothing was lost over a cut of 10 s" exactly_once "$T_SCRATCH/cut.json"
    check "$kind: messages flowed after it" test "$(counter_sum '^nic.*acknowledged$')" -gt "$still"
    "$PHW_SCRIPTS/down.sh" --lab "$LAB"
done
