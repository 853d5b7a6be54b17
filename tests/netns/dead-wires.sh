#!/usr/bin/env bash
# A dead wire is reported, by both machines, over both kinds of links: its interface is set down, deleted or moved away,
# its MTU is too short for the frames, nothing passes, or its hardware address changes. Processes survive it, and use it
# again once it is repaired.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

# state_is NODE PORT STATE: checks the state that a node reports for a link.
state_is() { [[ $(t_ctl "$1" links --json | jq -r --argjson port "${2#p}" '.[] | select(.port == $port) | .state') == "$3" ]]; }
says() { t_ctl "$1" links | grep -q -- "$2" || { t_ctl "$1" links; return 1; }; }
status() { "$PHW_SCRIPTS/status.sh" --lab "$LAB"; }
wait_up() { "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$LAB" --timeout "$1"; }
stat_of() { t_ctl "$1" stats --json | jq --arg name "$2" '.[$name]'; }
grows_beyond() { (( $(stat_of "$1" "$2") > $3 )); }
log_of() { cat -- "$(phw_lab_dir "$LAB")/$1.log"; }
# flows NODE: a thousand more frames arrive.
flows() {
    local before
    before=$(stat_of "$1" io.frames_received)
    phw_until 10 grows_beyond "$1" io.frames_received $(( before + 1000 ))
}
ticks_of() { awk '{ sub(/^.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"; }

# reports CASE NODE STATE WORD: NODE, `status.sh` and `phitwire wait` report it within a second.
reports() {
    check "$1: $2 says $3 within a second" phw_until 1 state_is "$2" p0 "$3"
    check "$1: and why" says "$2" "$4"
    check_fails "$1: status.sh reports it, and fails" "$4" status
    check_fails "$1: so does phitwire wait" "$3: .*$4" wait_up 0
}
well_again() {
    check "$1: all links are up within a second" wait_up 1
    check "$1: status.sh is content" status
}

# connect: replaces the cable between the NIC and the router, as up.sh makes it.
connect() {
    ip -n "$near" link add "$near_if" type veth peer name "$far_if" netns "$far"
    local end
    for end in "$near $near_if $near_address" "$far $far_if $far_address"; do
        # shellcheck disable=SC2086  # three words
        set -- $end
        ip -n "$1" addr add "$3/31" dev "$2"
        ip -n "$1" link set "$2" up
    done
}

deaths() {
    local what=$1
    ip -n "$near" link set "$near_if" down
    reports "$what, interface down" nic0 interface-down "ip link set p0 up"
    # The kernel may take a second to report it.
    check "$what, interface down: the other end has no carrier" phw_until 2 state_is "$router" "$far_if" no-carrier
    ip -n "$near" link set "$near_if" up
    well_again "$what, interface up again"

    ip -n "$near" link set "$near_if" mtu 600
    reports "$what, short MTU" nic0 short-mtu "MTU 600, but frames need 1500"
    ip -n "$near" link set "$near_if" mtu 1500
    well_again "$what, MTU as before"

    ip -n "$near" link del "$near_if"
    reports "$what, interface deleted" nic0 no-interface "was deleted"
    check "$what, interface deleted: the other end reports the same" state_is "$router" "$far_if" no-interface
    local pid before
    pid=$(phw_node_pid "$LAB" nic0) before=$(ticks_of "$(phw_node_pid "$LAB" nic0)")
    sleep 1
    check "$what, interface deleted: the process does not spin (spent $(( $(ticks_of "$pid") - before )) ticks in 1 s)" \
        test $(( $(ticks_of "$pid") - before )) -le 20
    connect
    well_again "$what, interface made again"

    ip netns add "$(phw_netns "$LAB" away)"
    ip -n "$near" link set "$near_if" netns "$(phw_netns "$LAB" away)"
    reports "$what, interface moved" nic0 no-interface "was moved to another network namespace"
    ip -n "$(phw_netns "$LAB" away)" link set "$near_if" netns "$near"
    ip -n "$near" addr add "$near_address/31" dev "$near_if"
    ip -n "$near" link set "$near_if" up
    well_again "$what, interface back"
    ip netns del "$(phw_netns "$LAB" away)"
}

# Nothing passes, and no interface reports it. Needs running traffic.
silence() {
    local what=$1 id=$2
    t_has_nft || { skip "$what, silence" "nftables cannot cut a link here"; return 0; }
    t_impair --nft "$id" loss 100%
    # A folded Clos keeps the link and reports it as silent; a dragonfly takes it down and trains it again.
    silent() { state_is nic0 p0 silent || says nic0 "the other end is silent" >/dev/null; }
    check "$what, silence: reported within four seconds" phw_until 4 silent
    check "$what, silence: since when" says nic0 "silent"
    check_fails "$what, silence: status.sh fails" "NOT FULLY UP" status
    t_impair "$id" clear
    check "$what, silence: all links are up again" wait_up 5
}

# Frames rejected by a filter are counted, and reported once.
forbidden() {
    local what=$1
    nsenter "--net=/run/netns/$near" nft 'add table inet t; add chain inet t c { type filter hook output priority 0; }
        add rule inet t c udp dport != 0 drop' 2>/dev/null || { skip "$what, filter" "nftables cannot drop here"; return 0; }
    check "$what, filter: what it forbids is counted" phw_until 2 grows_beyond nic0 io.tx_dropped_forbidden 0
    nsenter "--net=/run/netns/$near" nft 'delete table inet t'
    check "$what, filter: the log says when it is over" phw_until 5 bash -c "grep -q 'sending frames again' '$(phw_lab_dir "$LAB")/nic0.log'"
    check "$what, filter: reported once" test "$(log_of nic0 | grep -c 'cannot send frames: a filter')" = 1
}

# Somebody changes the hardware address of the interface of nic0. Over UDP the router keeps sending to the old one until
# it resolves the address again, which in a lab of up.sh it never does: its neighbour entries are permanent, and a plain
# `ip neigh flush` keeps those. Nothing is wrong with either interface. Needs running traffic.
readdressed() {
    local what=$1
    ip -n "$near" link set "$near_if" address 02:00:00:00:00:77
    check "$what, hardware address: the log names the interface and the remedy" phw_until 5 bash -c '
        grep -q "the hardware address of interface p0 changed to 02:00:00:00:00:77; .*ip neigh flush nud all dev" "$1"' \
        bash "$(phw_lab_dir "$LAB")/nic0.log"
    check "$what, hardware address: the router says what may have happened" phw_until 5 says "$router" "hardware address of its interface changed"
    check_fails "$what, hardware address: so does status.sh" "hardware address of its interface changed" status
    ip -n "$far" neigh flush nud all dev "$far_if"
    check "$what, hardware address: the remedy works" wait_up 10
}

# A process that starts while its interface is down or missing waits for it, like a running one. It used to fail.
starts_without() {
    local what=$1 node
    ip -n "$near" link set "$near_if" down
    for node in nic0 "$router"; do
        check "$what, interface down: $node is killed" "$PHW_SCRIPTS/node.sh" --lab "$LAB" kill "$node"
        check "$what, interface down: and starts" "$PHW_SCRIPTS/node.sh" --lab "$LAB" start "$node"
    done
    check "$what, interface down: it is reported" phw_until 5 state_is nic0 p0 interface-down
    ip -n "$near" link set "$near_if" up
    check "$what, interface up after the start: all links are up" wait_up 10
    ip -n "$near" link del "$near_if"
    check "$what, interface deleted: the router is killed" "$PHW_SCRIPTS/node.sh" --lab "$LAB" kill "$router"
    check "$what, interface deleted: and starts" "$PHW_SCRIPTS/node.sh" --lab "$LAB" start "$router"
    check "$what, interface deleted: it is reported" phw_until 5 state_is "$router" "$far_if" no-interface
    connect
    check "$what, interface made after the start: all links are up" wait_up 10
    rate_case "$what: what has started so works" 100 --seconds 0.3
}

# Each machine and each kind of link once; all four combinations with --long.
runs=("pair ethernet" "aries-pair udp")
[[ ${PHITWIRE_LONG:-0} == 0 ]] || runs+=("pair udp" "aries-pair ethernet")
for run in "${runs[@]}"; do
    read -r machine kind <<<"$run"
    what="$machine, $kind"
    # A dragonfly gives up the contents of a silent link: its requests time out before messages flow again.
    t_topology "$T_SCRATCH/$machine.toml" "$machine" request_timeout_ms=5000
    t_up "dead_$kind" "$T_SCRATCH/$machine.toml" --link "$kind"
    IFS=$'\t' read -r id router far_if near_address far_address < <(phw_find_links "$LAB" nic0 | awk -F '\t' -v OFS='\t' '
        $2 == "nic0" { print $1, $4, $7, $8, $9 }
        $4 == "nic0" { print $1, $2, $6, $9, $8 }')
    near=$(phw_netns "$LAB" nic0) far=$(phw_netns "$LAB" "$router") near_if=p0
    pids=$(phw_node_pid "$LAB" nic0; phw_node_pid "$LAB" "$router")
    # A shell's background job ignores SIGINT unless configured otherwise.
    env --default-signal=INT "$PHITWIRE_BIN_DIR/phitwire-msgrate" --lab "$LAB" --json --seconds 90 --rate 2000 --window 16 \
        >"$T_SCRATCH/all.json" 2>"$T_SCRATCH/all.json.err" &
    runner=$!
    check "$what: messages flow" flows nic0
    # Before the cable is replaced by one without permanent neighbour entries.
    [[ $kind == ethernet ]] || readdressed "$what"
    deaths "$what"
    [[ $kind == ethernet ]] || forbidden "$what"
    silence "$what" "$id"
    check "$what: messages flow in the end" flows nic0
    check "$what: resends are shown" test "$(t_ctl nic0 links --json | jq '.[0].resent')" -gt 0
    check "$what: and since when nothing was heard" test "$(t_ctl nic0 links --json | jq '.[0].heard_ms')" -lt 5000
    kill -INT "$runner"
    settled "$runner"
    check "$what: nothing was doubled, damaged or out of order" honest "$T_SCRATCH/all.json"
    check "$what: the processes are the same as before" test "$pids" = "$(phw_node_pid "$LAB" nic0; phw_node_pid "$LAB" "$router")"
    check "$what: their logs are short ($(log_of nic0 | wc -l) lines)" test "$(log_of nic0 | wc -l)" -lt 80
    # How a missing interface is opened depends only on the kind of link, and a raw socket needs its index.
    if [[ $kind == ethernet ]] || t_long; then starts_without "$what"; fi
    "$PHW_SCRIPTS/down.sh" --lab "$LAB"
    check "$what: nothing is left" nothing_left "$LAB"
done
