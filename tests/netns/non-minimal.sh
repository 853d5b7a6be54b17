#!/usr/bin/env bash
# Live routers choose non-minimal routes as often as in virtual time: a dragonfly of processes, held at two loads (three
# with --long) of uniform and of group-adversarial traffic, next to `phitwire sim` with the same routers, links and
# messages.
#
# A router decides based on queues, and queues follow from rates: links and routers must be slowed down alike, hence a
# paced clock. At one emulated nanosecond in 200 us a busy router wakes up 4,375 times a second, and the lab takes 0.4
# to 0.9 of a core; at 100 us it takes up to 1.3. Each run checks whether the lab keeps up, and fails if not. One
# difference remains: the wires of a lab take no emulated time, so that its latencies are shorter.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

# Real nanoseconds per emulated one; a cycle is 8/7 ns.
DILATION=200000
# Permitted relative deviation of the live share from that of virtual time; or three standard errors of a share of that
# many decisions, if that is more.
BAND=0.2
# Fewer decisions would widen the band until any share is within it.
LEAST=1500
# A put of 64 bytes is one packet of 14 flits, its response one flit; full load of a NIC is 2.56 flits per cycle. One
# message per second and source is therefore a load of 15 * DILATION * 8/7 ns / 2.56 s = 0.0012 / 0.9.
RATES=(14 28 42)
LOADS=0.01875..0.05625:0.01875
WINDOW=1024
SOURCES=24
SECONDS_EACH=4

# The smallest dragonfly with a third group for non-minimal paths, a choice of green links, and eight sources for the
# link between two groups. They send after random gaps, like those of virtual time. Decisions come in bunches; with
# --long they are taken over three runs.
"$PHITWIRE_BIN_DIR/phitwire" topology generate dragonfly --groups 3 --chassis 1 --blades 2 --nics 4 --global-links 1 \
    >"$T_SCRATCH/generated.toml"
t_settings "$T_SCRATCH/generated.toml" "$T_SCRATCH/dragonfly.toml" 'profile="paper"' "outstanding=$WINDOW"

# virtual PATTERN: writes the three loads in virtual time, an array, to PATTERN.virtual. Single-threaded: threads would
# wait for each other on a busy machine.
virtual() {
    "$PHITWIRE_BIN_DIR/phitwire" sim "$T_SCRATCH/dragonfly.toml" --links encoded --grain packet --request-reply --message-bytes 64 \
        --traffic "$1" --load "$LOADS" --warmup 5000 --measure 100000 --threads 1 --json >"$T_SCRATCH/$1.virtual"
}

# decided: decisions of the lab's routers so far. As in virtual time, a packet that a later router diverted or returned
# counts as its final kind.
decided() {
    t_ctl all stats --json | jq -c '[.[]] | def sum(field): map(field // 0) | add;
        (sum(.diverted_decisions) - sum(.returned_decisions)) as $went
        | {minimal: (sum(.minimal_decisions) - $went),
            other: (sum(.non_minimal_decisions) + sum(.fallback_up_decisions) + $went)}'
}

# posted: the smallest number of puts that a NIC has started so far.
posted() { t_ctl all stats --json | jq '[to_entries[] | select(.key | startswith("nic")) | .value.puts_posted] | min'; }
have_posted() { (( $(posted) >= $1 )); }

# live FILE PATTERN RATE SECONDS [options]: runs the lab at that rate and writes to FILE.share what its routers decided
# in at least SECONDS after all sources had started: before its first message each source announces the run to all its
# targets, in one burst. The run lasts until the decisions have been read, however long a busy machine takes for that.
live() {
    local start runner
    start=$(posted)
    long_rate "$1" --op put --size 64 --window "$WINDOW" --routing adaptive0 --pattern "$2" --rate "$3" --gaps random "${@:5}" &
    runner=$!
    phw_until 30 have_posted $(( start + 1 )) || true
    decided >"$1.from"
    sleep "$4"
    decided >"$1.to"
    stop_job "$runner"
    jq -s '{minimal: (.[1].minimal - .[0].minimal), other: (.[1].other - .[0].other)}' "$1.from" "$1.to" >"$1.share"
}

# live_in_time FILE PATTERN INDEX [options]: the same at a rate of RATES. Other load on the machine may delay a lab that
# otherwise keeps up: three tries.
live_in_time() {
    local try
    for try in 1 2 3; do
        live "$1" "$2" "${RATES[$3]}" "$SECONDS_EACH" "${@:4}"
        ! keeps_up "$1" "$T_SCRATCH/$2.virtual" "$3" >/dev/null 2>&1 || break
        (( try == 3 )) || printf '# the lab did not keep up in try %s\n' "$try"
    done
}

# keeps_up LIVE VIRTUAL INDEX: everything arrived, was sent at the requested rate (gaps are random, so up to three
# standard errors less), the last message was answered soon after, and half of them at least as soon as in virtual time.
# The wires of the lab take almost none of its time, so that processes that keep up are faster.
keeps_up() {
    exactly_once "$1" 100 && jq -e --argjson sources "$SOURCES" --slurpfile virtual "$2" --argjson at "$3" --argjson dilation "$DILATION" '
        (.latency_us.p50 * 1000 / $dilation * 7 / 8) as $p50 | $virtual[0][$at].latency_cycles.p50 as $most
        | (.offered_per_source * .seconds / (.seconds - .drain_seconds)) as $sent
        | (3 * (.rate / (.seconds * $sources) | sqrt)) as $chance
        | if .not_offered <= 0.01 * .sent and $sent >= 0.98 * .rate - $chance and .drain_seconds < 0.12 * .seconds and $p50 < $most
        then true else
            "rate \(.rate): \($sent) sent, \(.not_offered) not, \(.drain_seconds) s until all was answered, " +
            "median \($p50) of \($most) cycles\n" | halt_error end' "$1"
}

# near SHARE VIRTUAL INDEX: the live share, of enough decisions, is within the band around that of virtual time.
near() {
    jq -e --slurpfile virtual "$2" --argjson at "$3" --argjson relative "$BAND" --argjson least "$LEAST" '
        $virtual[0][$at].non_minimal_share as $wanted | (.minimal + .other) as $count | (.other / $count) as $share
        | ([$relative * $wanted, 3 * ($wanted * (1 - $wanted) / $count | sqrt)] | max) as $band
        | if $count < $least then "only \($count) decisions\n" | halt_error
        elif ($share - $wanted | fabs) <= $band then true else
            "a share of \($share) in \($count) is not within \($band) of \($wanted)\n" | halt_error end' "$1"
}

# as_in_virtual_time PATTERN RUNS...: runs the lab at all rates of a pattern, RUNS runs at each; writes the decisions of
# all of them, and the slowest median, to PATTERN.INDEX.
as_in_virtual_time() {
    local runs=("${@:2}") pattern=$1 virtual=$T_SCRATCH/$1.virtual at run file figures
    check "$pattern: virtual time" virtual "$pattern"
    for at in "${!RATES[@]}"; do
        (( runs[at] )) || continue
        file=$T_SCRATCH/$pattern.$at
        for (( run = 1; run <= runs[at]; run++ )); do
            live_in_time "$file.$run" "$pattern" "$at" --seed "$run"
            check "$pattern at ${RATES[at]} messages per second, run $run: the lab keeps up" keeps_up "$file.$run" "$virtual" "$at"
        done
        jq -s '{minimal: (map(.minimal) | add), other: (map(.other) | add)}' "$file".[1-9].share >"$file.share"
        jq -s '{latency_us: {p50: map(.latency_us.p50) | max}}' "$file".[1-9] >"$file"
        figures=$(jq -r --slurpfile virtual "$virtual" --slurpfile share "$file.share" --argjson at "$at" --argjson dilation "$DILATION" '
            ($share[0] | .other / (.other + .minimal) * 1e4 | round / 1e4) as $live
            | "live \($live), virtual \($virtual[0][$at].non_minimal_share * 1e4 | round / 1e4),",
            "median \(.latency_us.p50 * 1000 / $dilation * 7 / 8 | round) and \($virtual[0][$at].latency_cycles.p50) cycles"
            ' "$file" | paste -sd ' ')
        check "$pattern at ${RATES[at]}: $figures" near "$file.share" "$virtual" "$at"
    done
}

# one_packet_each: each put was one packet of 14 flits, with a response of one flit; the announcements of runs were
# packets of nine flits, with responses of one.
one_packet_each() {
    t_ctl all stats --json | jq -e '
        [to_entries[] | select(.key | startswith("nic")) | .value] | def sum(field): map(field) | add;
        sum(.puts_posted) as $puts | sum(.controls_posted) as $controls
        | sum(."port0.tx_packets") as $packets | sum(."port0.tx_flits") as $flits
        | if $puts > 1000 and $packets == 2 * ($puts + $controls) and $flits == 15 * $puts + 10 * $controls then true else
            "\($puts) puts, \($controls) announcements, \($packets) packets, \($flits) flits\n" | halt_error end'
}

t_up non_minimal "$T_SCRATCH/dragonfly.toml" --grain packet --clock "paced:$DILATION"
# --long adds the load in the middle.
runs=(1 0 1)
! t_long || runs=(3 3 3)
as_in_virtual_time uniform "${runs[@]}"
as_in_virtual_time group-adversarial "${runs[@]}"
check "each message was one packet, and so was each response" one_packet_each

# What the checks can distinguish.
check_fails "the wrong load does not pass for the right one" 'is not within' \
    near "$T_SCRATCH/group-adversarial.2.share" "$T_SCRATCH/group-adversarial.virtual" 0
check_fails "nor does the wrong traffic" 'is not within' \
    near "$T_SCRATCH/group-adversarial.0.share" "$T_SCRATCH/uniform.virtual" 0
check_fails "nor a network where nothing goes round" 'is not within' \
    near <(jq '{minimal: (.minimal + .other), other: 0}' "$T_SCRATCH/uniform.2.share") "$T_SCRATCH/uniform.virtual" 2
# A bias against minimal paths. The least that the registers offer, 1, moves the share from 0.16 to 0.19 to 0.20, which
# is hardly outside the band; 2 moves it to 0.23 to 0.27, by more than twice the band.
routers=$(t_ctl all stats --json | jq -r 'to_entries[] | select(.value.minimal_decisions != null) | .key')
for router in $routers; do t_ctl "$router" set bias.0.minimal.add 2 >/dev/null; done
live_in_time "$T_SCRATCH/biased" group-adversarial 2
check "with biased decisions the lab keeps up" keeps_up "$T_SCRATCH/biased" "$T_SCRATCH/group-adversarial.virtual" 2
check_fails "nor a decision that is biased by 2 (live $(jq '.other / (.other + .minimal) * 1e4 | round / 1e4' "$T_SCRATCH/biased.share"))" \
    'is not within' near "$T_SCRATCH/biased.share" "$T_SCRATCH/group-adversarial.virtual" 2
live "$T_SCRATCH/over" group-adversarial 120 1
check_fails "a lab that does not keep up is found out" 'rate 120: .* until all was answered' \
    keeps_up "$T_SCRATCH/over" "$T_SCRATCH/group-adversarial.virtual" 2
