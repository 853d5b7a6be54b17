#!/usr/bin/env bash
# Reports of the message-rate tool about a faulty lab: an unreachable target, processes that are stopped, killed and
# restarted, including routers, a killed tool, and a competing measurement.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

# Reports are printed as unwrapped lines, so that they can be searched.
rate() { timeout --foreground -k 5 120 "$PHITWIRE_BIN_DIR/phitwire-msgrate" --lab "$LAB" "$@"; }
node_pid() { t_ctl "$1" info --json | jq .pid; }
named() { jq -e --arg who "$2" --arg key "$3" '.[$key] == [$who]' "$1"; }

# SIGSTOP for two seconds shows the same as for half a minute, unless the latter is requested.
STOPPED_FOR=2
(( ${PHITWIRE_LONG:-0} == 0 )) || STOPPED_FOR=30

# impatient TOPOLOGY: a lab whose requests time out after 2 s.
impatient() {
    t_topology "$T_SCRATCH/$1.toml" "$1" request_timeout_ms=2000
    t_up "reach_${1//-/_}" "$T_SCRATCH/$1.toml"
}

# out_of_reach TOPOLOGY: the target's link is down. The tool used to wait for three timeouts instead of one.
out_of_reach() {
    check "$1: the target's link goes down" t_ctl nic1 fault link-down 0
    local begin=$EPOCHREALTIME
    check_fails "$1: a target out of reach is called that" 'nic1 could not be reached' rate --from nic0 --to nic1 --seconds 1
    check "$1: within its timeout" awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { exit !(b - a < 5) }'
    check "$1: the link comes back" t_ctl nic1 fault link-up 0
    check "$1: all links come back up" "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$LAB" --timeout 15
    rate_case "$1: the next run is clean" 1000 --from nic0 --to nic1 --seconds 0.3
}

# nic_stops NODE WHAT: NODE is stopped under traffic; the run stays consistent and names it.
nic_stops() {
    local file=$T_SCRATCH/still.json pid
    pid=$(node_pid "$1")
    long_rate "$file" --from nic0 --to nic1 &
    local runner=$!
    under_way nic0
    kill -STOP "$pid"
    sleep "$STOPPED_FOR"
    kill -CONT "$pid"
    under_way nic0
    stop_job "$runner"
    check "$LAB: a run whose $2 was stopped keeps its counts" \
        jq -e '.acknowledged > 1000 and .latency_us.p50 > 0 and .duplicated == 0 and .corrupted == 0 and .misordered == 0
            and .unfinished == [] and .frames_sent > 0' "$file"
    check "$LAB: and names it" named "$file" "$1" processes_stopped
    rate_case "$LAB: the next run is clean" 1000 --from nic0 --to nic1 --seconds 0.3
}

# emptied OPTIONS...: the target of gets or additions is killed and restarted. Values from its new, empty memory used to
# be reported as corrupted. The run ends once messages have met the new memory, however long that takes.
emptied() {
    local file=$T_SCRATCH/emptied.json
    long_rate "$file" --from nic0 --to nic1 "$@" &
    local runner=$!
    under_way nic0
    check "$LAB: the target is killed ($*)" "$PHW_SCRIPTS/node.sh" --lab "$LAB" kill nic1
    check "and restarted" "$PHW_SCRIPTS/node.sh" --lab "$LAB" start nic1
    check "messages meet its new memory" phw_until 60 met_new_memory
    stop_job "$runner"
    check "the run ends with status 1" test "$SETTLED" = 1
    check "what was found in its new memory is not called corrupted" \
        jq -e '.corrupted == 0 and .unwritten > 0 and .duplicated == 0 and .restarted == ["nic1"]' "$file"
    check "all links come up again" "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$LAB" --timeout 15
    rate_case "the next run is clean" 100 --from nic0 --to nic1 --seconds 0.3 "$@"
}
met_new_memory() { (( $(t_ctl nic0 traffic status --json | jq .unwritten) > 0 )); }

# outlives OPTIONS...: the target of a run of blocks is killed and restarted, and the run continues there. The run used
# to end, because all of its addresses had a block in flight with an unknown outcome.
outlives() {
    local file=$T_SCRATCH/outlives.json before
    long_rate "$file" --from nic0 --to nic1 "$@" &
    local runner=$!
    under_way nic0
    check "$LAB: the target is killed ($*)" "$PHW_SCRIPTS/node.sh" --lab "$LAB" kill nic1
    check "messages in flight time out" phw_until 20 has_timed_out 8
    before=$(t_ctl nic0 traffic status --json | jq .acknowledged)
    check "the target is restarted" "$PHW_SCRIPTS/node.sh" --lab "$LAB" start nic1
    check "the run continues" phw_until 60 has_acknowledged $(( before + 1000 ))
    stop_job "$runner"
    check "it ends with status 1" test "$SETTLED" = 1
    check "and nothing is called corrupted" \
        jq -e '.corrupted == 0 and .timed_out > 0 and .duplicated == 0 and .restarted == ["nic1"]' "$file"
    check "all links come up again" "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$LAB" --timeout 15
    rate_case "the next run is clean" 100 --from nic0 --to nic1 --seconds 0.3 "$@"
}
has_timed_out() { (( $(t_ctl nic0 traffic status --json | jq .timed_out) >= $1 )); }
has_acknowledged() { (( $(t_ctl nic0 traffic status --json | jq .acknowledged) >= $1 )); }

# dead_blocks: the router of the source is killed during block transfers. They used to time out six at a time, each
# batch after a whole timeout, and some were missing in the sums.
dead_blocks() {
    local file=$T_SCRATCH/blocks.json runner begun
    long_rate "$file" --from nic0 --to nic1 --size 4096 --window 64 &
    runner=$!
    under_way nic0
    check "$LAB: the router of nic0 is killed" "$PHW_SCRIPTS/node.sh" --lab "$LAB" kill g0-c0s0
    begun=$EPOCHREALTIME
    stop_job "$runner"
    check "a run of blocks ends within its timeout of 2 s and 6 s for a slow host" \
        awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { print b - a " s"; exit !(b - a < 8) }'
    check "its sums close" jq -e '.timed_out > 0 and .unknown == 0 and .unfinished == []
        and .sent == .acknowledged + .timed_out + .refused' "$file"
    check "it has said what it waited for" grep -E 'waiting for answers to messages, [0-9]+ outstanding at nic0' "$file.err"
    check "the router is restarted" "$PHW_SCRIPTS/node.sh" --lab "$LAB" start g0-c0s0
    check "all links come up again" "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$LAB" --timeout 15
}

# dead_for_programs: one of two targets of a program is dead. It used to receive all messages and was not named.
dead_for_programs() {
    local file=$T_SCRATCH/programs.json
    rate --client --from nic0 --to nic1,nic4 --window 16 --seconds 1 --json >"$file" || true
    check "a program continues to live targets" jq -e '.acknowledged > 20 * .timed_out and .timed_out > 0' "$file"
    check "and the dead one is named" jq -e '[.unanswered[].node] == ["nic4"]' "$file"
    check "and so is its router, which is dead" named "$file" r1-1 processes_dead
    check "and its sums close" jq -e '.sent == .acknowledged + .timed_out + .refused + .unknown' "$file"
}

# dead_by_name: a dead NIC is reported as dead. The tool used to suggest another name.
dead_by_name() {
    check "a network interface is killed" "$PHW_SCRIPTS/node.sh" --lab "$LAB" kill nic5
    check_fails "it is called dead" '`nic5` is dead: its process has ended' rate --from nic0 --to nic5 --seconds 1
}

# older_number: a target remembers runs of a source that the source has forgotten. It used to be reported as
# unreachable.
older_number() {
    check "$LAB: a run begins" by_hand 9000000000000002 500000000
    check "and is done" phw_until 20 run_over
    check "its source is restarted" "$PHW_SCRIPTS/node.sh" --lab "$LAB" restart nic0
    check "all links come up again" "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$LAB" --timeout 15
    check "a run of a lower number begins" by_hand 9000000000000001 500000000
    check "and is over" phw_until 20 run_over
    check "since its target refuses it" jq -e '.unwilling == 1 and .refusers == [1] and .unreachable == 0 and .sent == 0' \
        <<<"$(t_ctl nic0 traffic status --json)"
    check "and says for which" jq -e '.outdated_by == 9000000000000002' <<<"$(of_run 9000000000000001)"
    check "one above it begins" by_hand 9000000000000003 500000000
    check "and is done" phw_until 20 run_over
    check "with messages" jq -e '.delivered > 1000 and .corrupted == 0' <<<"$(of_run 9000000000000003)"
}

# others PID: the measuring tool is named, and not disturbed.
others() {
    long_rate "$T_SCRATCH/first.json" --from nic0 --to nic1 &
    local runner=$!
    under_way nic0
    local words
    for words in "--from nic2 --to nic1" "--from nic0 --to nic2" "--from nic1 --to nic0"; do
        # shellcheck disable=SC2086  # words
        check_fails "a second run is rejected ($words)" 'phitwire-msgrate \(process [0-9]+\) holds this NIC; wait for it, end it \(kill [0-9]+\)' \
            rate $words --seconds 1
    done
    check_fails "so is one begun by hand" 'holds this NIC' \
        t_ctl nic1 traffic start '{"run":9000000000000000,"pattern":{"list":{"destinations":[2]}},"count":1}'
    check "one of others goes beside it" rate --from nic2 --to nic3 --seconds 0.3
    stop_job "$runner"
    check "the first is not disturbed (status $SETTLED)" test "$SETTLED" = 130
    check "and counts all" exactly_once "$T_SCRATCH/first.json" 1000
}

# The tool is killed: its run ends automatically.
killed_tool() {
    "$PHITWIRE_BIN_DIR/phitwire-msgrate" --lab "$LAB" --seconds 60 >/dev/null 2>&1 &
    local tool=$!
    under_way nic0
    kill -KILL "$tool"
    settled "$tool"
    rate_case "after SIGKILL of the tool the next run starts at once, and is clean" 1000 --seconds 0.5
    check "a run begun by hand" t_ctl nic0 traffic start \
        '{"run":9000000000000001,"pattern":{"list":{"destinations":[1]}},"window":8}'
    check "and another" t_ctl nic2 traffic start \
        '{"run":9000000000000001,"pattern":{"list":{"destinations":[1]}},"window":8}'
    local said
    said=$(rate --seconds 1 2>&1) && not_ok "the earlier run is in the way" "the run was not refused"
    said=$(tr -s ' \n│' ' ' <<<"$said")
    check "it is reported once, for all of its nodes" test "$(grep -o 'traffic run 9000000000000001' <<<"$said" | wc -l)" = 1
    local remedy
    remedy=$(grep -o 'for n in .*; done' <<<"$said")
    check "with a remedy ($remedy)" env PATH="$PHITWIRE_BIN_DIR:$PATH" bash -c "$remedy"
    rate_case "that works as printed" 1000 --seconds 0.5
}

# A router is killed and restarted; NICs notice only silence.
router_restarts() {
    local file=$T_SCRATCH/router.json runner begun stopped
    rate --seconds 0.3 >/dev/null
    begun=$EPOCHREALTIME
    long_rate "$file" &
    runner=$!
    under_way nic0
    check "a router is killed" "$PHW_SCRIPTS/node.sh" --lab "$LAB" kill r1-1
    sleep 0.5
    check "and restarted" "$PHW_SCRIPTS/node.sh" --lab "$LAB" start r1-1
    stopped=$EPOCHREALTIME
    stop_job "$runner"
    check "it is named" named "$file" r1-1 processes_restarted
    check "its counters do not hide those of others" jq -e '.frames_sent > 1000 and .uncounted == ["r1-1"]' "$file"
    check "the wait for timeouts is reported, and not in the rate" \
        jq -e --argjson most "$(awk -v a="$begun" -v b="$stopped" 'BEGIN { print b - a + 0.5 }')" '.timed_out > 0 and .drain_seconds >= 0
            and .seconds < $most
            and .messages_per_second * .seconds - .acknowledged < 1' "$file"
    check "all links come up again" "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$LAB" --timeout 15
    long_rate "$file" --from nic0 --to nic1 &
    runner=$!
    under_way nic0
    check "a router is killed for good" "$PHW_SCRIPTS/node.sh" --lab "$LAB" kill r1-1
    stop_job "$runner"
    check "it is named" named "$file" r1-1 processes_died
}

# by_hand RUN NS: nic0 starts a run to nic1. run_over: whether it is done.
by_hand() {
    t_ctl nic0 traffic start "{\"run\":$1,\"pattern\":{\"list\":{\"destinations\":[1]}},\"window\":256,\"duration_ns\":$2}"
}
run_over() { [[ $(t_ctl nic0 traffic status --json | jq -r .phase) == "done" ]]; }
of_run() { t_ctl nic1 traffic status "$1" --json; }

# The router of one slice is stopped during two runs, whose messages arrive in the third. The announcements take the
# other slice. 209 messages of the first run used to be reported as corrupted.
late_messages() {
    "$PHITWIRE_BIN_DIR/phitwire" topology generate blackwidow --processors 2 --subtree 2 --slices 2 >"$T_SCRATCH/slices.all"
    sed 's/^request_timeout_ms = .*/request_timeout_ms = 1000/' "$T_SCRATCH/slices.all" >"$T_SCRATCH/slices.toml"
    t_up faults_slices "$T_SCRATCH/slices.toml"
    local pid
    pid=$(node_pid s0-r1-0)
    check "a run begins" by_hand 1 2000000000
    under_way nic0
    kill -STOP "$pid"
    check "and stalls" phw_until 20 run_over
    check "so does a second" by_hand 2 500000000
    check "to its end" phw_until 20 run_over
    check "a third begins" by_hand 3 1000000000
    kill -CONT "$pid"
    check "and is done" phw_until 20 run_over
    check "messages of both come late, and are called that" \
        bash -c '(( $(jq .stale <<<"$1") > 256 ))' bash "$(of_run 3)"
    check "and nothing is corrupt" \
        jq -e '.corrupted == 0 and .duplicated == 0 and .misordered == 0 and .missing == 0 and .delivered > 1000' <<<"$(of_run 3)"
}

# All machines share the tool and its runs: each fault is tried on one of two machines, on both with --long.
late_messages
impatient pair
out_of_reach pair
! t_long || nic_stops nic1 target
nic_stops nic0 source
! t_long || emptied --op get --size 8
emptied --op get --size 1
! t_long || older_number
impatient aries-pair
! t_long || out_of_reach aries-pair
nic_stops nic1 target
! t_long || emptied --op get --size 64
emptied --op get --size 4096
outlives --op put --size 4096
dead_blocks
emptied --op amo
older_number
t_topology "$T_SCRATCH/impatient.toml" quickstart request_timeout_ms=4000
t_up faults "$T_SCRATCH/impatient.toml"
others
killed_tool
router_restarts
dead_for_programs
dead_by_name
