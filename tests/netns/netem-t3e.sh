#!/usr/bin/env bash
# netem-t3e.sh udp|ethernet: real `tc netem` on every link of a torus of 27 routers and 27 processors, one impairment
# after another, then all together. Under each, every operation is carried out exactly once, ordered puts arrive in
# order, and barriers on three units at once, while puts fill the network, are neither early nor lost. That takes a
# quarter of an hour and needs PHITWIRE_LONG=1; otherwise all impairments together, on a torus of eight. Runs inside
# netns-scripts/with-netem.sh.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
kind=${1:?udp or ethernet}
t_need_namespaces

whole_list() { [[ ${PHITWIRE_LONG:-0} != 0 ]]; }
if whole_list; then torus=t3e-3x3x3 processors=27 some_router=r13; else torus=t3e-2x2x2 processors=8 some_router=r7; fi

# Requests outlive the delay of a lost frame in an emulated machine with one CPU, and links do not mistake its pauses
# for a cut. Nor do they become silent: on a link at rest a burst of lost frames lasts for as many polls, and no barrier
# tree would use that link.
t_topology "$T_SCRATCH/patient.toml" "$torus" request_timeout_ms=30000 give_up_ms=0 silence_ms=0
t_up "netem_t3e_$kind" "$T_SCRATCH/patient.toml" --link "$kind" --timeout 240
t_impair 0 loss 1% 2>/dev/null || { (( $? != PHW_SKIP )) || skip_all "no netem in this kernel"; }

seconds=${PHITWIRE_NETEM_SECONDS:-0.6}
export T_RATE_TIMEOUT=$(( ${seconds%.*} + 120 ))
# Each sender has 32 outstanding: more than that proves that answers arrived.
most=$(( processors * 32 + 1 ))
# Outstanding puts per processor during barriers; in the short list, other tests need the processors too.
window=16
! whole_list || window=64

# barriers NAME: barriers of all processors, on three units at once, each joining at its own time. Puts fill the network
# during some of these barriers; before and after that it is quiet, since commands to busy processes take their time.
barriers() {
    local name=$1 file=$T_SCRATCH/barriers.json puts=$T_SCRATCH/puts.json bench runner requests=0 barriers=0 start during status
    look
    beside phitwire-bench barrier --unit 3,7,31 --skew-ns 20000000 >"$file" 2>"$file.err"
    bench=$!
    phw_until 60 has_reached 0 $(( barriers + 1 )) "$bench" || true
    beside phitwire-msgrate --window "$window" >"$puts" 2>"$puts.err"
    runner=$!
    phw_until 60 has_reached $(( requests + window )) 0 "$runner" || true
    start=$barriers
    phw_until 60 has_reached 0 $(( start + 9 )) "$bench" || true
    during=$(( barriers - start ))
    # They are interrupted (130), and account for everything they started.
    kill -TERM "$runner" 2>/dev/null || true
    settled "$runner"
    status=$SETTLED
    kill -TERM "$bench" 2>/dev/null || true
    settled "$bench"
    if (( SETTLED == 130 && during >= 9 )) && neither_early_nor_lost "$file"; then
        ok "$name ($(jq -r --arg during "$during" '"\(map("\(.barriers)") | join(", ")), \($during) of them among puts, \(map(.checks) | add) checks, slowest \(map(.latency_us.max) | max / 1000 | floor) ms"' "$file"))"
    else
        not_ok "$name" "status $SETTLED, $during barriers during the puts, or some were early, lost or timed out"
        { jq -c 'map(del(.latency_us, .eureka_latency_us, .tree))' "$file" || true; tail -n 20 "$file.err"; } 2>&1 | detail
    fi
    if (( status == 130 )) && exactly_once "$puts" $(( processors * window + 1 )) >/dev/null; then
        ok "$name: so are the puts ($(jq .acknowledged "$puts") messages)"
    else
        not_ok "$name: so are the puts" "status $status, or puts not exactly once"
        { exactly_once "$puts" $(( processors * window + 1 )) || true; } 2>&1 | detail
    fi
}
# beside TOOL ARGUMENTS...: runs it until it is interrupted.
beside() {
    setpriv --pdeathsig TERM "$PHITWIRE_BIN_DIR/$1" "${@:2}" --lab "$LAB" --json --seconds "$T_RATE_TIMEOUT" &
}
# Sets $requests and $barriers to nic0's counts so far: a busy process takes seconds to answer in user-mode Linux. After
# a barrier it reads at most one word of another processor, which is not a put.
look() {
    read -r requests barriers < <(t_ctl nic0 stats --json | jq -r '."barrier.barriers" as $barriers | "\(.requests_done - $barriers) \($barriers)"')
}
# has_reached REQUESTS BARRIERS PID: whether the counts are that high, or PID has ended, so that they are final.
has_reached() { look && (( requests >= $1 && barriers >= $2 )) || ! kill -0 "$3" 2>/dev/null; }
neither_early_nor_lost() {
    jq -e --argjson all "$processors" 'length == 3 and all(.[]; .clean and .early == 0 and .lost == 0 and .timed_out == 0
        and .failure == null and .participants == $all and .barriers >= 3 and .checks >= $all)' "$1" >/dev/null
}

# share_case MIN MAX: checks the loss over all links; in the short list, over those of a router.
share_case() {
    local of=all share
    whole_list || of=$some_router
    share=$(lost_share "$of")
    check "$kind: single frames were lost, $1 to $2 per mille (was $share)" between "$share" "$1" "$2"
}

# Packets rejected by the check of a link; over udp the kernel checks frames first.
refused_packets() {
    case $kind in
        ethernet) counter_sum '^port[0-6]\.rx_crc_errors$' ;;
        udp)
            nsenter "--net=/run/netns/$(phw_netns "$LAB" "$some_router")" cat /proc/net/snmp \
                | awk '$1 == "Udp:" && !column { for (i = 1; i <= NF; i++) if ($i == "InCsumErrors") column = i; next }
                    $1 == "Udp:" { print $column }' ;;
    esac
}

# corrupt_case BEFORE: more packets have been rejected since.
corrupt_case() {
    local refused
    refused=$(( $(refused_packets) - $1 ))
    check "$kind: corrupt bits reached the checks ($refused)" test "$refused" -gt 0
}

# impaired NAME NETEM-ARGUMENTS...
impaired() {
    local name=$1
    shift
    check "$kind: netem $* on every link" t_impair all "$@"
    # In the short list, the puts during barriers are enough.
    ! whole_list || rate_case "$kind: $name: puts" "$most" --seconds "$seconds" --window 32 --size 64
    rate_case "$kind: $name: ordered puts, in order" "$most" --seconds "$seconds" --window 32 --routing ordered
    rate_case "$kind: $name: gets" "$most" --seconds "$seconds" --window 32 --op get
    rate_case "$kind: $name: additions" "$most" --seconds "$seconds" --window 32 --op amo
    barriers "$kind: $name: barriers among puts"
}

if whole_list; then
    impaired "loss of 0.1 %" loss 0.1%
    impaired "loss of 1 %" loss 1%
    share_case 7 13
    impaired "loss of 10 %" loss 10%
    share_case 80 120
    impaired "loss of 30 %" loss 30%
    share_case 270 330
    impaired "delay of 1 ms with 0.5 ms jitter" delay 1ms 0.5ms
    impaired "25 % reordering" delay 1ms reorder 25%
    impaired "5 % duplication" duplicate 5%
    refused=$(refused_packets)
    impaired "1 % corruption" corrupt 1%
    corrupt_case "$refused"
    # After one frame in a hundred a burst of five is lost: one in 21.
    impaired "loss in bursts (gemodel)" loss gemodel 1% 20%
    share_case 25 75
fi
refused=$(refused_packets)
impaired "all of them together" delay 1ms 0.5ms reorder 25% duplicate 5% corrupt 1% loss gemodel 1% 20%
share_case 25 75
corrupt_case "$refused"
if whole_list; then
    impaired "delay of 50 ms, long links" delay 50ms
    check "$kind: the links are cleared" t_impair all clear
    rate_case "$kind: without impairment again" "$most" --seconds 1 --window 32
fi
