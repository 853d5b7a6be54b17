#!/usr/bin/env bash
# phitwire-bench on a running group of Aries routers: each benchmark, as a table and as JSON; unsupported options are
# rejected with a remedy, and Ctrl-C leaves no NIC sending.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

bench() { timeout --foreground -k 5 60 "$PHITWIRE_BIN_DIR/phitwire-bench" "$@"; }
# bench_case FILTER BENCHMARK [options]: the benchmark's JSON satisfies the filter. Collectives, in which all nodes take
# part, get more time.
bench_case() {
    local filter=$1 file=$T_SCRATCH/rows.json seconds=0.1
    shift
    [[ $1 != allreduce && $1 != barrier ]] || seconds=0.3
    if bench "$1" --lab "$LAB" --seconds "$seconds" --json "${@:2}" >"$file" 2>"$file.err" && jq -e "$filter" "$file" >/dev/null; then
        ok "phitwire-bench $*"
    else
        not_ok "phitwire-bench $*" "does not satisfy $filter"
        { cat "$file"; tail -n 20 "$file.err"; } | detail
    fi
}

t_up bench aries-group
clean='.lost == 0 and .duplicated == 0 and .corrupted == 0 and .misordered == 0 and .sent == .acknowledged and .sent > 0'
bench_case "map(.size) == [1, 8, 64, 65, 4096] and all(.[]; $clean and .window == 1 and .mean_us > 0)" latency --size 1,8,64,65,4096
bench_case "length == 2 and all(.[]; $clean)" latency --op get --size 4,1000
bench_case "length == 1 and all(.[]; $clean)" latency --op amo
bench_case "length == 2 and all(.[]; $clean and .window == 64 and .sources == 1)" bandwidth --size 64,16384
bench_case "all(.[]; $clean and .sources == 2)" bibw --size 64
# A number of messages instead of a time; OSU's option names.
counted() { bench latency --lab "$LAB" --json "$@" | jq -e "map(.sent) == [200, 200, 200] and map(.size) == [16, 32, 64]"; }
check "so many messages, of sizes in a range, behind a warm-up" counted -m 16:64 -i 200 -x 50
bench_case "all(.[]; $clean and .sources == 3)" bandwidth --pairs 3 --size 64
bench_case "all(.[]; $clean and .sources == 4)" bibw --pairs 2 --size 64
check_fails "too many pairs are rejected, without a table header" 'enough for' bench bandwidth --lab "$LAB" --pairs 999
check "nor is there one above any other error" bash -c '! "$1" latency --lab "$2" --from nobody --to nic0 2>/dev/null | grep .' \
    bash "$PHITWIRE_BIN_DIR/phitwire-bench" "$LAB"
check "a full window's latency is reported next to that of one message" bash -c '
    "$1" --lab "$2" --size 8 --seconds 0.3 | tee /dev/stderr | grep -E "^# 8 bytes, one at a time, nic0 -> nic[0-9]+: p50 [0-9.]+ us"' \
    bash "$PHITWIRE_BIN_DIR/phitwire-msgrate" "$LAB"
bench_case "all(.[]; $clean and .gups > 0 and .size == 8)" gups
bench_case "all(.[]; $clean and .sources > 2)" alltoall --size 8,256
bench_case 'length == 3 and all(.[]; .clean and .wrong == 0 and .iterations > 0)' allreduce --op sum-f64,max-i32,xor-i64 --branching 2
bench_case 'all(.[]; .clean and .op == "barrier")' barrier --engine 3
check "the table has a row per size" bash -c 'test "$("$1" latency --lab "$2" --size 8,64 --seconds 0.1 | grep -cE "^(8|64) ")" = 2' \
    bash "$PHITWIRE_BIN_DIR/phitwire-bench" "$LAB"

# Output files: drawings, latencies in the format of HdrHistogram's plotters; printed JSON matches its schema.
phitwire=$PHITWIRE_BIN_DIR/phitwire
drawn() { bench "$1" --lab "$LAB" --seconds 0.2 --size 8,64,512 --plot "$T_SCRATCH/$1.svg" "${@:3}" && grep -q "$2" "$T_SCRATCH/$1.svg"; }
check "latency is drawn" drawn latency "99th percentile" --hgrm "$T_SCRATCH/lat.hgrm"
check "bandwidth, too" drawn bandwidth "MB/s acknowledged"
check "each size has a file of latencies" test -s "$T_SCRATCH/lat-8.hgrm" -a -s "$T_SCRATCH/lat-64.hgrm" -a -s "$T_SCRATCH/lat-512.hgrm"
counts_up() { awk 'NR > 2 && !/^#/ { if ($3 < last || $1 < value) exit 1; last = $3; value = $1; share = $2 } END { exit !(last > 10 && share == 1) }' "$1"; }
check "in order, to the last message" counts_up "$T_SCRATCH/lat-64.hgrm"
check "message rates are drawn" "$PHITWIRE_BIN_DIR/phitwire-msgrate" --lab "$LAB" --size 8,64 --seconds 0.3 --plot "$T_SCRATCH/rate.svg" --hgrm "$T_SCRATCH/rate.hgrm"
check "over their sizes" grep -q "payload per message" "$T_SCRATCH/rate.svg"
check "round trips are written" "$phitwire" ping --lab "$LAB" nic0 nic1 -c 12 -i 1 --hgrm "$T_SCRATCH/ping.hgrm"
check "all of them" counts_up "$T_SCRATCH/ping.hgrm"
check_fails "an unwritable file is reported beforehand" "cannot write" bench latency --lab "$LAB" --size 8 --plot /nonexistent/x.svg
# as_schema NAME COMMAND...
as_schema() { "${@:2}" >"$T_SCRATCH/schema.json" && "$phitwire" schema "$1" --check "$T_SCRATCH/schema.json"; }
check "latency is as its schema says" as_schema bench-messages bench latency --lab "$LAB" --size 8,64 --seconds 0.1 --json
check "gups" as_schema bench-messages bench gups --lab "$LAB" --seconds 0.1 --json
check "allreduce" as_schema bench-collectives bench allreduce --op sum-i64 --lab "$LAB" --seconds 0.1 --json
check "message rate" as_schema msgrate "$PHITWIRE_BIN_DIR/phitwire-msgrate" --lab "$LAB" --seconds 0.2 --rate 1000 --json
check "ping" as_schema ping "$phitwire" ping --lab "$LAB" nic0 nic1 -c 2 -i 1 --json
check "trace" as_schema trace "$phitwire" trace --lab "$LAB" --from nic0 --to nic1 --json
check "top" as_schema top "$phitwire" top --lab "$LAB" --once --json
check "capture" as_schema capture "$phitwire" capture --lab "$LAB" --count 4 --json -w "$T_SCRATCH/schema.pcapng"
check "reroute" as_schema manage "$phitwire" manage reroute --lab "$LAB" --json
check_fails "a value that is otherwise is found" 'is missing|, expected ' as_schema ping "$phitwire" trace --lab "$LAB" --from nic0 --to nic1 --json
check_fails "misspelt names" 'did you mean `nic1`' bench latency --lab "$LAB" --from nic0 --to nci1

going_on() { t_ctl nic0 collective status --json | jq -e '.phase == "running" and .iterations > 0'; }
# A background job ignores SIGINT unless configured otherwise.
for what in gups barrier; do
    env --default-signal=INT "$PHITWIRE_BIN_DIR/phitwire-bench" "$what" --lab "$LAB" --seconds 60 >"$T_SCRATCH/out" 2>&1 &
    pid=$!
    case $what in
        gups) under_way nic0 ;;
        barrier) check "barriers have started" phw_until 20 going_on ;;
    esac
    kill -INT "$pid"
    settled "$pid"
    check "$what: Ctrl-C ends it in order (status $SETTLED)" test "$SETTLED" = 130
done
bench_case "all(.[]; $clean)" latency --size 8

# Only one tool at a time; its runs end with it, however it ends.
bench barrier --lab "$LAB" --seconds 60 >/dev/null 2>&1 &
runner=$!
check "barriers continue" phw_until 10 going_on
check_fails "other tools are rejected in the meantime" 'phitwire-bench \(process [0-9]+\) holds this NIC; wait for it' bench latency --lab "$LAB" --size 8
tool=$(t_ctl nic0 traffic start '{"run":1}' 2>&1 | grep -o 'process [0-9]*') || true
kill -KILL "${tool#process }"
settled "$runner"
bench_case 'all(.[]; .clean)' barrier
bench_case "all(.[]; $clean)" latency --size 8

# Deliberate errors, injected through the registers of a link: each is counted, and nothing is lost.
ctl_fault() { t_ctl nic0 fault "$@"; }
check "the injection registers are set" ctl_fault inject 0 2000 --lane-mask 3 --bit-mask 3 --max-per-64-sets 32 --seed 7
rate_case "additions under injected bit errors" 200 --op amo --seconds 0.5 --window 64
check "they were made" test "$(counter_sum '^port0\.tx_injected_errors$')" -gt 10
check "and the other end found them" test "$(counter_sum '\.rx_bad_crcs$')" -gt 10
check "injection ends" ctl_fault inject 0 0
check "a bad CRC" ctl_fault bad-crc 0
check "a lost clock" ctl_fault lose-clock 0 50
check "lanes reinitialised" ctl_fault reinit 0
rate_case "puts after all that" 200 --seconds 0.5 --window 64

check_fails "no such node" "its NICs are nic0" bench latency --lab "$LAB" --from nic0 --to nic99
check_fails "no such lab" "is not running" bench latency --lab "none_$$"
"$PHW_SCRIPTS/down.sh" --lab "$LAB"
t_up bench_clos pair
bench_case "map(.size) == [1, 2, 4, 8, 16, 32] and all(.[]; $clean)" latency
# Links in separate namespaces lose frames, with netem or nftables, and stop losing them afterwards.
goodput() { bench goodput --lab "$LAB" --loss 0,2%,10% --seconds 0.4 --json --plot "$T_SCRATCH/goodput.svg" >"$T_SCRATCH/goodput.json"; }
check "goodput over losses" goodput
check "every byte of it" jq -e "map(.loss_percent) == [0, 2, 10] and all(.[]; $clean)" "$T_SCRATCH/goodput.json"
check "with losses, links had to resend more" jq -e '.[2].retransmitted_packets > 2 * .[0].retransmitted_packets + 10' "$T_SCRATCH/goodput.json"
check "as its schema says" "$phitwire" schema bench-goodput --check "$T_SCRATCH/goodput.json"
check "and drawn" grep -q "goodput (MB/s)" "$T_SCRATCH/goodput.svg"
unimpaired() { ! "$PHW_SCRIPTS/impair.sh" --lab "$LAB" all show | grep -v "clear$"; }
check "afterwards no link is impaired" unimpaired
env --default-signal=INT "$PHITWIRE_BIN_DIR/phitwire-bench" goodput --lab "$LAB" --loss 5% --seconds 60 >/dev/null 2>&1 &
pid=$!
check "it impairs" phw_until 10 bash -c '! "$1" --lab "$2" all show | grep -q "clear$"' bash "$PHW_SCRIPTS/impair.sh" "$LAB"
kill -INT "$pid"
settled "$pid"
check "Ctrl-C ends it in order (status $SETTLED)" test "$SETTLED" = 130
check "nor is one impaired then" unimpaired

check_fails "BlackWidow has no additions" "this NIC does not support atomic operations" bench gups --lab "$LAB" --seconds 0.1
check_fails "nor such registers" "YARC links do not support this fault" t_ctl nic0 fault bad-crc 0
check_fails "nor collective engines" "needs two NICs with collective engines" bench barrier --lab "$LAB"
