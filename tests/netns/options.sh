#!/usr/bin/env bash
# Options of up.sh and the message-rate tool: kinds of links, frame sizes, I/O engines, gets, sizes, patterns.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

# The I/O engine of all processes of $LAB.
engines() { t_ctl all info --json | jq -r '[.[].engine] | unique | join(" ")'; }

# How often processes of $LAB have polled for frames instead of sleeping.
spins() { t_ctl all stats --json | jq '[.. | objects | ."loop.spins"? // empty] | add // 0'; }

# looks OPTIONS: whether processes of $LAB should poll: if requested, or if at most two of them share a core.
looks() {
    case $1 in
        *'--spin 0'*) return 1 ;;
        *--spin*) return 0 ;;
        *) (( $(phw_plan_nodes "$LAB" | wc -l) <= 2 * $(nproc) )) ;;
    esac
}

# Frame sizes over both kinds of links and I/O engines, combined in four labs; --long has a lab for each.
labs() {
    if t_long; then
        printf '%s\n' '--link udp --mtu 576' '--link udp --mtu 9000' '--link udp --mtu 65535' '--link udp --io plain --spin 20' \
            '--link udp --io uring --spin 100' '--link udp --io uring --spin 0' '--link ethernet --mtu 576' '--link ethernet --mtu 9000'
    else
        printf '%s\n' '--link udp --mtu 576 --io plain --spin 20' '--link udp --mtu 65535 --io uring --spin 0' '--link ethernet --mtu 576' \
            '--link ethernet --mtu 9000 --io uring --spin 100'
    fi
}

while read -r options; do
    # shellcheck disable=SC2086  # a list
    t_up "opt${#T_LABS[@]}" r1-4 $options
    case $options in
        *plain*) check "up.sh $options: plain system calls carry the frames" test "$(engines)" = plain ;;
        *uring*)
            # Each process logs what the kernel refused.
            if refusal=$(grep -ohE 'reason=.*io_uring.*|io_uring is unavailable.*' "$(phw_lab_dir "$LAB")"/*.log | head -n 1); then
                skip "up.sh $options: io_uring carries the frames" "the kernel refuses it: $refusal"
            else
                check "up.sh $options: io_uring carries the frames" test "$(engines)" = uring
            fi ;;
    esac
    looked=$(spins)
    rate_case "up.sh $options" 1000 --seconds 0.3
    if looks "$options"; then
        check "up.sh $options: processes look before they sleep" test "$(spins)" -gt "$looked"
    else
        check "up.sh $options: no process looks before it sleeps" test "$(spins)" = 0
    fi
    check "up.sh $options: it goes down" "$PHW_SCRIPTS/down.sh" --lab "$LAB"
done < <(labs)

t_up opt_rate r1-4-slices
for options in '--op get' '--op get --size 32' '--size 1' '--size 32' '--pattern hotspot' '--pattern tornado --window 1'; do
    # shellcheck disable=SC2086  # a list
    rate_case "phitwire-msgrate $options" 50 --seconds 0.3 $options
done
rate_case "phitwire-msgrate --from nic0 --to nic3 --count 5000" 5000 --from nic0 --to nic3 --count 5000
check "--count is kept to" test "$(field "$T_SCRATCH/rate.json" sent)" = 5000

# refused NAME PATTERN OPTIONS...: the tool measures nothing, prints PATTERN and ends with 2.
refused() {
    local name=$1 pattern=$2 status=0
    shift 2
    t_rate "$T_SCRATCH/refused.json" --seconds 0.3 "$@" || status=$?
    check "$name" test "$status" = 2
    check "and reports it" grep -E -- "$pattern" "$T_SCRATCH/refused.json.err"
}
refused "a target listed twice is rejected" "nic1. is listed twice" --from nic0 --to nic1 --to nic1
refused "a source listed twice is rejected" "nic0. is listed twice" --from nic0,nic0 --to nic1
refused "a run without sources is an error" "nothing was sent" --from nic0 --to nic0
rate_case "and the lab measures as before" 50 --seconds 0.3 --from nic0 --to nic1
