#!/usr/bin/env bash
# Native loss: nftables drops 10 % of the frames on every link at full speed, for both kinds of links; nothing is lost.
# 2 s each; PHITWIRE_LONG=1 makes it 60 s.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces
t_has_nft || skip_all "nftables cannot drop frames here"

seconds=2
[[ ${PHITWIRE_LONG:-0} == 0 ]] || seconds=60
export T_RATE_TIMEOUT=$(( seconds + 60 ))
for kind in udp ethernet; do
    t_up "loss_$kind" quickstart --link "$kind"
    check "$kind: 10 % loss on every link" t_impair --nft all loss 10%
    rate_case "$kind: $seconds s under 10 % loss, exactly once" 1000 --seconds "$seconds"
    # If bursts were dropped whole, a few drops would count for many frames, and the share would be far from 10 %.
    share=$(nft_lost_share)
    check "$kind: single frames were lost, about 10 % (was $share per mille)" between "$share" 80 120
    check "$kind: packets were resent" bash -c "(( $(field "$T_SCRATCH/rate.json" retransmitted_packets) > 0 ))"
    check "$kind: the links are cleared" t_impair all clear
    rate_case "$kind: without loss again" 1000 --seconds 0.3
    "$PHW_SCRIPTS/down.sh" --lab "$LAB"
done
