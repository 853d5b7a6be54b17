#!/usr/bin/env bash
# netem.sh udp|ethernet: real `tc netem` on every link at once, one impairment after another, then all together. Every
# message is delivered exactly once, in order per address. PHITWIRE_LONG=1 runs the whole list. Runs inside
# netns-scripts/with-netem.sh.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
kind=${1:?udp or ethernet}
t_need_namespaces

# Corrupt bits reach the LCB only over this kind of link: there packets are forwarded before they are checked.
speculate=()
[[ $kind != ethernet ]] || speculate=(--cut-through phits)
t_up "netem_$kind" quickstart --link "$kind" --timeout 60 "${speculate[@]}"
t_impair 0 loss 1% 2>/dev/null || { (( $? != PHW_SKIP )) || skip_all "no netem in this kernel"; }
t_impair 0 clear

seconds=${PHITWIRE_NETEM_SECONDS:-1}
export T_RATE_TIMEOUT=$(( seconds + 90 ))

# is_wanted NAME: whether NAME is on the short list, or the whole list runs.
is_wanted() { [[ ${PHITWIRE_LONG:-0} != 0 || $1 == "loss of 10 %" || $1 == "1 % corruption" || $1 == all* ]]; }

# impaired NAME MIN NETEM-ARGUMENTS...
impaired() {
    local name=$1 min=$2
    shift 2
    is_wanted "$name" || return 0
    check "$kind: netem $* on every link" t_impair all "$@"
    rate_case "$kind: $name" "$min" --seconds "$seconds"
}

share_case() {
    local share
    share=$(lost_share all)
    check "$kind: single frames were lost, about $1 per mille (was $share)" between "$share" "$2" "$3"
}

impaired "loss of 0.1 %" 200 loss 0.1%
impaired "loss of 1 %" 200 loss 1%
impaired "loss of 10 %" 100 loss 10%
# If bursts were dropped whole, the share of frames would be far from this.
share_case 100 70 130
impaired "loss of 30 %" 20 loss 30%
! is_wanted "loss of 30 %" || share_case 300 250 350
impaired "delay of 1 ms with 0.5 ms jitter" 100 delay 1ms 0.5ms
impaired "25 % reordering" 100 delay 1ms reorder 25%
impaired "5 % duplication" 200 duplicate 5%
errors=$(counter_sum '\.rx_crc_errors$')
impaired "1 % corruption" 100 corrupt 1%
if [[ $kind == ethernet ]]; then
    check "$kind: the corrupt bits reached the LCB" test "$(counter_sum '\.rx_crc_errors$')" -gt "$errors"
    check "$kind: packets that had begun were let go" test "$(counter_sum '\.rx_let_go_packets$')" -gt 0
fi
impaired "loss in bursts (gemodel)" 100 loss gemodel 1% 20%
impaired "all of them together" 20 delay 1ms 0.5ms reorder 25% duplicate 5% corrupt 1% loss gemodel 1% 20%
impaired "delay of 50 ms, a long link" 20 delay 50ms
check "$kind: the links are cleared" t_impair all clear
rate_case "$kind: without impairment again" 500 --seconds "$seconds"
