#!/usr/bin/env bash
# Effects of distance and of lane rates under a paced clock, live and in virtual time: round trips of single messages to
# a processor of the same router, to one of the next router, and to the latter over a link with lanes a fifth as fast.
# Then, free-running, phits are passed up as they arrive: packets already under way when their check fails are poisoned.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

# A cycle takes 0.5 ms, so the wake-up latency of a busy machine is small compared with the 88 cycles of the shortest
# round trip.
DILATION=400000
# Permitted deviation from the ratio in virtual time, in per cent, in either direction.
BAND=10

t_topology "$T_SCRATCH/even.toml" paced "dilation=$DILATION"
sed 's/b = "r1-1:32" }/b = "r1-1:32", rate = 1.25 }/' "$T_SCRATCH/even.toml" >"$T_SCRATCH/slow.toml"

# virtual NAME: writes the round trips in cycles, near and far, over wires as short as the lab's, to NAME.virtual. Half
# of the messages of this pattern stay at their router; at this low load none waits for another.
virtual() {
    "$PHITWIRE_BIN_DIR/phitwire" sim "$T_SCRATCH/$1.toml" --links encoded --link-cycles 1 --request-reply --message-bytes 32 \
        --traffic neighbour --load 0.002 --warmup 2000 --measure 100000 --threads 1 --json \
        | jq '.latency_cycles | {near: .min, far: .p50}' >"$T_SCRATCH/$1.virtual"
}

# live NAME: the same for the lab, in us, to NAME.live.
live() {
    local to
    for to in near:nic1 far:nic3; do
        T_RATE_TIMEOUT=60 t_rate "$T_SCRATCH/${to%:*}" --from nic0 --to "${to#*:}" --op put --size 32 --window 1 --seconds 1 || return 1
        exactly_once "$T_SCRATCH/${to%:*}" 5 || return 1
    done
    jq -n --slurpfile near "$T_SCRATCH/near" --slurpfile far "$T_SCRATCH/far" \
        '{near: $near[0].latency_us.p50, far: $far[0].latency_us.p50}' >"$T_SCRATCH/$1.live"
}

# agrees LIVE VIRTUAL: the ratio of far to near matches that of virtual time.
agrees() {
    jq -e --slurpfile virtual "$T_SCRATCH/$2.virtual" --argjson band "$BAND" '
        (.far / .near) as $ratio | ($virtual[0].far / $virtual[0].near) as $wanted
        | if ($ratio / $wanted - 1 | fabs) * 100 <= $band then true else
            "far takes \($ratio) times near, not \($wanted)\n" | halt_error end' "$T_SCRATCH/$1.live"
}

for name in even slow; do
    check "$name: virtual time" virtual "$name"
    t_up "paced_$name" "$T_SCRATCH/$name.toml"
    # Other load on the machine may delay the lab: three tries.
    for try in 1 2 3; do
        live "$name" >"$T_SCRATCH/why" 2>&1 || true
        ! agrees "$name" "$name" >/dev/null 2>&1 || break
        (( try == 3 )) || printf '# try %s did not match the ratio of virtual time\n' "$try"
    done
    check "$name: $(jq -c . "$T_SCRATCH/$name.live") us, in virtual time $(jq -c . "$T_SCRATCH/$name.virtual") cycles" \
        agrees "$name" "$name"
    "$PHW_SCRIPTS/down.sh" --lab "$LAB" 2>/dev/null
done
check_fails "a link that is not slow does not pass for a slow one" 'far takes .* not' agrees even slow
check_fails "nor vice versa" 'far takes .* not' agrees slow even

# Noise on one lane makes checks fail; under a free-running clock frames hold whole packets.
t_up phits paced --clock free --cut-through phits
t_ctl r1-0 fault lane-noise 32 1 1/2000 >/dev/null
rate_case "phits handed up as they come: noise loses no message" 1000 --from nic0 --from nic1 --to nic2 --to nic3 --op put --size 32 --window 64 --seconds 1
check "packets that had begun to flow were let go" test "$(counter_sum '\.rx_let_go_packets$')" -gt 0
