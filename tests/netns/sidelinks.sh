#!/usr/bin/env bash
# An R1.5 whose two subtrees are joined by two sidelinks; one is taken down for good under traffic.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

t_topology "$T_SCRATCH/impatient.toml" quickstart request_timeout_ms=1500
t_up side "$T_SCRATCH/impatient.toml"
# Links between two routers.
mapfile -t sidelinks < <(phw_plan_links "$LAB" | awk -F '\t' -v routers="$(awk -F '\t' '$1 == "node" && $3 == "router" { print $2 }' \
    "$(phw_lab_dir "$LAB")/plan.tsv" | paste -sd ' ')" '
    BEGIN { n = split(routers, r, " "); for (i = 1; i <= n; i++) is[r[i]] = 1 }
    ($2 in is) && ($4 in is) { print $2, $3 }')
check "there are at least two sidelinks" test "${#sidelinks[@]}" -ge 2
read -r router port <<<"${sidelinks[0]}"

t_rate "$T_SCRATCH/during.json" --seconds 6 &
runner=$!
sleep 2
check "a sidelink is taken down" t_ctl "$router" fault link-down "$port"
wait "$runner" || true
check "what was on it is reported, nothing is twice, wrong or out of order" honest "$T_SCRATCH/during.json"
check "the link is down for good" bash -c '! "$1" --lab "$2" >/dev/null' bash "$PHW_SCRIPTS/status.sh" "$LAB"

rate_case "the rest keeps flowing: every pair of processors, exactly once" 1000 --seconds 3
