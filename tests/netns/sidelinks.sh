#!/usr/bin/env bash
# An R1.5 whose two subtrees are joined by two sidelinks; one is taken down permanently under traffic. Packets for the
# dead port are discarded and reported as timed out, the rest keeps flowing (BlackWidow sec. 7.7). Then the operator
# removes the port from the routing tables, and everything flows again.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

t_topology "$T_SCRATCH/impatient.toml" quickstart request_timeout_ms=3000 forward_progress_ms=2000
t_up side "$T_SCRATCH/impatient.toml"
dead=32
mapfile -t sidelinks < <(phw_find_links "$LAB" r1-0-r1-1)
check "there are two sidelinks" test "${#sidelinks[@]}" = 2

port_is_down() { t_ctl "$1" links --json | jq -e --argjson port "$dead" '.[] | select(.port == $port) | .up | not' >/dev/null; }

# The operator's work: removes the dead port from the table entries of all tiles of ROUTER.
take_out() {
    local router=$1 bit=$(( 1 << dead )) tile entry ports in_use
    in_use=$(register "$router" chip.ports_in_use) || return 1
    for (( tile = 0; tile < 64; tile++ )); do
        (( in_use >> tile & 1 )) || continue
        for entry in 0 1 2 3 4 5 6 7; do
            ports=$(register "$router" "tile$tile.table.$entry.ports") || return 1
            (( ports & bit )) || continue
            printf -v ports '0x%x' $(( ports & ~bit ))
            t_ctl "$router" set "tile$tile.table.$entry.ports" "$ports" >/dev/null || return 1
        done
    done
}
# In hexadecimal, like the table entries; without jq, since this is called hundreds of times.
register() {
    local value
    value=$(t_ctl "$1" get "$2") && [[ $value =~ \((0x[0-9a-f]+)\) ]] && printf '%s\n' "${BASH_REMATCH[1]}"
}
some_discarded() { (( $(counter_sum '^dead_port_packets$') > 0 )); }

steady_rate "$T_SCRATCH/during.json" &
runner=$!
under_way nic0
check "a sidelink is taken down" t_ctl r1-0 fault link-down "$dead"
check "what is bound for the dead port is discarded" phw_until 20 some_discarded
stop_job "$runner"
check "what was on it is reported, nothing is twice, wrong or out of order" honest "$T_SCRATCH/during.json"
check "its one end is down" port_is_down r1-0
check "its other end is down" port_is_down r1-1
check_fails "status.sh reports it" "NOT FULLY UP" "$PHW_SCRIPTS/status.sh" --lab "$LAB"

rate_case "within a subtree everything flows, exactly once" 1000 --from nic0 --from nic1 --to nic2 --to nic3 --seconds 0.5
t_rate "$T_SCRATCH/across.json" --from nic0 --from nic1 --to nic4 --to nic5 --seconds 0.5 || true
check "between the subtrees what hashes to the dead port is reported as timed out" bash -c '(( $1 > 0 ))' bash \
    "$(field "$T_SCRATCH/across.json" timed_out)"
check "and the rest flows" bash -c '(( $1 > 0 ))' bash "$(field "$T_SCRATCH/across.json" acknowledged)"
check "nothing is twice, wrong or out of order" honest "$T_SCRATCH/across.json"

check "the operator takes the port out of the tables of r1-0" take_out r1-0
check "and of r1-1" take_out r1-1
discarded=$(counter_sum '^dead_port_packets$')
rate_case "everything flows again, exactly once: every pair of processors" 1000 --seconds 1
check "and nothing more is discarded" test "$(counter_sum '^dead_port_packets$')" = "$discarded"
