#!/usr/bin/env bash
# A router is killed with SIGKILL under traffic and restarted: its contents are reported as timed out, and everything
# flows again afterwards.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

t_topology "$T_SCRATCH/impatient.toml" quickstart request_timeout_ms=3000
t_up kill "$T_SCRATCH/impatient.toml"
router=$(awk -F '\t' '$1 == "node" && $3 == "router" { print $2; exit }' "$(phw_lab_dir "$LAB")/plan.tsv")
long_rate "$T_SCRATCH/during.json" &
runner=$!
under_way nic0
check "the router is killed" "$PHW_SCRIPTS/node.sh" --lab "$LAB" kill "$router"
sleep 1
check "the router is restarted" "$PHW_SCRIPTS/node.sh" --lab "$LAB" start "$router"
check "all links come up again" "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$LAB" --timeout 15
stop_job "$runner"
check "what it held is reported as timed out, nothing is twice, wrong or out of order" honest "$T_SCRATCH/during.json"
check "requests did time out" bash -c "(( $(field "$T_SCRATCH/during.json" timed_out) > 0 ))"
check "status.sh is content again" "$PHW_SCRIPTS/status.sh" --lab "$LAB"
rate_case "everything after flows again, exactly once" 1000 --seconds 0.5
