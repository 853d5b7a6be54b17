#!/usr/bin/env bash
# Cost and end of a process: idle ones sleep, a 64-port router is small, SIGINT and SIGTERM drain.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

ticks_of() { awk '{ sub(/^.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"; }

# Killed messages may be missing; nothing else may be wrong.
sane() { jq -e '.duplicated == 0 and .corrupted == 0 and .misordered == 0 and .acknowledged > 0' "$1" >/dev/null || { cat "$1" "$1.err"; return 1; }; }

# watch_idle: the processor time of each node over 3 s, its minimum so far in $least. A tick may be charged to the wrong
# process: a busy machine can only increase it.
IDLE=3
declare -A before least=()
watch_idle() {
    local node spent
    for node in $nodes; do before[$node]=$(ticks_of "$(phw_node_pid "$LAB" "$node")"); done
    sleep "$IDLE"
    for node in $nodes; do
        spent=$(( $(ticks_of "$(phw_node_pid "$LAB" "$node")") - before[$node] ))
        (( spent >= ${least[$node]:-spent + 1} )) || least[$node]=$spent
    done
}
all_sleep() {
    local node
    for node in $nodes; do (( ${least[$node]} * 100 <= IDLE * hertz )) || return 1; done
}

# A router loses its contents when it ends, and the run waits until those requests time out.
t_topology "$T_SCRATCH/impatient.toml" quickstart request_timeout_ms=3000
t_up idle "$T_SCRATCH/impatient.toml"
nodes=$(phw_plan_nodes "$LAB") hertz=$(getconf CLK_TCK)
sleep 1
for _ in 1 2 3; do
    watch_idle
    ! all_sleep || break
done
for node in $nodes; do
    check "$node sleeps when idle (under 1 % of a core; spent ${least[$node]} ticks in $IDLE s)" test $(( ${least[$node]} * 100 )) -le $(( IDLE * hertz ))
done

# Stopped processes are waited for together.
pids=()
for node in $(phw_plan_nodes "$LAB" | head -n 4); do pids+=("$(phw_node_pid "$LAB" "$node")"); done
kill -STOP "${pids[@]}"
# within MILLISECONDS STATUS COMMAND...
within() {
    local most=$1 wanted=$2 begin status=0
    shift 2
    begin=$(phw_ms)
    "$@" >"$T_SCRATCH/said" 2>&1 || status=$?
    begin=$(( $(phw_ms) - begin ))
    printf '# %s: status %s after %s ms\n' "$1" "$status" "$begin"
    (( status == wanted && begin <= most ))
}
check "ctl all queries all processes although four are stopped" within 9000 1 "$PHITWIRE_BIN_DIR/phitwire" ctl --lab "$LAB" all links
check "and names these" test "$(grep -c "no answer in time" "$T_SCRATCH/said")" = 4
check "wait observes its timeout" within 5000 1 "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$LAB" --timeout 1
kill -CONT "${pids[@]}"
check "they continue" "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$LAB" --timeout 15

# ends_in_order SIGNAL NODE HOW: NODE ends, its new log lines have a summary that contains HOW, and its socket is gone.
ends_in_order() {
    local pid log socket
    pid=$(phw_node_pid "$LAB" "$2") log=$(phw_lab_dir "$LAB")/$2.log socket=$(phw_lab_dir "$LAB")/$2.sock
    : >"$log"
    kill "-$1" "$pid"
    check "SIG$1 ends $2" phw_until 15 phw_all_gone "$pid"
    check "which prints a summary" grep -E "\`$2\` of lab \`$LAB\` ran for [0-9.]+ s and ended $3" "$log"
    check "with its counters" grep -E "^  frames sent [0-9]+, received [0-9]+, dropped [0-9]+; engine " "$log"
    check "and takes its socket away" test ! -e "$socket"
    check "$2 restarts" "$PHW_SCRIPTS/node.sh" --lab "$LAB" start "$2"
    check "all links come up" "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$LAB" --timeout 15
}
node=$(phw_plan_nodes "$LAB" | tail -n 1)
for signal in INT TERM; do
    ends_in_order "$signal" "$node" "with no packets or requests left"
done

# Under traffic a source drains its outstanding messages; a router need not, since more keep arriving.
for node in nic0 r1-0; do
    how="with no packets or requests left" traffic=(--from nic0 --from nic1 --to nic2 --window 64)
    [[ $node == nic0 ]] || how="with (no packets or requests left|packets or requests left)" traffic=()
    steady_rate "$T_SCRATCH/during.json" "${traffic[@]}" &
    runner=$!
    under_way nic0
    ends_in_order TERM "$node" "$how"
    stop_job "$runner"
    check "nothing is twice, wrong or out of order" sane "$T_SCRATCH/during.json"
done
"$PHW_SCRIPTS/down.sh" --lab "$LAB"

# A router with all 64 ports in use: 32 processors below it, 32 sidelinks to a router with one processor.
big() {
    local i
    printf 'name = "big"\n[processors]\n'
    for (( i = 0; i < 33; i++ )); do printf 'nic%d = %d\n' "$i" "$i"; done
    printf '[[chip]]\nname = "r1-0"\nrank = 1\nprocessors = "0-31"\n'
    printf '[[chip]]\nname = "r1-1"\nrank = 1\nprocessors = "32"\n[wiring]\nlinks = [\n'
    for (( i = 0; i < 32; i++ )); do
        printf '{ a = "nic%d:0", b = "r1-0:%d" },\n{ a = "r1-0:%d", b = "r1-1:%d" },\n' "$i" "$i" $(( i + 32 )) $(( i + 32 ))
    done
    printf '{ a = "nic32:0", b = "r1-1:0" },\n]\n'
}
big >"$T_SCRATCH/big.toml"
t_up big "$T_SCRATCH/big.toml"
router=r1-0
ports=$(phw_find_links "$LAB" "$router" | wc -l)
check "a router has all 64 ports in use" test "$ports" = 64
resident() { awk -v "key=$1:" '$1 == key { print $2 }' "/proc/$(phw_node_pid "$LAB" "$router")/status"; }
# Buffers take memory once they have been used, not in advance.
idle=$(resident RssAnon)
check "before there is traffic its own memory is less than 8 MiB (had $idle KiB)" test "$idle" -lt 8192
rate_case "33 processors send to each other, exactly once" 1000 --seconds 1
most=$(resident VmHWM)
check "a router with $ports ports stays under 64 MiB (had $most KiB)" test "$most" -lt 65536
