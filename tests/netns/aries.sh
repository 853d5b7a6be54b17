#!/usr/bin/env bash
# Live dragonflies: bring-up and take-down over both kinds of links; a green, a black and a blue link, a router and all
# links between two groups fail under traffic; `phitwire manage reroute` restores every pair that is still connected.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

manage() { "$PHITWIRE_BIN_DIR/phitwire" manage reroute --lab "$LAB" "$@"; }

# set_link ID up|down: sets the interface at end A of a link. The other end loses its carrier, as if the cable were cut.
set_link() {
    local a interface
    IFS=$'\t' read -r _ a _ _ _ interface _ < <(phw_find_links "$LAB" "$1")
    ip -n "$(phw_netns "$LAB" "$a")" link set "$interface" "$2"
}

# The id of the first link between two nodes.
link_between() { phw_find_links "$LAB" "$1-$2" | head -n 1 | cut -f 1; }

# Ids of all links between two groups.
bundle() {
    phw_plan_links "$LAB" | awk -F '\t' -v a="g$1-" -v b="g$2-" \
        'index($2, a) == 1 && index($4, b) == 1 || index($2, b) == 1 && index($4, a) == 1 { print $1 }'
}

# link_is ID true|false: whether both link ends report the link as up. They detect by themselves that it is down, some
# time after the dead wire is known.
link_is() {
    local a port_a b port_b
    IFS=$'\t' read -r _ a port_a b port_b _ < <(phw_find_links "$LAB" "$1")
    [[ $(end_up "$a" "$port_a") == "$2" && $(end_up "$b" "$port_b") == "$2" ]]
}
end_up() { t_ctl "$1" links --json 2>/dev/null | jq --argjson port "$2" '.[] | select(.port == $port) | .lcb == "active"'; }

# Packets for which some router had no route.
discards() { counter_sum '^(no_live_port|unroutable|dead_port)_packets$'; }

# Whether no router is quiesced. NICs and dead routers answer with an error, which counts as not quiesced.
none_held() {
    local reports held
    reports=$(t_ctl all routing --json 2>/dev/null) || true
    held=$(jq -er '[to_entries[] | select(.value | has("quiesced"))]
        | if length == 0 then error("no router answers") else map(select(.value.quiesced) | .key) | join(" ") end' <<<"$reports") || return 1
    [[ -z $held ]] || { echo "quiesced: $held"; return 1; }
}

# all_pairs NAME [options]: messages between all NICs, over routes of every kind, each exactly once.
all_pairs() {
    local name=$1 routing
    shift
    for routing in adaptive0 minimal valiant ordered; do
        rate_case "$name: all pairs, $routing" 300 --seconds 0.3 --window 32 --routing "$routing" "$@"
    done
}

# adaptive_pairs NAME: adaptive packets alone, which use the tables of minimal and of non-minimal routes; routes of every
# kind with --long.
adaptive_pairs() {
    if t_long; then
        all_pairs "$1"
    else
        rate_case "$1: all pairs, adaptive0" 300 --seconds 0.3 --window 32 --routing adaptive0
    fi
}

# is_report FILE FILTER: whether the (last) report in FILE satisfies the filter.
is_report() { [[ -s $1 ]] && tail -n 1 "$1" | jq -e "$2" >/dev/null; }
reroute() { manage --json >"$T_SCRATCH/report.json" && jq -c . "$T_SCRATCH/report.json" >"$T_SCRATCH/report" && none_held; }
report_is() { is_report "$T_SCRATCH/report" "$1" || { cat "$T_SCRATCH/report"; return 1; }; }

# equal_flows NAME FROM FROM TO: two NICs of one router that send at full rate to one of another router get equal
# shares: Jain's index of their completed requests is above 0.99.
equal_flows() {
    local name=$1 from=("$2" "$3") to=$4 before after jain
    before=$(done_by "${from[@]}")
    rate_case "$name: two flows to one network interface" 500 --from "${from[0]}" --from "${from[1]}" --to "$to" \
        --size 64 --window 1024 --routing minimal --seconds 1
    after=$(done_by "${from[@]}")
    jain=$(jq -n --argjson before "$before" --argjson after "$after" \
        '[$after, $before] | transpose | map(.[0] - .[1]) | (add * add) / (length * (map(. * .) | add))')
    check "$name: and they are served equally (Jain $jain)" test "$(jq -n "$jain > 0.99")" == true
}
done_by() { for node in "$@"; do t_ctl "$node" stats --json | jq .requests_done; done | jq -sc .; }

# small_processes NAME: no process of the lab exceeds 32 MiB.
small_processes() {
    local biggest
    biggest=$("$PHW_SCRIPTS/status.sh" --lab "$LAB" --json | jq '[.[0].nodes[].rss_kib] | max') || true
    check "$1: no process is larger than 32 MiB ($biggest KiB)" test "$biggest" -le 32768
}

# ---- Up and down --------------------------------------------------------------------------------

# dead-wires.sh brings up a pair over udp, bridge.sh one over Ethernet, and three groups follow below: repeat them only
# with --long.
names=(aries-group)
! t_long || names=(aries-pair aries-group aries-3x4)
for kind in udp ethernet; do
    for name in "${names[@]}"; do
        begin=$(phw_ms)
        t_up "up_$kind" "$name" --link "$kind"
        check "$name, $kind: up after $(( $(phw_ms) - begin )) ms, status.sh is content" "$PHW_SCRIPTS/status.sh" --lab "$LAB"
        rate_case "$name, $kind: puts" 500 --seconds 0.5 --window 64
        if [[ $name == aries-group && $kind == udp ]]; then
            equal_flows "$name, $kind" nic0 nic1 nic4
        fi
        small_processes "$name, $kind"
        check "$name, $kind: it goes down" "$PHW_SCRIPTS/down.sh" --lab "$LAB"
        check "$name, $kind: nothing is left" nothing_left "$LAB"
    done
done

# ---- Refusals -----------------------------------------------------------------------------------

check_fails "no such lab" "is not running" \
    "$PHITWIRE_BIN_DIR/phitwire" manage reroute --lab "none_$$"
check_fails "and the remedy is named" "up.sh TOPOLOGY --lab none_$$" \
    "$PHITWIRE_BIN_DIR/phitwire" manage reroute --lab "none_$$"
t_up clos pair
check_fails "a folded Clos is not rerouted" "whose networks are not" manage
"$PHW_SCRIPTS/down.sh" --lab "$LAB"

# ---- One failure after another, rerouted by hand ----------------------------------------------

# Requests outlive the detection of a dead link, and are reported soon after.
t_topology "$T_SCRATCH/impatient.toml" aries-3x4 request_timeout_ms=4000 give_up_ms=1000

# A green link has no parallel one, so that its cut changes most tables. mpi-faults.sh cuts a black link, the last
# section below all blue links of two groups. --long cuts one of each colour here, over both kinds of links.
kinds=(udp) colours=(green)
! t_long || { kinds+=(ethernet); colours+=(black blue); }
for kind in "${kinds[@]}"; do
    t_up "fail_$kind" "$T_SCRATCH/impatient.toml" --link "$kind"
    check "$kind: nothing to reroute at first" reroute
    check "$kind: and nothing else is disturbed" report_is '.status == "nothing-to-do" and .took_ms == {}'
    if (( EUID == 0 )) && id nobody >/dev/null 2>&1 && phw_is_machine_root; then
        check_fails "$kind: another user may not" "writable only by you" runuser -u nobody -- env PHITWIRE_RUN_DIR="$(phw_run_dir)" \
            "$PHITWIRE_BIN_DIR/phitwire" manage reroute --lab "$LAB"
        check_fails "$kind: status.sh tells another user that the lab is not theirs" "belongs to another user" runuser -u nobody -- env \
            PHITWIRE_RUN_DIR="$(phw_run_dir)" PHITWIRE_BIN_DIR="$PHITWIRE_BIN_DIR" "$PHW_SCRIPTS/status.sh" --lab "$LAB"
    fi

    for colour in "${colours[@]}"; do
        case $colour in
            green) cut=$(link_between g0-c0s0 g0-c0s1) ;;
            black) cut=$(link_between g0-c0s0 g0-c1s0) ;;
            blue) cut=$(bundle 0 1 | head -n 1) ;;
        esac
        steady_rate "$T_SCRATCH/during.json" --window 64 &
        runner=$!
        under_way nic0
        set_link "$cut" down
        check "$kind, $colour: both ends notice that the link is cut" phw_until 5 link_is "$cut" false
        check "$kind, $colour: --dry-run changes nothing" manage --dry-run
        check "$kind, $colour: reroute under traffic" reroute
        check "$kind, $colour: it names the link, and every router still reaches every other" report_is '
            .status == "done" and (.failed_links | length == 1 and .[0].kind == "'"$colour"'") and .disconnected_pairs == 0'
        stop_job "$runner"
        check "$kind, $colour: what the cut swallowed is reported, nothing is twice or wrong" honest "$T_SCRATCH/during.json"
        before=$(discards)
        all_pairs "$kind, $colour cut and rerouted"
        check "$kind, $colour: and no router discards anything" test "$(discards)" = "$before"
        set_link "$cut" up
        check "$kind, $colour: the link comes back" phw_until 10 link_is "$cut" true
        check "$kind, $colour: reroute again" reroute
        check "$kind, $colour: all is as before" report_is '.status == "done" and .failed_links == [] and .disconnected_pairs == 0'
    done
    small_processes "$kind, three groups"
    "$PHW_SCRIPTS/down.sh" --lab "$LAB"
done

# ---- A router, a bundle, two managers, Ctrl-C ---------------------------------------------------

t_up harder "$T_SCRATCH/impatient.toml"

# Without a reroute some packets are lost; otherwise the cases above would prove nothing.
cut=$(link_between g0-c0s0 g0-c0s1)
set_link "$cut" down
check "both ends notice it" phw_until 5 link_is "$cut" false
before=$(discards)
t_rate "$T_SCRATCH/unrouted.json" --seconds 0.5 --window 32 --routing valiant || true
check "without a reroute the routers have no route for some packets" test "$(discards)" -gt "$before"
check "and these are reported" honest "$T_SCRATCH/unrouted.json"
check "timed out" test "$(field "$T_SCRATCH/unrouted.json" timed_out)" -gt 0

set_link "$cut" up
check "the link comes back" phw_until 10 link_is "$cut" true

# Adaptive packets switch immediately: when all links between two groups are cut, hardly any of their packets is lost,
# even without a reroute.
for id in $(bundle 0 1); do set_link "$id" down; done
cut_noticed() { local id; for id in $(bundle 0 1); do link_is "$id" false || return 1; done; }
check "both ends of all links between two groups notice that they are cut" phw_until 5 cut_noticed
t_rate "$T_SCRATCH/off.json" --seconds 1 --window 64 --from nic0,nic1,nic2,nic3 --to nic4,nic5,nic6,nic7 --routing adaptive0 || true
check "what was lost is reported" honest "$T_SCRATCH/off.json"
check "19 of 20 adaptive messages find another route immediately ($(jq -c '[.sent, .acknowledged]' "$T_SCRATCH/off.json"))" \
    jq -e '.sent > 1000 and .acknowledged >= .sent * 0.95' "$T_SCRATCH/off.json"
for id in $(bundle 0 1); do set_link "$id" up; done
check "they come back" "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$LAB" --timeout 15
set_link "$cut" down
check "one link is cut again" phw_until 5 link_is "$cut" false

# Ctrl-C at any moment leaves no router quiesced. A shell's background jobs ignore SIGINT unless configured otherwise.
interrupt() {
    local i pid
    for i in {2..20..2}; do
        # Give it work each time: tables for different faults.
        t_ctl g1-c0s0 set table.processor.local_minimal.1 0 >/dev/null || return 1
        env --default-signal=INT "$PHITWIRE_BIN_DIR/phitwire" manage reroute --lab "$LAB" >/dev/null 2>&1 &
        pid=$!
        sleep "0.0$(printf %02d "$i")"
        kill -INT "$pid" 2>/dev/null || true
        wait "$pid" || true
        none_held || return 1
    done
}
check "Ctrl-C at any moment leaves no router quiesced" interrupt
check "and a reroute sets everything right" reroute
check "all is as the faults want it" report_is '.status == "done" or .status == "nothing-to-do"'
check "then there is nothing to do" bash -c '"$1" manage reroute --lab "$2" --json | jq -e ".status == \"nothing-to-do\""' \
    bash "$PHITWIRE_BIN_DIR/phitwire" "$LAB"
check "a router whose manager was killed resumes automatically" bash -c '
    "$1" ctl --lab "$2" g0-c0s0 quiesce --for 300 && "$1" ctl --lab "$2" g0-c0s0 routing | grep -q "quiesced true" \
        && sleep 0.5 && "$1" ctl --lab "$2" g0-c0s0 routing | grep -q "quiesced false"' bash "$PHITWIRE_BIN_DIR/phitwire" "$LAB"
if command -v python3 >/dev/null; then
    check_fails "tables of another topology are rejected" "tables for another topology" bash -c '
        echo "{\"cmd\":\"install\",\"tables\":[$(printf "{\"local_minimal\":[],\"local_non_minimal\":[],\"global_minimal\":[],\"global_non_minimal\":[]}%s" , , , "")]}" \
            | timeout 5 python3 -c "
import socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(sys.stdin.buffer.read()); print(s.recv(4096).decode()); sys.exit(1)" "$1"' \
        bash "$(phw_lab_dir "$LAB")/g0-c0s0.sock"
else
    skip "tables of another topology are rejected" "no python3"
fi
set_link "$cut" up
check "the link comes back" phw_until 10 link_is "$cut" true
check "reroute" reroute

# ---- --watch ------------------------------------------------------------------------------------

env --default-signal=INT "$PHITWIRE_BIN_DIR/phitwire" manage reroute --lab "$LAB" --watch --json >"$T_SCRATCH/watch" 2>"$T_SCRATCH/watch.err" &
watcher=$!
# reports FILTER: whether the watcher's last report satisfies the filter.
reports() { is_report "$T_SCRATCH/watch" "$1"; }
check "the watcher begins with a report" phw_until 10 reports '.disconnected_pairs == 0'
check_fails "a second manager is rejected, and learns which is running" "already managed by process $watcher" manage

others=$(seq -f 'nic%g' -s, 0 11 | sed 's/nic4,//')
steady_rate "$T_SCRATCH/during.json" --window 64 &
runner=$!
under_way nic0
check "a router is killed" "$PHW_SCRIPTS/node.sh" --lab "$LAB" kill g1-c0s0
check "the watcher routes around it" phw_until 10 reports '.status == "done" and .failed_routers[0].name == "g1-c0s0" and .disconnected_pairs == 22'
stop_job "$runner"
check "what it held, and what was sent to its network interface, is reported" honest "$T_SCRATCH/during.json"
all_pairs "without g1-c0s0" --from "$others" --to "$others"
check "no router is quiesced" none_held
check "it is restarted" "$PHW_SCRIPTS/node.sh" --lab "$LAB" start g1-c0s0
check "the watcher readmits it" phw_until 15 reports '.failed_routers == [] and .failed_links == [] and .disconnected_pairs == 0'
check "all links are up" "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$LAB" --timeout 15
adaptive_pairs "with g1-c0s0 again"
rate_case "with g1-c0s0 again: all pairs, min-hash: in order of each line" 300 --seconds 0.3 --window 32 --routing min-hash

steady_rate "$T_SCRATCH/during.json" --window 64 &
runner=$!
under_way nic0
for id in $(bundle 0 1); do set_link "$id" down; done
check "all links between two groups are cut: the watcher routes over the third" \
    phw_until 10 reports '.status == "done" and (.failed_links | length == 2) and .disconnected_pairs == 0'
stop_job "$runner"
check "what they swallowed is reported" honest "$T_SCRATCH/during.json"
adaptive_pairs "over the third group"
for id in $(bundle 0 1); do set_link "$id" up; done
check "the watcher readmits them" phw_until 15 reports '.failed_links == [] and .disconnected_pairs == 0'

# A stopped router does not answer; the network treats it as dead, and it resumes unchanged.
pid=$(phw_node_pid "$LAB" g2-c1s1)
kill -STOP "$pid"
# Noticed within a second; then the others are quiesced and get their tables.
check "a stopped router is routed around within three seconds" \
    phw_until 3 reports '.failed_routers[0].name == "g2-c1s1" and .status == "done"'
kill -CONT "$pid"
check "and readmitted" phw_until 20 reports '.failed_routers == [] and .failed_links == [] and .disconnected_pairs == 0'

kill -INT "$watcher"
settled "$watcher"
check "Ctrl-C ends the watcher in order (status $SETTLED)" test "$SETTLED" = 0
check "it had nothing to complain of" test ! -s "$T_SCRATCH/watch.err"
check "and leaves its place to others" reroute
env --default-signal=INT "$PHITWIRE_BIN_DIR/phitwire" manage reroute --lab "$LAB" --watch >/dev/null 2>"$T_SCRATCH/watch.err" &
watcher=$!
sleep 1
check "the lab goes down under a watcher" "$PHW_SCRIPTS/down.sh" --lab "$LAB"
check "the watcher ends automatically" phw_until 10 phw_all_gone "$watcher"
settled "$watcher"
check "and says why" grep -q "is gone" "$T_SCRATCH/watch.err"
