#!/usr/bin/env bash
# Three labs side by side, over both kinds of links: traffic in all at once; one goes down, the others keep running.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

labs=()
for kind in udp ethernet udp; do
    t_up "par$(( ${#labs[@]} + 1 ))" quickstart --link "$kind"
    labs+=("$LAB")
done

pids=()
for LAB in "${labs[@]}"; do
    t_rate "$T_SCRATCH/$LAB.json" --seconds 1 &
    pids+=($!)
done
for i in 0 1 2; do
    settled "${pids[i]}"
    check "lab $((i + 1)) moves messages beside the others" test "$SETTLED" = 0
    check "lab $((i + 1)): each exactly once" exactly_once "$T_SCRATCH/${labs[i]}.json"
done

check "one lab goes down" "$PHW_SCRIPTS/down.sh" --lab "${labs[1]}"
check "nothing of it is left" nothing_left "${labs[1]}"
for LAB in "${labs[0]}" "${labs[2]}"; do
    check "lab ${LAB%_*} is still whole" "$PHW_SCRIPTS/status.sh" --lab "$LAB"
    rate_case "lab ${LAB%_*} still moves messages" 1000 --seconds 0.3
done
