#!/usr/bin/env bash
# The message-rate tool in unusual conditions: a participating NIC is killed and restarted, the tool is interrupted once
# or twice, another tool measures the same lab.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

t_topology "$T_SCRATCH/impatient.toml" quickstart request_timeout_ms=3000
t_up rate "$T_SCRATCH/impatient.toml"

# a_nic_dies NAME ROLE [options]: nic5 is killed under traffic and restarted.
a_nic_dies() {
    local name=$1 file=$T_SCRATCH/killed.json
    shift
    long_rate "$file" "$@" &
    local runner=$!
    under_way nic0 2000
    check "nic5 is killed ($name)" "$PHW_SCRIPTS/node.sh" --lab "$LAB" kill nic5
    sleep 1
    check "and restarted" "$PHW_SCRIPTS/node.sh" --lab "$LAB" start nic5
    stop_job "$runner"
    check "the run ends with status 1" test "$SETTLED" = 1
    check "and names the dead" test "$(jq -r '.restarted | join(",")' "$file")" = nic5
    check "nothing is twice, wrong or out of order" \
        jq -e '.duplicated == 0 and .corrupted == 0 and .misordered == 0 and .acknowledged > 1000' "$file"
    check "all links come up again" "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$LAB" --timeout 15
    rate_case "the next run is clean" 1000 --seconds 0.3
}
a_nic_dies "a source and target among others"
a_nic_dies "the only target" --from nic0 --to nic5
# The first case already has nic5 as a source.
! t_long || a_nic_dies "a source" --from nic5,nic0 --to nic1

# interrupt SIGNALS...: a long run that receives the signals one after another; sets $SETTLED to its status.
interrupt() {
    "$PHITWIRE_BIN_DIR/phitwire-msgrate" --lab "$LAB" --json --seconds 60 >"$T_SCRATCH/cut.json" 2>"$T_SCRATCH/cut.err" &
    local runner=$! signal
    under_way nic0
    for signal; do
        kill -"$signal" "$runner"
        sleep 0.05
    done
    settled "$runner"
}
interrupt INT
check "SIGINT ends a run with status 130" test "$SETTLED" = 130
check "and accounts for what was sent" exactly_once "$T_SCRATCH/cut.json" 1000
rate_case "no NIC is left sending" 1000 --seconds 0.3
interrupt TERM
check "so does SIGTERM" test "$SETTLED" = 130

long_rate "$T_SCRATCH/first.json" &
runner=$!
under_way nic0
check_fails "a second measurement of the same NICs is rejected" 'holds this NIC' \
    "$PHITWIRE_BIN_DIR/phitwire-msgrate" --lab "$LAB" --seconds 1
stop_job "$runner"
check "and does not disturb the first (status $SETTLED)" test "$SETTLED" = 130
check "which counts all" exactly_once "$T_SCRATCH/first.json" 1000
