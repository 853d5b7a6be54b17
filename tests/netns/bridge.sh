#!/usr/bin/env bash
# Cables replaced by bridges, shared with others: an end of another lab that looks for its peer, then the whole link.
# Their frames must not provoke answers. Finally one of the interfaces is replaced by one with another hardware address.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

# The namespace, created by this test, of the bridge that connects labs.
SWITCH=$(phw_netns "bridge_$$" switch)
# shellcheck disable=SC2317  # called by the trap
end_switch() { ip netns del "$SWITCH" 2>/dev/null || true; }
trap 'status=$?; set +e; end_switch; (exit "$status"); t_finish' EXIT

in_switch() { ip -n "$SWITCH" "$@"; }

# plug NETNS IF: replaces the interface by one with an address from the kernel, whose cable ends at the bridge.
plug() {
    local port
    ip -n "$1" link del "$2" 2>/dev/null || true
    port=b$(( ++ports ))
    in_switch link add "$port" type veth peer name "$2" netns "$1"
    in_switch link set "$port" master switch up
    ip -n "$1" link set "$2" up
}

# cable_of: the first link of nic0, with the names of its namespaces and interfaces.
cable_of() {
    local a b if_a if_b
    IFS=$'\t' read -r _ a _ b _ if_a if_b _ < <(phw_find_links "$LAB" nic0 | head -n 1)
    near=$(phw_netns "$LAB" "$a") near_if=$if_a far=$(phw_netns "$LAB" "$b") far_if=$if_b
}

# Both ends of the cable have received frames of other links.
strangers_come() {
    local node
    for node in "${near#"$(phw_netns "$LAB" '')"}" "${far#"$(phw_netns "$LAB" '')"}"; do
        t_ctl "$node" stats --json | jq -e '[to_entries[] | select(.key | test("drop_wrong_(fabric|link|epoch)")) | .value] | add > 3' \
            >/dev/null || return 1
    done
}

wait_up() { "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$1" --timeout "${2:-10}"; }

for machine in pair aries-pair; do
    what=$machine ports=0
    ip netns add "$SWITCH"
    in_switch link add switch type bridge
    in_switch link set switch up
    t_up bridge_one "$machine" --link ethernet
    one=$LAB
    cable_of
    plug "$near" "$near_if"
    plug "$far" "$far_if"
    check "$what: over a bridge it is up" wait_up "$one"

    # It looks for its peer forever, and all ends on the bridge receive its frames.
    t_up bridge_two "$machine" --link ethernet
    two=$LAB
    cable_of
    plug "$near" "$near_if"
    LAB=$one
    cable_of
    check "$what: frames of another lab come" phw_until 15 strangers_come
    rate_case "$what: and it delivers exactly once" 1000 --seconds 1
    check "$what: and it is up" wait_up "$one"

    LAB=$two
    cable_of
    plug "$far" "$far_if"
    check "$what: the other one comes up on the same bridge" wait_up "$two"
    for LAB in "$one" "$two"; do
        rate_case "$what: ${LAB%_*} delivers exactly once" 1000 --seconds 0.3
    done

    LAB=$one
    cable_of
    plug "$near" "$near_if"
    check "$what: with another hardware address at one end it is up again" wait_up "$LAB"
    rate_case "$what: and delivers exactly once" 1000 --seconds 0.3
    for LAB in "$one" "$two"; do
        "$PHW_SCRIPTS/down.sh" --lab "$LAB"
        check "$what: nothing is left of ${LAB%_*}" nothing_left "$LAB"
    done
    end_switch
done
