#!/usr/bin/env bash
# A T3E torus with a spare node: a link is cut under traffic and routed around, a processor's process is killed and its
# number given to the spare, a board is isolated, removed, reinserted and returned. No other node loses anything.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

manage() { "$PHITWIRE_BIN_DIR/phitwire" manage "$1" --lab "$LAB" --json "${@:2}" >"$T_SCRATCH/report" 2>"$T_SCRATCH/report.err" \
    || { cat "$T_SCRATCH/report" "$T_SCRATCH/report.err"; return 1; }; }
report_is() { jq -e "$1" "$T_SCRATCH/report" >/dev/null || { cat "$T_SCRATCH/report"; return 1; }; }
number_is() { [[ $(t_ctl "$1" info --json | jq .processor) == "$2" ]]; }
# link_between A B: the id of the first link between two nodes.
link_between() { phw_find_links "$LAB" "$1-$2" | head -n 1 | cut -f 1; }
# set_link ID up|down: sets the interface at end A. The other end loses its carrier, as if the cable were cut.
set_link() {
    local a interface
    IFS=$'\t' read -r _ a _ _ _ interface _ < <(phw_find_links "$LAB" "$1")
    ip -n "$(phw_netns "$LAB" "$a")" link set "$interface" "$2"
}
is_kept() { (( $(counter_sum '^kept_packets$') > 0 )); }
# among FIRST LAST STEP: NICs separated by commas, without that of router 13.
among() { seq "$1" "$3" "$2" | grep -vx 13 | sed 's/^/nic/' | paste -sd ,; }

# A ring of eight nodes, in which four routers fail in turn, would take longer without showing more.
cat >"$T_SCRATCH/torus.toml" <<'TOML'
family = "t3e"
name = "torus"
size = "3x3x3"
spares = 1

[network]
request_timeout_ms = 3000
TOML
t_up phwf_t3e "$T_SCRATCH/torus.toml"
rate_case "between all that are in use, without the spare" 1000 --window 16 --seconds 0.5
check_fails "and is not a target before it has a number" 'is a spare: it is unreachable' \
    "$PHITWIRE_BIN_DIR/phitwire-msgrate" --lab "$LAB" --from nic0 --to nic26 --seconds 0.5
from=$(among 0 25 2) to=$(among 1 25 2)
all=(--from "$from" --to "$to" --window 32)
# Traffic next to other work: a fifth of what 54 processes carry on two processors.
steady=(--rate 500)
rate_case "between 25 of 27 processors, with a spare one" 1000 "${all[@]}" --seconds 0.5

# ---- A link ------------------------------------------------------------------------------------
link=$(link_between r13 r14)
long_rate "$T_SCRATCH/cut.json" "${steady[@]}" "${all[@]}" &
runner=$!
under_way nic0 500
check "a cable is cut" set_link "$link" down
check "packets in flight leave the network" phw_until 10 is_kept
check "the network is rerouted" manage reroute
check "by other tables in some routers, and no router is cut off" report_is \
    '.status == "done" and (.changed_routers | length) > 0 and (.failed_links | length) == 1 and .disconnected_pairs == 0'
detail < <(jq -c '{changed: (.changed_routers | length), took_ms}' "$T_SCRATCH/report")
stop_job "$runner"
check "nothing is lost without a word, twice, or wrong" honest "$T_SCRATCH/cut.json"
detail < <(jq -c '{sent, acknowledged, timed_out, refused}' "$T_SCRATCH/cut.json")
check "the retained packets were resent" bash -c "(( $(counter_sum '^resent_packets$') == $(counter_sum '^kept_packets$') ))"
kept=$(counter_sum '^kept_packets$')
rate_case "routes avoid it" 1000 "${all[@]}" --seconds 0.5
rate_case "in order too" 1000 "${all[@]}" --routing ordered --seconds 0.5
check "and nothing meets the dead link" test "$(counter_sum '^kept_packets$')" = "$kept"
check "the cable is reinserted" set_link "$link" up
check "all links come up" "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$LAB" --timeout 15
check "the first tables are back" manage reroute
check "and everything is well" report_is '.status == "done" and .failed_links == []'

# ---- A processor -------------------------------------------------------------------------------
long_rate "$T_SCRATCH/spare.json" "${steady[@]}" --from nic0,nic1,nic2 --to nic12,nic14,nic5 --window 32 &
runner=$!
under_way nic0 500
check "a processor's process is killed" "$PHW_SCRIPTS/node.sh" --lab "$LAB" kill nic14
check "the spare takes its number" manage rename nic14 nic26
check "it has been reported" number_is nic26 14
stop_job "$runner"
check "what the dead one held is reported" honest "$T_SCRATCH/spare.json"
rate_case "messages to that number reach the spare" 1000 --from nic0,nic1,nic2 --to nic12,nic26,nic5 --window 32 --seconds 0.5
check "and so do barriers" timeout --foreground -k 5 60 "$PHITWIRE_BIN_DIR/phitwire-bench" barrier --lab "$LAB" --unit 3 --count 100 --nics nic0,nic26,nic5
check_fails "a processor in use is not a spare" "is not a spare" manage rename nic12 nic5
check "the dead one is restarted" "$PHW_SCRIPTS/node.sh" --lab "$LAB" start nic14
check "all links come up" "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$LAB" --timeout 15
check "it gets its number back" manage rename nic14 --back
check "and has it" number_is nic14 14
check "the spare has its own number" number_is nic26 26
rate_case "messages reach it again" 1000 --from nic0,nic1,nic2 --to nic12,nic14,nic5 --window 32 --seconds 0.5

# ---- A board -----------------------------------------------------------------------------------
long_rate "$T_SCRATCH/board.json" "${steady[@]}" "${all[@]}" &
runner=$!
under_way nic0 500
check "a board is isolated" manage isolate r13
check "and said to be" report_is '.failed_routers == [{"name": "r13", "why": "isolated by command"}] and .failed_links == []'
check "its processes are ended" bash -c '"$1" --lab "$2" stop nic13 && "$1" --lab "$2" kill r13' _ "$PHW_SCRIPTS/node.sh" "$LAB"
sleep 0.5
check "and started" bash -c '"$1" --lab "$2" start r13 && "$1" --lab "$2" start nic13' _ "$PHW_SCRIPTS/node.sh" "$LAB"
check "all links come up" "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$LAB" --timeout 15
check "the board is returned" manage return r13
check "and everything is well" report_is '.failed_routers == [] and .disconnected_pairs == 0'
stop_job "$runner"
check "the others have lost nothing" exactly_once "$T_SCRATCH/board.json"
rate_case "the board works" 1000 --from nic13,nic0 --to nic25,nic12 --window 32 --seconds 0.5
