#!/usr/bin/env bash
# impair.sh [--lab NAME] LINK clear | show | NETEM-ARGUMENTS...      impairs links, both directions alike
# impair.sh [--lab NAME] --nft LINK loss P%                          the same without netem: loss only
#
#   impair.sh all delay 2ms 1ms loss 5%       impair.sh router0:p33 loss gemodel 1% 20%
#   impair.sh router0-router1 corrupt 1%      impair.sh all clear
#
# LINK is all, a link's id, NODE:PORT, NODE-NODE (every link between the two) or NODE (every link of it); what
# follows it is what `tc qdisc ... netem` takes, as it is, and replaces what the link had. Status 4 where the
# kernel has no netem.
#
# Loss acts on single frames. A burst that a process hands over in one piece (UDP segmentation offload) passes
# a qdisc in one piece, and netem would lose all of it: so on UDP links a token bucket, far faster than the
# link, stands before netem and cuts bursts into frames. For nftables the sending interface's offload is
# turned off instead; clear turns it on again.
# shellcheck source=lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

lab=$(phw_default_lab) nft=0
while (( $# )); do
    case $1 in
        --lab) (( $# > 1 )) || phw_bad_call "--lab wants a name"; lab=$2; shift ;;
        --nft) nft=1 ;;
        -h|--help) phw_usage; exit 0 ;;
        -*) phw_bad_call "unknown option $1 (--help lists them)" ;;
        *) break ;;
    esac
    shift
done
(( $# >= 2 )) || phw_bad_call "wants a link and what to do with it (--help shows examples)"
which=$1
shift

inside() { nsenter "--net=/run/netns/$1" -- "${@:2}"; }

# ---- One end of a link: namespace, interface ----------------------------------------------------

clear_end() {
    tc -n "$1" qdisc del dev "$2" root 2>/dev/null || true
    if command -v nft >/dev/null && inside "$1" nft delete table netdev "phw_$2" 2>/dev/null; then
        inside "$1" ethtool -K "$2" gso on tx-udp-segmentation on
    fi
}

netem_end() {
    local netns=$1 interface=$2 parent=(root)
    shift 2
    if [[ $PHW_LAB_LINK == udp ]]; then
        tc -n "$netns" qdisc add dev "$interface" root handle 1: \
            tbf rate 32gbit burst "$(( PHW_LAB_MTU + 18 ))" limit 1g
        parent=(parent 1:)
    fi
    tc -n "$netns" qdisc add dev "$interface" "${parent[@]}" netem "$@"
}

# Frames are dropped where they come in; the sender's offload is off, so that they come in one by one.
nft_end() {
    local netns=$1 interface=$2 which=''
    (( $3 == 1000000 )) || which="numgen random mod 1000000 < $3"
    inside "$netns" ethtool -K "$interface" gso off tx-udp-segmentation off
    inside "$netns" nft -f - <<NFT
table netdev phw_$interface {
    chain impair {
        type filter hook ingress device "$interface" priority 0
        $which counter drop
    }
}
NFT
}

show_end() {
    local state
    state=$(tc -n "$1" -s qdisc show dev "$2" | awk '
        $2 == "netem" {
            sub(/^.* limit [0-9]+ ?/, ""); what = $0
            getline; gsub(/[(,]/, "")
            printf "%s (%d frames passed, %d lost)\n", what, $4, $7
        }')
    if [[ -z $state ]] && command -v nft >/dev/null; then
        state=$(inside "$1" nft list table netdev "phw_$2" 2>/dev/null | awk '
            / drop$/ {
                share = $1 == "numgen" ? $6 / 10000 : 100
                sub(/^.*packets /, "")
                printf "loss %g%% by nftables (%d frames lost)\n", share, $1
            }') || true
    fi
    printf '%s\n' "${state:-clear}"
}

# ---- All that are named -------------------------------------------------------------------------

each_end() {
    local a b if_a if_b
    while IFS=$'\t' read -r _ a _ b _ if_a if_b _; do
        "$1" "$(phw_netns "$lab" "$a")" "$if_a" "${@:2}" && "$1" "$(phw_netns "$lab" "$b")" "$if_b" "${@:2}" \
            || return 1
    done <<<"$links"
}

show_all() {
    local id a b if_a if_b
    while IFS=$'\t' read -r id a _ b _ if_a if_b _; do
        printf '%s\t%s:%s\t%s\n' "$id" "$a" "$if_a" "$(show_end "$(phw_netns "$lab" "$a")" "$if_a")" \
            "$id" "$b" "$if_b" "$(show_end "$(phw_netns "$lab" "$b")" "$if_b")"
    done <<<"$links"
}

has_netem() {
    local scratch=phwprobe-$$ status=0
    ip netns add "$scratch"
    tc -n "$scratch" qdisc add dev lo root netem loss 1% 2>/dev/null || status=1
    ip netns del "$scratch"
    return "$status"
}

per_million() {
    [[ $1 == loss && $2 =~ ^([0-9]+)(\.([0-9]{1,4}))?%$ && $# == 2 ]] \
        || phw_bad_call "--nft can do 'loss P%' only (up to four decimals), not '$*'"
    local decimals=${BASH_REMATCH[3]}0000
    local value=$(( 10#${BASH_REMATCH[1]}${decimals:0:4} ))
    (( value <= 1000000 )) || phw_bad_call "more than 100 %: $2"
    printf '%s\n' "$value"
}

phw_check_lab "$lab"
phw_open_lab "$lab"
[[ $PHW_LAB_MODE == netns ]] || phw_die "lab '$lab' runs over loopback ports: nothing there can be impaired"
phw_need_root
phw_need ip:iproute2 tc:iproute2 nsenter:util-linux ethtool:ethtool
links=$(phw_find_links "$lab" "$which")
[[ -n $links ]] || phw_die "lab '$lab' has no link '$which' (status.sh --lab $lab lists them)"

case $1 in
    show)
        show_all | column -t -s $'\t'
        exit 0 ;;
    clear)
        (( $# == 1 )) || phw_bad_call "clear takes nothing after it"
        each_end clear_end
        exit 0 ;;
esac

if (( nft )); then
    lost=$(per_million "$@")
    phw_need nft:nftables
    each_end clear_end
    each_end nft_end "$lost" || { each_end clear_end; phw_die "nftables refused it"; }
    exit 0
fi

each_end clear_end
if ! error=$(each_end netem_end "$@" 2>&1); then
    each_end clear_end
    if ! has_netem; then
        phw_note "this kernel has no netem. Two ways out:"
        phw_note "  with-netem.sh COMMAND...    brings up the lab and impairs it in user-mode Linux, which has it"
        phw_note "  impair.sh --nft $which loss P%    loses frames by nftables; plain loss only"
        phw_skip "no sch_netem in kernel $(uname -r)"
    fi
    phw_note "tc refused 'netem $*':"
    printf '%s\n' "$error" >&2
    exit 1
fi
