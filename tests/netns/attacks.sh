#!/usr/bin/env bash
# A stranger on the wires. Both machines face the same list of attacks, on one link of every kind and from both of its
# ends, with 8,000 frames each on every link, while the lab runs at full rate: late copies, replays, frames of other
# epochs, links, fabrics and ends, with fewer lanes, truncated, too long, with flipped bits, and random. Nothing is
# lost, duplicated, corrupted or out of order; each invalid frame is counted as dropped, exactly so while the lab is at
# rest; afterwards every link is up with all its lanes, every process is the original one and within its memory limit,
# and a clean run is clean.
#
#   attacks.sh [MACHINE-LINK...]     default: blackwidow-ethernet aries-udp; with PHITWIRE_LONG=1 both machines over
#                                    both kinds of links, and 100,000 frames
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces
t_stranger

# From each end of a link.
PER_END=${ATTACKS_PER_END:-$(( ${PHITWIRE_LONG:-0} == 0 ? 4000 : 50000 ))}
# Answers arrive within 0.4 s. Frames that end a session lose requests, and the test waits twice for their timeout.
TIMEOUTS=(request_timeout_ms=5000 forward_progress_ms=4000)
! t_long || TIMEOUTS=(request_timeout_ms=10000 forward_progress_ms=8000)
# Frames per second from each end: leaves the lab its share of two cores. Replays go as fast as possible.
RATE=${ATTACKS_RATE:-20000}
# From each end while the lab is at rest: one second's worth.
AT_REST=2000
# Memory limit of a process at the end, in KiB: that of any run (aries.sh), too small for frames that accumulate. A
# third of it is usual.
MOST_KIB=32768

# ---- The labs -----------------------------------------------------------------------------------
# The smallest networks with all kinds of links; KINDS has one link of each kind, SETTINGS the other settings.

# Processor link, uplink, sidelink.
blackwidow() {
    KINDS=(nic0-r1-0 r1-0-r2-0 r2-0-r2-1) SETTINGS=()
    "$PHITWIRE_BIN_DIR/phitwire" topology generate blackwidow --processors 4 --subtree 1 --rank 2.5 --virtual-radix 4 >"$1"
}

# Processor, green, black and blue link.
aries() {
    KINDS=(nic0-g0-c0s0 g0-c0s0-g0-c0s1 g0-c0s0-g0-c1s0 g0-c0s0-g1-c0s0)
    SETTINGS=()
    t_every_colour "$1"
}

# ---- Counting -----------------------------------------------------------------------------------

# snapshot FILE: records the counters of all nodes, and how many messages the kernel dropped on their way because a
# receive queue or a socket queue was full. Uses as few processes as possible: the lab keeps all processors busy.
snapshot() {
    local node netns
    for node in $(phw_plan_nodes "$LAB"); do
        netns=$(phw_netns "$LAB" "$node")
        printf '%s\n' "$node"
        nsenter "--net=/run/netns/$netns" ss -H -a -n -m -u -0
        ip -n "$netns" -j -s link show
    done >"$T_SCRATCH/kernel"
    t_ctl all stats --json | jq --rawfile kernel "$T_SCRATCH/kernel" '{stats: ., kernel: (
        reduce ($kernel | split("\n")[]) as $line ({};
            if $line | startswith("[") then .of[.node] += ($line | fromjson | map(.stats64.rx.dropped) | add)
            elif $line | contains("skmem:") then .of[.node] += ($line | capture("skmem:.*,d(?<drops>[0-9]+)\\)").drops | tonumber)
            elif $line | test("^[a-z][a-z0-9-]*$") then .node = $line | .of[$line] = 0
            else . end) | .of)}' >"$1"
}

# grown REPORT BEFORE AFTER FILTER: growth of FILTER, which sees counters as $at and the report as $report.
grown() {
    jq -n --slurpfile report "$1" --slurpfile before "$2" --slurpfile after "$3" '
        def ends: [$report[].ends[]];
        def overrun($at):
            [ends[].to] | unique | map(. as $node
                | $at.stats[$node]["io.rx_dropped_truncated"] + $at.stats[$node]["io.rx_dropped_foreign"]
                    + $at.kernel[$node]) | add // 0;
        # Drops are counted by port, by node for anything that is not a link frame, and by the kernel.
        def dropped($at):
            ([ends[] | {to, to_port}] | unique
                | map(. as $victim | $at.stats[$victim.to] | to_entries[]
                    | select(.key | startswith("port\($victim.to_port).drop_")) | .value) | add // 0)
            + overrun($at);
        def dropped_as($at; $name):
            [ends[] | {to, to_port}] | unique | map($at.stats[.to]["port\(.to_port).\($name)"]) | add // 0;
        # Messages that the whole lab received, minus those that its nodes sent; a train of frames is one message, also
        # where the kernel drops it.
        def strange($at):
            ([$at.stats[] | .["io.messages_received"] + .["io.rx_dropped_truncated"] + .["io.rx_dropped_foreign"]
                - .["io.messages_sent"]] | add) + ([$at.kernel[]] | add);
        def counted($at): '"$4"';
        counted($after[0]) - counted($before[0])'
}

sent() { jq -s 'map(.sent) | add // 0' "$@"; }

# ---- Attacking ----------------------------------------------------------------------------------

# attack NAME OPTIONS...: runs one attack and adds its report to $REPORTS.
attack() {
    local name=$1 report=$T_SCRATCH/attack.json
    shift
    if t_first "$STRANGER" --lab "$LAB" --links "$LINKS" --seed "$RANDOM" --seconds 120 "$@" >"$report" 2>"$report.err"; then
        ok "$WHERE: $name ($(jq -r '"\(.sent) frames in \(.seconds * 10 | floor / 10) s"' "$report"))"
    else
        not_ok "$WHERE: $name" "not all frames were sent"
        cat "$report" "$report.err" | tail -n 5 | cut -c 1-600 | detail
    fi
    cat "$report" >>"$REPORTS"
}

# refused NAME OPTIONS...: an attack whose every frame must be dropped and counted. The traffic underneath has drops of
# its own, in full sockets; at_rest is exact.
refused() {
    local name=$1
    snapshot "$T_SCRATCH/then.json"
    attack "$@"
    check "$WHERE: $name: each frame is counted as dropped" phw_until 20 all_dropped -ge
}
# all_dropped -eq|-ge
all_dropped() {
    local dropped sent
    snapshot "$T_SCRATCH/now.json"
    dropped=$(grown "$T_SCRATCH/attack.json" "$T_SCRATCH/then.json" "$T_SCRATCH/now.json" "dropped(\$at)")
    sent=$(sent "$T_SCRATCH/attack.json")
    test "$dropped" "$1" "$sent" || { echo "$dropped of $sent frames were dropped"; return 1; }
}

# at_rest: with the lab at rest, all drops are the stranger's, and must equal the frames sent. Frames with a single
# wrong field in an otherwise correct header meet the check of that field.
at_rest() {
    local what cause
    REPORTS=$T_SCRATCH/reports.json
    for what in "truncated: frames cut off anywhere" "oversize: frames that are too long" "random: random frames"; do
        snapshot "$T_SCRATCH/then.json"
        attack "at rest, ${what#*: }" --form "${what%%:*}" --count "$AT_REST" --rate 2000
        check "$WHERE: at rest, ${what#*: }: all were dropped, each once" phw_until 5 all_dropped -eq
    done
    snapshot "$T_SCRATCH/then.json"
    attack "at rest, frames of other epochs, links, fabrics and ends" --form foreign --count "$AT_REST" --rate 2000
    check "$WHERE: at rest, frames of other epochs, links, fabrics and ends: all were dropped" phw_until 5 all_dropped -ge
    for cause in link fabric end; do
        check "$WHERE: at rest, frames of another $cause are dropped as such, each once" all_dropped_as "$cause" -eq
    done
    # A node that receives an unknown epoch asks its peer, which may send an extra answer.
    check "$WHERE: at rest, frames of another epoch are dropped as such" all_dropped_as epoch -ge
    # Canary: an accepted frame is not a drop.
    snapshot "$T_SCRATCH/then.json"
    attack "at rest, a copy of a frame" --form copies --share 100 --count 1
    snapshot "$T_SCRATCH/now.json"
    check_fails "$WHERE: at rest, a copy of a frame: one that is let in is seen" "^0 of [1-9][0-9]* frames were dropped" all_dropped -eq
}
# all_dropped_as CAUSE -eq|-ge
all_dropped_as() {
    local dropped sent
    dropped=$(grown "$T_SCRATCH/attack.json" "$T_SCRATCH/then.json" "$T_SCRATCH/now.json" "dropped_as(\$at; \"drop_wrong_$1\")")
    sent=$(jq --arg cause "$1" '[.ends[].by[$cause] // 0] | add' "$T_SCRATCH/attack.json")
    echo "$dropped of $sent"
    (( sent > 0 )) && test "$dropped" "$2" "$sent"
}

# Whether everything sent since $T_SCRATCH/before.json reached the nodes, or was dropped before them.
all_came() {
    snapshot "$T_SCRATCH/after.json"
    local came sent
    came=$(grown "$REPORTS" "$T_SCRATCH/before.json" "$T_SCRATCH/after.json" "strange(\$at)")
    sent=$(sent "$REPORTS")
    # Counters of different nodes are not simultaneous: allow for a few keep-alives.
    (( came + 100 >= sent )) || { echo "$came of $sent frames came"; return 1; }
}

# under_attack NAME VERDICT COMMAND...: COMMAND attacks while all NICs write to each other; then checks the account with
# VERDICT, exactly_once or honest.
under_attack() {
    local name=$1 verdict=$2 runner file=$T_SCRATCH/run.json
    shift 2
    REPORTS=$T_SCRATCH/reports.json
    : >"$REPORTS"
    snapshot "$T_SCRATCH/before.json"
    # When stopped, it waits for everything in flight, or for its timeout: let it.
    timeout --foreground -k 60 400 "$PHITWIRE_BIN_DIR/phitwire-msgrate" --lab "$LAB" --json --seconds 300 >"$file" 2>"$file.err" &
    runner=$!
    check "$WHERE: $name: the run underneath has started" phw_until 20 frames_flow
    "$@"
    kill -TERM "$runner" 2>/dev/null || true
    settled "$runner"
    if "$verdict" "$file" >/dev/null; then
        ok "$WHERE: $name: ${verdict//_/ } ($(jq -r '"\(.acknowledged) messages, \(.timed_out) timed out, slowest \(.latency_us.max / 1000 | floor) ms"' "$file"))"
    else
        not_ok "$WHERE: $name: ${verdict//_/ }" "the run underneath ended with status $SETTLED"
        { "$verdict" "$file" || true; } 2>&1 | tail -n 20 | cut -c 1-600 | detail
    fi
    # Canary: if the stranger reached no node, everything above would pass.
    check "$WHERE: $name: every frame of the stranger's came" phw_until 5 all_came
}
frames_flow() {
    snapshot "$T_SCRATCH/flow.json"
    jq -e --slurpfile before "$T_SCRATCH/before.json" \
        '.stats.nic0["io.frames_received"] > $before[0].stats.nic0["io.frames_received"] + 1000' "$T_SCRATCH/flow.json" >/dev/null
}

late() {
    attack "copies late by 10 ms, 50 ms, 0.3 s and 1 s" \
        --form copies --delay-ms 10,50,300,1000 --share 50 --times 40 --count $(( 4 * PER_END ))
    attack "a record of 0.2 s, played 2 s later at full speed over and over" \
        --form replay --count "$PER_END" --record-ms 200 --delay-ms 2000
}

wrong() {
    refused "frames of other epochs, links, fabrics and ends" --form foreign --count "$PER_END" --rate "$RATE"
    refused "frames cut off anywhere" --form truncated --count "$PER_END" --rate "$RATE"
    refused "frames that are too long" --form oversize --count "$PER_END" --rate "$RATE"
    refused "random frames" --form random --count "$PER_END" --rate "$RATE"
}

forged() {
    attack "frames with flipped bits" --form flipped --count "$PER_END" --rate "$RATE"
    attack "frames with fewer lanes in a right header" --form lanes --count "$PER_END" --rate "$RATE"
    attack "training frames of incarnations that never were" --form restarted --count "$PER_END" --rate "$RATE"
}

# Frames of this very session that only the peer could send can end the session. That is allowed, but every loss is
# reported, and the link comes back: by itself, or on command if it was led to believe that the other end has no lane
# left.
enders() {
    attack "training frames that ask for fewer lanes" --form asks --count 2000 --rate 1000
    check "$WHERE: all lanes come back" phw_until 20 wholly_up
    attack "training frames of an end that is disabled" --form disabled --count 2000 --rate 1000
    check "$WHERE: all links come back" phw_until 20 wholly_up
    # Everything in flight is lost, and times out before the next attack.
    check "$WHERE: messages flow again" flow_again
    attack "training frames of an end without lanes" --form dead --count 100 --rate 1000
}
flow_again() {
    local nic
    for nic in $(phw_plan_nodes "$LAB" | grep '^nic'); do
        goes_on "$nic" || { t_ctl "$nic" stats; cat -- "$T_SCRATCH/run.json.err"; echo "messages of $nic do not flow"; return 1; }
    done
}
# Takes up every attacked link from both of its ends.
revive() {
    local which a port_a b port_b
    for which in "${KINDS[@]}"; do
        IFS=$'\t' read -r _ a port_a b port_b _ < <(phw_find_links "$LAB" "$which")
        t_ctl "$a" fault link-up "$port_a" && t_ctl "$b" fault link-up "$port_b" || return 1
    done
}

# ---- Before and after ---------------------------------------------------------------------------

status_json() { "$PHW_SCRIPTS/status.sh" --lab "$LAB" --json; }
processes() { status_json | jq -c '[.[0].nodes[] | {name, pid, state}]'; }
wholly_up() {
    status_json | jq -e 'all(.[0].links[]; .up and all(.a, .b; .status.tx_lanes == 3 and .status.rx_lanes == 3))' >/dev/null \
        || { status_json | jq -c '.[0].links[] | {id, up, lanes: [(.a, .b).status | .tx_lanes, .rx_lanes]}'; return 1; }
}
link_ids() {
    local which
    for which; do phw_find_links "$LAB" "$which" | head -n 1 | cut -f 1; done | paste -sd ,
}

# lab MACHINE LINK-KIND
lab() {
    local machine=$1 kind=$2 topology=$T_SCRATCH/$1.toml before biggest begin
    begin=$(phw_ms)
    WHERE="$machine, $kind"
    "$machine" "$T_SCRATCH/generated.toml"
    t_settings "$T_SCRATCH/generated.toml" "$topology" "${TIMEOUTS[@]}" "${SETTINGS[@]}"
    t_up "attacks_${machine:0:1}${kind:0:1}" "$topology" --link "$kind"
    LINKS=$(link_ids "${KINDS[@]}")
    before=$(processes)
    at_rest
    # A wedged link reports that it is up, but passes nothing.
    under_attack "late frames" exactly_once late
    rate_case "$WHERE: then a clean run" 1000 --seconds 0.5
    under_attack "frames that are no frames" exactly_once wrong
    under_attack "forged frames" exactly_once forged
    rate_case "$WHERE: then a clean run" 1000 --seconds 0.5
    check "$WHERE: every link is up with all its lanes" phw_until 10 wholly_up
    under_attack "frames that end a session" honest enders
    check_fails "$WHERE: a link without lanes is reported" "NOT FULLY UP" "$PHW_SCRIPTS/status.sh" --lab "$LAB"
    check "$WHERE: links without lanes are brought up again" revive
    check "$WHERE: then every link is up with all its lanes" phw_until 20 wholly_up
    rate_case "$WHERE: then a clean run" 1000 --seconds 0.5
    check "$WHERE: no process has died or been replaced" test "$(processes)" = "$before"
    biggest=$(status_json | jq '[.[0].nodes[].rss_kib] | max')
    check "$WHERE: no process is larger than $MOST_KIB KiB ($biggest KiB)" test "$biggest" -le "$MOST_KIB"
    "$PHW_SCRIPTS/down.sh" --lab "$LAB"
    printf '# %s took %s ms\n' "$WHERE" $(( $(phw_ms) - begin ))
}

labs=("$@")
(( ${#labs[@]} )) || labs=(blackwidow-ethernet aries-udp)
[[ ${PHITWIRE_LONG:-0} == 0 || $# != 0 ]] || labs+=(blackwidow-udp aries-ethernet)
for which in "${labs[@]}"; do
    lab "${which%-*}" "${which#*-}"
done
