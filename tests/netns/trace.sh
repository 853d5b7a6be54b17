#!/usr/bin/env bash
# Routes of packets in running labs of all machines: traces, pings and routes, among traffic and loss, and reports of
# lost packets. Afterwards no router is tracing.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

phitwire() { "$PHITWIRE_BIN_DIR/phitwire" "$@"; }
# traced FILE FROM TO [options]: writes a trace as JSON to FILE.
traced() { phitwire trace --lab "$LAB" --from "$2" --to "$3" --json "${@:4}" >"$1"; }

# Properties of every completed trace: each router decided, the winner is the output port, times increase, and each hop
# starts where the previous one leads.
# shellcheck disable=SC2016  # jq's own variables
is_whole='
    def nodes: [.hops[].next // "" | sub(":.*"; "")];
    .version == 1 and .outcome == "done" and (.ways | length) == 2
    and all(.ways[]; .delivered and (.hops | length) > 0
        and ([.hops[1:][].router] + [.to]) == nodes
        and all(.hops[]; (.choices | length) > 0 and (.stages | length) > 0 and .arrived != null
            and (.out_port as $out | [.choices[] | select(.among == "port") | .winner] | all(. == $out or . == 255))
            and ([.arrived] + [.stages[].left] | . == sort)))'
whole() { jq -e "$is_whole" "$1" >/dev/null || { jq -c '{outcome, notes, ends: [.ways[]? | .end]}' "$1"; return 1; }; }
# The same as a condition that must fail: a trace without one of its hops.
cut_out() { jq '.ways[0].hops |= .[:-1]' "$1" >"$1.cut" && ! jq -e "$is_whole" "$1.cut" >/dev/null; }

# Chrome's trace format, as far as Perfetto requires it.
is_perfetto() {
    jq -e '(.traceEvents | length) > 4 and .displayTimeUnit == "ns"
        and all(.traceEvents[]; (.ph | IN("X", "M", "i")) and (.pid | type) == "number" and (.name | type) == "string"
            and (.ph != "X" or ((.ts | type) == "number" and .dur >= 0 and (.tid | type) == "number")))
        and ([.traceEvents[] | select(.ph == "X") | .tid] | unique | length) > 2' "$1"
}

# one_machine NAME TOPOLOGY FROM TO OPERATIONS [up.sh options]
one_machine() {
    local name=$1 from=$3 to=$4 operation file=$T_SCRATCH/$1.json busy=$T_SCRATCH/$1.busy runner
    t_up "$name" "$2" "${@:6}"
    for operation in $5; do
        if ! traced "$file" "$from" "$to" --op "$operation" --perfetto "$file.perfetto" 2>"$file.err"; then
            detail <"$file.err"
        fi
        check "$name: a $operation is followed there and back" whole "$file"
    done
    check "$name: the checker notices a missing hop" cut_out "$file"
    check "$name: its file is one of Perfetto's" is_perfetto "$file.perfetto"
    check "$name: the table names the source, stages and waits" bash -c \
        'grep -q "wait" <<<"$1" && grep -q "delivered" <<<"$1"' bash "$(phitwire trace --lab "$LAB" --from "$from" --to "$to" 2>&1)"
    check "$name: pings are answered" phitwire ping --lab "$LAB" "$from" "$to" --count 3 --interval 20
    check "$name: the route of the description arrives" phitwire route --lab "$LAB" "$from" "$to"
    check "$name: registers are listed" bash -c 'grep -q "description" <<<"$1"' bash "$(t_ctl "$(routers | head -n 1)" get)"

    steady_rate "$T_SCRATCH/rate.json" &
    runner=$!
    under_way "$from" 500
    for (( try = 0; try < 3; try++ )); do
        ! traced "$busy" "$from" "$to" --op get 2>"$busy.err" || ! whole "$busy" >/dev/null || break
    done
    check "$name: a get is followed among traffic" whole "$busy"
    stop_job "$runner"
    check "$name: and the traffic is counted exactly once" exactly_once "$T_SCRATCH/rate.json" 500
}
routers() { phitwire topology plan "$(phw_lab_dir "$LAB")/topology.toml" | awk '$1 == "node" && $3 == "router" { print $2 }'; }

one_machine xc aries-3x4 nic0 nic11 'put get amo'
file=$T_SCRATCH/lost.json
# The router of the target dies: the trace shows where the packet was last seen, or that none was sent.
target=$(jq -r '.ways[0].hops[-1].router' "$T_SCRATCH/xc.json")
check "the target's router is killed" "$PHW_SCRIPTS/node.sh" --lab "$LAB" kill "$target"
check_fails "the trace of a packet that is lost ends with status 1" 'last seen|discarded by|does not answer' \
    phitwire trace --lab "$LAB" --from nic0 --to nic11 --wait 500
traced "$file" nic0 nic11 --wait 500 2>/dev/null || true
check "and it has the hops up to there" jq -e '.ways[0] | (.delivered | not) and (.end | length) > 0' "$file"
check_fails "a dead peer answers nothing" '0 answered' phitwire ping --lab "$LAB" nic0 nic11 --count 2 --interval 20 --wait 300
check_fails "a misspelt name gets a suggestion" 'did you mean `nic1' phitwire trace --lab "$LAB" --from nic0 --to nci11
check_fails "so is that of a register" 'did you mean `chip.quiesced`' t_ctl "$(jq -r '.ways[0].hops[0].router' "$file")" get chip.quiesed
# A router traces one flow at a time: of two traces at once, one waits for the other.
at_once() {
    local trace
    for trace in 1 2 3 4; do phitwire trace --lab "$LAB" --from "nic$trace" --to "nic$(( trace + 1 ))" --json >"$T_SCRATCH/at_once.$trace" & done
    wait
    jq -es 'length == 4 and all(.outcome == "done" and all(.ways[]; .delivered and (.hops | length) > 0))' "$T_SCRATCH"/at_once.? >/dev/null \
        || { jq -c '[.outcome, (.ways | map(.end)), .notes]' "$T_SCRATCH"/at_once.?; return 1; }
}
check "four traces at once are whole" at_once
unread() {
    local status=0
    timeout 20 bash -o pipefail -c '"$1" ping --lab "$2" nic0 nic1 --count 0 --interval 10 | head -n 1' sh "$PHITWIRE_BIN_DIR/phitwire" "$LAB" || status=$?
    test "$status" = 141
}
check "pings that nobody reads end" unread
soon_ended() {
    local pid begun
    "$PHITWIRE_BIN_DIR/phitwire" ping --lab "$LAB" nic0 nic11 --wait 60000 >/dev/null 2>&1 &
    pid=$!
    sleep 0.5
    begun=$SECONDS
    kill -INT "$pid"
    local status=0
    wait "$pid" || status=$?
    test "$status" = 130 || return
    test "$(( SECONDS - begun ))" -lt 10
}
check "one that waits for an answer can be interrupted" soon_ended
"$PHW_SCRIPTS/down.sh" --lab "$LAB" >/dev/null 2>&1

one_machine clos quickstart nic0 nic7 'put get'
# A killed NIC takes nothing from its link, which waits for it forever.
check "a network interface is killed" "$PHW_SCRIPTS/node.sh" --lab "$LAB" kill nic1
traced "$file" nic0 nic1 --wait 500 2>/dev/null || true
only_sent() {
    jq -c '.ways | map(.end)' "$file"
    jq -e '.ways[0] | (.delivered | not) and (.hops[-1].next == "nic1:0")
        and (.end | test("^sent over the last link, from .* to nic1:0, but not seen there"))' "$file" \
        && phitwire schema trace --check "$file"
}
check "of a request that the last link has sent no more than that is said" only_sent
"$PHW_SCRIPTS/down.sh" --lab "$LAB" >/dev/null 2>&1
one_machine torus t3e-2x2x2 nic0 nic7 'put get amo'

# Lossy links: resends are reported, and the time on the link increases.
if t_has_nft && t_impair --nft all loss 20% >/dev/null 2>&1; then
    resent=0
    for (( try = 0; try < 12 && resent == 0; try++ )); do
        traced "$file" nic0 nic7 --wait 5000 2>/dev/null || continue
        resent=$(jq '[.ways[].hops[].resent // 0] | add' "$file")
    done
    check "with a fifth of the frames lost, a packet is still traced" whole "$file"
    check "and links report resends" test "$resent" -gt 0
else
    skip "traces among losses" "nftables cannot drop frames here"
fi
