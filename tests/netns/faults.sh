#!/usr/bin/env bash
# Fault commands that no other test uses: a soft error in a send buffer, a forced retry, a link down and up again.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

t_topology "$T_SCRATCH/impatient.toml" pair request_timeout_ms=3000 forward_progress_ms=2500
t_up faults "$T_SCRATCH/impatient.toml"

# A soft error takes effect only when a packet meets it: a second command before that would be the same error again.
soft_errors() {
    local i
    for i in 1 2 3; do
        t_ctl r1-0 fault soft-error 1 && phw_until 5 soft_errors_are "$i" || return 1
    done
}
soft_errors_are() { (( $(counter_sum '\.tx_soft_errors$') == $1 )); }

long_rate "$T_SCRATCH/run.json" &
runner=$!
under_way nic0
check "soft errors in the send buffer of a router's port" soft_errors
stop_job "$runner"
check "packets with a soft error are never taken for good" honest "$T_SCRATCH/run.json"
check "three of them are reported as timed out" test "$(field "$T_SCRATCH/run.json" timed_out)" = 3
check "the router marked three" test "$(counter_sum '\.tx_soft_errors$')" = 3
check "the network interface discarded three" test "$(counter_sum '^discard_soft_error$')" = 3
rate_case "after that, everything arrives" 1000 --seconds 0.3

before=$(counter_sum '\.tx_rewinds_forced$')
long_rate "$T_SCRATCH/run.json" &
runner=$!
under_way nic0
# A retry needs something unacknowledged, and at any single moment there may be nothing.
check "forced retries" bash -c '
    for i in {1..20}; do "$1" ctl --lab "$2" r1-0 fault force-retry 0; sleep 0.02; done' bash "$PHITWIRE_BIN_DIR/phitwire" "$LAB"
stop_job "$runner"
check "they are counted" test "$(counter_sum '\.tx_rewinds_forced$')" -gt "$before"
check "and what is sent twice arrives once" exactly_once "$T_SCRATCH/run.json"

check "a link is taken down by its processor" t_ctl nic0 fault link-down 0
check_fails "status.sh reports it" "NOT FULLY UP" "$PHW_SCRIPTS/status.sh" --lab "$LAB"
check "and brought back" t_ctl nic0 fault link-up 0
check "it comes up" "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$LAB" --timeout 15
rate_case "and works" 1000 --seconds 0.3
