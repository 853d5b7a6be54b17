#!/usr/bin/env bash
# What up.sh and the message-rate tool let one choose: link kinds, sizes of frames, ways of I/O, gets, sizes, patterns.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

while read -r options; do
    # shellcheck disable=SC2086  # a list
    t_up "opt${#T_LABS[@]}" r1-4 $options
    rate_case "up.sh $options" 1000 --seconds 1
    check "up.sh $options: it goes down" "$PHW_SCRIPTS/down.sh" --lab "$LAB"
done <<'OPTIONS'
--link udp --mtu 576
--link udp --mtu 9000
--link udp --mtu 65535
--link udp --io plain
--link udp --io uring
--link ethernet --mtu 576
--link ethernet --mtu 9000
OPTIONS

t_up opt_rate r1-4-slices
for options in '--op get' '--op get --size 32' '--size 1' '--size 32' '--pattern hotspot' '--pattern tornado --window 1' \
    '--from nic0 --to nic3 --count 5000'; do
    # shellcheck disable=SC2086  # a list
    rate_case "phitwire-msgrate $options" 50 --seconds 1 $options
done
check "--count is kept to" test "$(field "$T_SCRATCH/rate.json" sent)" = 5000
