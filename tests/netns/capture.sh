#!/usr/bin/env bash
# phitwire capture on running labs: the dissector finds exactly the retries that the link ends count, on every direction
# of every link of all machines; selections, limits, filters and pipes; errors.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces
t_has_nft || skip_all "nftables cannot drop frames here"
command -v tshark >/dev/null || (phw_need tshark:tshark) 2>/dev/null || skip_all "no tshark (sudo apt-get install tshark)"
export HOME=$T_SCRATCH
unset XDG_CONFIG_HOME

shark() { tshark -X "lua_script:$PHW_ROOT/docs/wireshark/phitwire.lua" "$@" 2>/dev/null; }
capture() { "$PHITWIRE_BIN_DIR/phitwire" capture --lab "$LAB" "$@"; }
equal() { [[ $1 == "$2" ]] || { echo "$1 is not $2"; return 1; }; }

# begin_capture [OPTIONS]: starts one in the background; all taps are open when this returns.
begin_capture() {
    : >"$T_SCRATCH/capture.log"
    "$PHITWIRE_BIN_DIR/phitwire" capture --lab "$LAB" -w "$T_SCRATCH/x.pcapng" "$@" >"$T_SCRATCH/capture.json" 2>"$T_SCRATCH/capture.log" &
    CAPTURE=$!
    phw_until 10 grep -q ^capturing "$T_SCRATCH/capture.log" || not_ok "a capture begins" "$(<"$T_SCRATCH/capture.log")"
}
end_capture() {
    kill -TERM "$CAPTURE" 2>/dev/null || true
    settled "$CAPTURE"
}

# counters FILE: writes all counters of the lab. quiet: waits until the resend counters stop changing.
counters() { t_ctl all stats --json >"$1"; }
resent() { jq -S 'map_values(with_entries(select(.key | test("retransmitted|replayed"))))' "$1"; }
is_quiet() {
    counters "$T_SCRATCH/one"
    sleep 0.3
    counters "$T_SCRATCH/after"
    [[ $(resent "$T_SCRATCH/one") == "$(resent "$T_SCRATCH/after")" ]]
}

# counted COUNTER: lines "DIRECTION NUMBER" with the resends of each link end; seen: the same from the dissector.
counted() {
    # shellcheck disable=SC2016  # jq's variables
    jq -rn --slurpfile b "$T_SCRATCH/before" --slurpfile a "$T_SCRATCH/after" --rawfile plan "$(phw_lab_dir "$LAB")/plan.tsv" --arg counter "$1" '
        $plan | split("\n")[] | select(startswith("link\t")) | split("\t") as $l
        | ([$l[2], $l[3], $l[4]], [$l[4], $l[5], $l[2]]) as [$from, $port, $to]
        | "port\($port).\($counter)" as $key
        | (($a[0][$from][$key] // 0) - ($b[0][$from][$key] // 0)) as $again
        | select($again > 0) | "\($l[1]):\($from)->\($to) \($again)"' | sort
}
seen() { awk -F '\t' '$2 { sum[$1] += $2 } END { for (direction in sum) print direction, sum[direction] }' "$T_SCRATCH/dissected" | sort; }
# dissect: a line per frame that is a retry or wrong: direction, retries, problem. One pass for both.
WRONG=(phitwire.malformed.expert phitwire.bad_check.expert phitwire.out_of_order.expert)
dissect() {
    shark -r "$T_SCRATCH/x.pcapng" -Y "phitwire.lcb.retry or ${WRONG[0]} or ${WRONG[1]} or ${WRONG[2]}" -T fields \
        -e frame.interface_name -e phitwire.lcb.retries "${WRONG[@]/#/-e}" >"$T_SCRATCH/dissected"
}

# lossy NAME TOPOLOGY COUNTER OPERATION [up.sh OPTIONS]
lossy() {
    local name=$1 total
    t_up "capture_$name" "$2" "${@:5}"
    check "$name: 8 % loss" t_impair --nft all loss 8%
    phw_until 10 is_quiet || not_ok "$name: links at rest" "links are still resending"
    begin_capture --json
    counters "$T_SCRATCH/before"
    rate_case "$name: half a second of traffic" 100 --op "$4" --seconds 0.5 --rate 40
    phw_until 20 is_quiet || not_ok "$name: links at rest" "links are still resending"
    end_capture
    check "$name: the capture ends well at SIGTERM" equal "$SETTLED" 0
    check "$name: the capture missed nothing" equal "$(jq .missed "$T_SCRATCH/capture.json")" 0
    counted "$3" >"$T_SCRATCH/counted"
    check "$name: the dissector reads the capture" dissect
    seen >"$T_SCRATCH/seen"
    total=$(awk '{ sum += $2 } END { print sum + 0 }' "$T_SCRATCH/counted")
    check "$name: retries by the dissector and by the counters are the same on each of $(wc -l <"$T_SCRATCH/counted") directions, $total in all" \
        diff "$T_SCRATCH/counted" "$T_SCRATCH/seen"
    jq -r '.directions[] | select(.retries > 0) | "\(.name) \(.retries)"' "$T_SCRATCH/capture.json" | sort >"$T_SCRATCH/reported"
    check "$name: and those that the capture reports" diff "$T_SCRATCH/counted" "$T_SCRATCH/reported"
    check "$name: there were some" bash -c "(( $total > 20 ))"
    check "$name: nothing is malformed, no check wrong, nothing missing" equal \
        "$(awk -F '\t' '$3 $4 $5 != ""' "$T_SCRATCH/dissected" | wc -l)" 0
}

lossy blackwidow quickstart tx_retransmitted_packets put --link udp
"$PHW_SCRIPTS/down.sh" --lab "$LAB"
lossy t3e t3e-2x2x2 tx_retransmitted_packets put --link ethernet
"$PHW_SCRIPTS/down.sh" --lab "$LAB"
lossy aries aries-group tx_replayed_sets put --link udp

# ---- Selections and limits -----------------------------------------------------------------------------

interfaces() { capinfos "$1" 2>/dev/null | grep -oE ' Name = .*' | sed 's/ Name = //' | paste -sd' '; }
# frames_in FILE: counts its frames, without starting the dissector.
frames_in() { capinfos -Trc "$1" 2>/dev/null | cut -f 2; }
check "training frames alone" bash -c "
    '$PHITWIRE_BIN_DIR/phitwire' capture --lab $LAB --link 8 --filter training --seconds 2 -w '$T_SCRATCH/y.pcapng' & sleep 0.5
    '$PHITWIRE_BIN_DIR/phitwire' ctl --lab $LAB g0-c0s0 fault link-down 0 && sleep 0.2
    '$PHITWIRE_BIN_DIR/phitwire' ctl --lab $LAB g0-c0s0 fault link-up 0; wait %1"
check "are training frames" bash -c "(( $(shark -r "$T_SCRATCH/y.pcapng" -Y 'phitwire.kind == 1' | wc -l) > 2 \
    && $(shark -r "$T_SCRATCH/y.pcapng" -Y 'phitwire.kind != 1' | wc -l) == 0 ))"
check "the link comes back" "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$LAB" --timeout 15
# Links at rest take seconds to carry the frames that the captures below wait for.
long_rate "$T_SCRATCH/beside.json" --rate 50 &
traffic=$!
under_way nic0 10
check "a link, both places" capture --link 8 --at both --count 4 -w "$T_SCRATCH/y.pcapng"
check "has an interface for each direction and place" equal "$(interfaces "$T_SCRATCH/y.pcapng")" \
    "8:g0-c0s0->g0-c0s1 8:g0-c0s0->g0-c0s1 arrived 8:g0-c0s1->g0-c0s0 8:g0-c0s1->g0-c0s0 arrived"
check "and so many frames" equal "$(frames_in "$T_SCRATCH/y.pcapng")" 4
check "a node's frames alone" capture --link nic0 --filter nic0 --seconds 0.5 -w "$T_SCRATCH/y.pcapng"
check "come from it" equal "$(interfaces "$T_SCRATCH/y.pcapng")" "0:nic0->g0-c0s0"
check "frames of link control alone" capture --filter ack --count 20 -w "$T_SCRATCH/y.pcapng"
check "carry no packets" equal "$(shark -r "$T_SCRATCH/y.pcapng" -Y phitwire.lcb.ack_only | wc -l)" 20
check "into a pipe" bash -c "set -o pipefail; '$PHITWIRE_BIN_DIR/phitwire' capture --lab $LAB --count 20 -w - | HOME=$T_SCRATCH tshark -r - 2>/dev/null | wc -l | grep -x 20"
check "a pipe whose reader goes away" bash -c "'$PHITWIRE_BIN_DIR/phitwire' capture --lab $LAB --seconds 20 -w - 2>'$T_SCRATCH/log' | head -c 100 >/dev/null; grep 'the reader is gone' '$T_SCRATCH/log'"
cut_short() {
    local pid status=0
    "$PHITWIRE_BIN_DIR/phitwire" capture --lab "$LAB" --seconds 20 -w "$T_SCRATCH/y.pcapng" 2>"$T_SCRATCH/cut.log" &
    pid=$!
    phw_until 10 grep -q ^capturing "$T_SCRATCH/cut.log"
    kill -TERM "$pid"
    wait "$pid" || status=$?
    test "$status" = 130
}
check "an interrupted one has status 130" cut_short
check "a file has its limit" capture --seconds 20 --max-bytes 100k -w "$T_SCRATCH/y.pcapng"
check "and keeps it" bash -c "size=\$(stat -c %s '$T_SCRATCH/y.pcapng'); (( size <= 100000 && size > 90000 ))"
check "and is whole" bash -c "capinfos '$T_SCRATCH/y.pcapng' >/dev/null"
check "a ring of files" capture --seconds 0.5 --max-bytes 60k --files 2 -w "$T_SCRATCH/ring.pcapng"
check "has two at most, each whole" bash -c "set -- '$T_SCRATCH'/ring-*.pcapng; (( \$# >= 1 && \$# <= 2 )) && capinfos \"\$@\" >/dev/null"
if phw_is_root && mkdir "$T_SCRATCH/full" && mount -t tmpfs -o size=128k none "$T_SCRATCH/full" 2>/dev/null; then
    full() { capture --seconds 20 --json -w "$T_SCRATCH/full/y.pcapng" >"$T_SCRATCH/full.json"; }
    check_fails "a full disk is named" 'y.pcapng: No space left on device' full
    cp -- "$T_SCRATCH/full/y.pcapng" "$T_SCRATCH/y.pcapng"
    umount "$T_SCRATCH/full"
    in_file=$(frames_in "$T_SCRATCH/y.pcapng") || in_file=0
    check "and the file is whole" bash -c "capinfos '$T_SCRATCH/y.pcapng' >/dev/null && (( $in_file > 50 ))"
    check "no frame is counted that is not in it" equal "$(jq -c '[.frames, ([.directions[].frames] | add)]' "$T_SCRATCH/full.json")" "[$in_file,$in_file]"
else
    skip "a full disk" "cannot mount a tmpfs here"
fi

stop_job "$traffic"
check "the traffic beside it was not disturbed" exactly_once "$T_SCRATCH/beside.json" 10

begin_capture
"$PHW_SCRIPTS/down.sh" --lab "$LAB"
check "a capture ends with its lab" phw_until 10 grep -q 'the lab has been taken down' "$T_SCRATCH/capture.log"
end_capture
t_up capture_again pair

# A lab in a user namespace, whose root is an ordinary user outside.
status=0
# shellcheck disable=SC2016  # expanded in there
"$PHW_SCRIPTS/rootless.sh" bash -c '
    "$1/up.sh" pair --lab inside >/dev/null && "$PHITWIRE_BIN_DIR/phitwire" capture --lab inside --count 4 --seconds 10 -w "$2"' \
    bash "$PHW_SCRIPTS" "$T_SCRATCH/rootless.pcapng" >"$T_SCRATCH/log" 2>&1 || status=$?
if (( status == PHW_SKIP )); then
    skip "a lab without root" "$(tail -n 1 "$T_SCRATCH/log")"
else
    check "a lab without root is captured" equal "$status $(frames_in "$T_SCRATCH/rootless.pcapng")" "0 4"
fi

# ---- Errors ---------------------------------------------------------------------------------------------------------

check_fails "an unknown link" "no link .r0-r9." capture --link r0-r9 -w "$T_SCRATCH/y.pcapng"
check_fails "a word that filters nothing" "unknown word .dta. in --filter" capture --filter dta -w "$T_SCRATCH/y.pcapng"
check_fails "a file in a missing folder" "No such file or directory" capture -w "$T_SCRATCH/none/y.pcapng"
check_fails "too few bytes" "too small" capture --max-bytes 10 -w "$T_SCRATCH/y.pcapng"
check_fails "a ring of pipes" "needs a file, not standard output" capture --files 2 --max-bytes 1M -w -
check_fails "an unknown lab" "not up" "$PHITWIRE_BIN_DIR/phitwire" capture --lab "none_$$" -w "$T_SCRATCH/y.pcapng"
