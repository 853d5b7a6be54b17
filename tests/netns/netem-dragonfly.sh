#!/usr/bin/env bash
# netem-dragonfly.sh udp|ethernet: real `tc netem` on every link of Aries routers, green, black and blue, one impairment
# after another, then all together. Under each, puts, gets, blocks and additions are carried out exactly once (proved by
# the sums), and all reductions are correct. The whole list takes some minutes of user-mode Linux, with three groups of
# four routers, and needs PHITWIRE_LONG=1; otherwise, with one link of each colour, all operations run under all
# impairments together, and puts under loss. Runs inside netns-scripts/with-netem.sh.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
kind=${1:?udp or ethernet}
t_need_namespaces

# Requests outlive the delay of a lost frame in an emulated machine with one CPU, links do not mistake its pauses for a
# cut, and collectives wait accordingly.
patient=(request_timeout_ms=30000 give_up_ms=0)
if t_long; then
    nics=12
    t_topology "$T_SCRATCH/patient.toml" aries-3x4 "${patient[@]}"
else
    nics=4
    t_every_colour "$T_SCRATCH/colours.toml"
    t_settings "$T_SCRATCH/colours.toml" "$T_SCRATCH/patient.toml" "${patient[@]}"
fi
t_up "dragonfly_$kind" "$T_SCRATCH/patient.toml" --link "$kind" --timeout 120
t_impair 0 loss 1% 2>/dev/null || { (( $? != PHW_SKIP )) || skip_all "no netem in this kernel"; }
t_impair 0 clear

seconds=${PHITWIRE_NETEM_SECONDS:-0.6}
export T_RATE_TIMEOUT=$(( ${seconds%.*} + 120 ))

# collectives NAME: all NICs reduce together.
collectives() {
    local name=$1 file=$T_SCRATCH/collectives.json
    if timeout --foreground -k 5 "$T_RATE_TIMEOUT" "$PHITWIRE_BIN_DIR/phitwire-bench" allreduce --lab "$LAB" --op sum-i64,min-f64 \
            --branching 3 --seconds "$seconds" --json >"$file" 2>"$file.err" \
        && jq -e --argjson nics "$nics" 'length == 2 and all(.[]; .clean and .wrong == 0 and .failed == 0 and .participants == $nics)' \
            "$file" >/dev/null; then
        ok "$name ($(jq -r 'map("\(.iterations) \(.op)") | join(", ")' "$file"))"
    else
        not_ok "$name" "a result was wrong or missing"
        { jq -c . "$file" || true; tail -n 20 "$file.err"; } 2>&1 | detail
    fi
}

# replayed COLOUR: sets resent by routers on links of that colour.
replayed() {
    local ports
    case $1 in
        green) ports='[0-9]|1[0-4]' ;;
        black) ports='1[5-9]|2[0-9]' ;;
        blue) ports='3[0-9]' ;;
    esac
    t_ctl all stats --json | jq --arg pattern "^port($ports)\\.tx_replayed_sets$" '
        [to_entries[] | select(.key | startswith("nic") | not) | .value | to_entries[] | select(.key | test($pattern)) | .value] | add // 0'
}

# impaired NAME NETEM-ARGUMENTS...: in the short list, the share of lost frames needs puts alone, and over udp the kernel
# drops corrupt frames, which is a loss like the others.
impaired() {
    local name=$1
    shift
    t_long || [[ $name == "loss of 10 %" || $name == all* || $name == "1 % corruption" && $kind == ethernet ]] || return 0
    check "$kind: netem $* on every link" t_impair all "$@"
    rate_case "$kind: $name: puts" 20 --seconds "$seconds" --window 32
    t_long || [[ $name != "loss of 10 %" ]] || return 0
    rate_case "$kind: $name: additions" 20 --seconds "$seconds" --window 32 --op amo
    rate_case "$kind: $name: gets" 20 --seconds "$seconds" --window 32 --op get --size 64
    rate_case "$kind: $name: blocks" 1 --seconds "$seconds" --window 2 --size 1000
    collectives "$kind: $name: reductions"
}

impaired "loss of 0.1 %" loss 0.1%
impaired "loss of 1 %" loss 1%
impaired "loss of 10 %" loss 10%
share=$(lost_share all)
check "$kind: single frames were lost, about 100 per mille (was $share)" between "$share" 70 130
impaired "loss of 30 %" loss 30%
impaired "delay of 1 ms with 0.5 ms jitter" delay 1ms 0.5ms
impaired "25 % reordering" delay 1ms reorder 25%
impaired "5 % duplication" duplicate 5%
errors=$(counter_sum '\.rx_bad_crcs$')
impaired "1 % corruption" corrupt 1%
if [[ $kind == ethernet ]]; then
    check "$kind: the corrupt bits reached the LCB" test "$(counter_sum '\.rx_bad_crcs$')" -gt "$errors"
fi
impaired "loss in bursts (gemodel)" loss gemodel 1% 20%
impaired "all of them together" delay 1ms 0.5ms reorder 25% duplicate 5% corrupt 1% loss gemodel 1% 20%
impaired "delay of 50 ms, long links" delay 50ms
check "$kind: the links are cleared" t_impair all clear
rate_case "$kind: without impairment again" 200 --seconds 1 --window 32
for link in green black blue; do
    # Every kind of link was affected.
    check "$kind: sets were replayed on $link links" test "$(replayed "$link")" -gt 0
done
