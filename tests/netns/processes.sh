#!/usr/bin/env bash
# What a process costs and how it ends: idle ones sleep, a 64-port router is small, SIGINT and SIGTERM drain.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

ticks_of() { awk '{ sub(/^.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"; }

t_up idle quickstart
sleep 1
declare -A before
for node in $(phw_plan_nodes "$LAB"); do
    before[$node]=$(ticks_of "$(phw_node_pid "$LAB" "$node")")
done
sleep 5
hertz=$(getconf CLK_TCK)
for node in $(phw_plan_nodes "$LAB"); do
    spent=$(( $(ticks_of "$(phw_node_pid "$LAB" "$node")") - before[$node] ))
    check "$node sleeps when idle (under 1 % of a core; spent $spent ticks in 5 s)" test $(( spent * 100 )) -le $(( 5 * hertz ))
done
"$PHW_SCRIPTS/down.sh" --lab "$LAB"

t_up big r1-64
router=$(awk -F '\t' '$1 == "node" && $3 == "router" { print $2; exit }' "$(phw_lab_dir "$LAB")/plan.tsv")
ports=$(phw_plan_links "$LAB" | awk -F '\t' -v r="$router" '$2 == r || $4 == r' | wc -l)
t_rate "$T_SCRATCH/big.json" --seconds 2 || true
resident=$(awk '/^VmHWM:/ { print $2 }' "/proc/$(phw_node_pid "$LAB" "$router")/status")
check "a router with $ports ports stays under 64 MiB (had $resident KiB)" test "$resident" -lt 65536

for signal in INT TERM; do
    node=$(phw_plan_nodes "$LAB" | tail -n 1)
    pid=$(phw_node_pid "$LAB" "$node")
    kill "-$signal" "$pid"
    check "SIG$signal ends a process" phw_until 5 phw_all_gone "$pid"
    check "which prints a summary" test -s "$(phw_lab_dir "$LAB")/$node.log"
    check "and takes its socket away" test ! -e "$(phw_lab_dir "$LAB")/$node.sock"
    "$PHW_SCRIPTS/node.sh" --lab "$LAB" start "$node"
    "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$LAB" --timeout 15
    : >"$(phw_lab_dir "$LAB")/$node.log"
done
