#!/usr/bin/env bash
# Wrong virtual channel tables are loaded by force into a ring of T3E routers: it jams under load, maintenance packets,
# which need no buffers, repair the tables through the jammed network, and it drains.
# machines/t3e/src/tests/maintenance.rs does the same in virtual time.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

# Packets follow the tables alone, and nothing times out while the ring is jammed.
cat >"$T_SCRATCH/ring.toml" <<'TOML'
family = "t3e"
name = "ring"
size = "8x1x1"
adaptive = false

[network]
request_timeout_ms = 60000
TOML
right=$T_SCRATCH/right.toml wrong=$T_SCRATCH/wrong.toml
check "tables are searched for" "$PHITWIRE_BIN_DIR/phitwire" topology channels "$T_SCRATCH/ring.toml" --output "$right"
sed -E 's/"[01]{8}"/"11111111"/' "$right" >"$wrong"
# The lab reads them from the file; its own copy contains them.
sed '/^size/a vc_tables = "right.toml"' "$T_SCRATCH/ring.toml" >"$T_SCRATCH/given.toml"
t_up phwj "$T_SCRATCH/given.toml"
check "the lab's description has the tables" grep -qxF '[[vc_tables]]' "$(phw_lab_dir "$LAB")/topology.toml"

x=(0 3)
load() { "$PHITWIRE_BIN_DIR/phitwire" manage channels --lab "$LAB" "$@"; }
# Whether the routers have sent no packet for two seconds.
stands_still() {
    local before
    before=$(counter_sum '^packets$')
    sleep 2
    (( $(counter_sum '^packets$') == before ))
}
# Whether each router has sent a hundred packets since the counters were $before, by router.
all_route() {
    local now
    now=$(packets_of)
    jq -en --argjson before "$before" --argjson now "$now" '
        ($now | length == 8) and ([$before, $now] | transpose | all(.[1] - .[0] >= 100))' >/dev/null
}
packets_of() { t_ctl all stats --json | jq -c '[.[] | .packets // empty]'; }
# Register $2 of router r$1, read through the network by router 5.
through() { t_ctl "r$1" get "$2" --via maintenance r5 --json | jq -e .value; }
write_through() { t_ctl "r$1" set "$2" "$3" --via maintenance r5; }
# Packets that cross the dateline, or start there, leave it on channel 0: channel 1 can no longer wait for itself.
repair() {
    local router port datelines
    for router in {0..7}; do
        datelines=$(through "$router" datelines) || return 1
        for port in "${x[@]}"; do
            (( datelines >> port & 1 )) || continue
            write_through "$router" "vc_table.$port" 0 || return 1
        done
        write_through "$router" escapes $(( datelines & 9 )) || return 1
    done
}
# Packets routed before and after the repair may overtake each other, but no others.
all_arrived() {
    jq -e '.sent == 320000 and .acknowledged == .sent and .lost == 0 and .duplicated == 0 and .corrupted == 0' "$1" >/dev/null \
        || { cat -- "$1" "$1.err"; return 1; }
}

first=$(t_ctl r3 get vc_table.0 --json | jq .value)
rate_case "a ring of eight" 1000 --pattern tornado --window 512 --seconds 0.5
check_fails "tables that leave all packets on one channel are rejected, with the cycle" '-X VC1, \(7,0,0\) -X VC1' load "$wrong"
check "and not written" test "$(t_ctl r3 get vc_table.0 --json | jq .value)" = "$first"
check "but if forced" load "$wrong" --force
before=$(packets_of)
done_before=$(counter_sum '^requests_done$')
t_rate "$T_SCRATCH/jam.json" --pattern tornado --size 8 --window 8192 --count 40000 &
runner=$!
# The ring may jam before the first of them is done.
check "packets are in all routers" phw_until 20 all_route
check "it jams" phw_until 20 stands_still
check "for good" stands_still
check "most messages are missing" test $(( $(counter_sum '^requests_done$') - done_before )) -lt 320000
check "the maintenance network still works" test "$(through 1 vc_table.0)" = 255
check "it repairs the tables" repair
settled "$runner"
check "the ring drains, and all has arrived once" all_arrived "$T_SCRATCH/jam.json"
detail < <(jq -c '{sent, acknowledged, lost, duplicated, corrupted, misordered}' "$T_SCRATCH/jam.json")
for router in {0..7}; do
    write_through "$router" escapes 0 >/dev/null
done
check "the first tables are loaded by maintenance packets" load "$right" --via maintenance r5
check "and in the routers" test "$(through 3 vc_table.0)" = "$first"
check "a reroute finds nothing to do" grep -q 'already has the right tables' <("$PHITWIRE_BIN_DIR/phitwire" manage reroute --lab "$LAB")
rate_case "the ring works as before" 1000 --pattern tornado --window 512 --seconds 0.5 --routing ordered
