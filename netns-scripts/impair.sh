#!/usr/bin/env bash
# impair.sh [--lab NAME] LINK clear | show | NETEM-ARGUMENTS...      impairs links, both directions alike
# impair.sh [--lab NAME] --nft LINK loss P%                          the same without netem: loss only
# impair.sh --kernel                                                 says what there is here: netem, nft, a line each
#
#   impair.sh all delay 2ms 1ms loss 5%       impair.sh router0:p33 loss gemodel 1% 20%
#   impair.sh router0-router1 corrupt 1%      impair.sh all clear
#
# LINK is all, a link's id, NODE:PORT, NODE-NODE (every link between the two) or NODE (every link of it); what
# follows it is what `tc qdisc ... netem` takes, as it is, and replaces what the link had. Status 4 where the
# kernel has no netem; with --nft, where its nftables cannot lose frames at random.
#
# Loss acts on single frames. A burst that a process hands over in one piece (UDP segmentation offload) would pass
# a qdisc in one piece, and netem would lose all of it: processes notice netem on their interfaces and send frames
# one by one. Of nftables they know nothing: there the sending interface's offload is turned off, and on by clear.
#
# An interface that somebody has deleted is named and left out; status 1 when none is left.
# shellcheck source=lib.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/lib.sh"

lab=$(phw_default_lab) nft=0 kernel=0
while (( $# )); do
    case $1 in
        --lab) (( $# > 1 )) || phw_bad_call "--lab wants a name"; lab=$2; shift ;;
        --nft) nft=1 ;;
        --kernel) kernel=1 ;;
        -h|--help) phw_usage; exit 0 ;;
        -*) phw_bad_call "unknown option $1 (--help lists them)" ;;
        *) break ;;
    esac
    shift
done
if (( kernel )); then
    (( $# == 0 )) || phw_bad_call "--kernel takes nothing else"
    ! phw_has_netem || echo netem
    ! phw_has_nft_loss || echo nft
    exit 0
fi
(( $# >= 2 )) || phw_bad_call "wants a link and what to do with it (--help shows examples)"
which=$1
shift

inside() { nsenter "--net=/run/netns/$1" -- "${@:2}"; }

# ---- The ends of the named links ----------------------------------------------------------------
# As few processes as can be: each takes a tenth of a second of user-mode Linux.

# Interfaces by namespace: one call of tc does all of a namespace.
declare -A ends=()
# Interfaces that are not there any more, as NODE:INTERFACE.
declare -A gone=()

# find_ends [LOOK]: with LOOK, what has been deleted is left out, and named in `gone`. It costs as much as all the rest, so that
# commands are tried without it first.
find_ends() {
    local a b if_a if_b look=${1:-}
    local -A there=()
    ends=() gone=()
    while IFS=$'\t' read -r _ a _ b _ if_a if_b _; do
        find_end "$a" "$if_a"
        find_end "$b" "$if_b"
    done <<<"$links"
}

find_end() {
    local netns
    netns=phw-$lab-$1
    if [[ -n $look && -z ${there[$netns]:-} ]]; then
        # A namespace that has been deleted has no interfaces.
        there[$netns]=$(ip -n "$netns" -o link show 2>/dev/null) || there[$netns]=none
    fi
    # A line of it is "NUMBER: NAME: ..." or "NUMBER: NAME@PEER: ...".
    if [[ -z $look || $'\n'${there[$netns]} =~ $'\n'[0-9]+:\ "$2"[:@] ]]; then
        ends[$netns]+=" $2"
    else
        gone[$1:$2]=1
    fi
}

# Looks which ends are there, and says which are not.
look() {
    find_ends look
    (( ${#gone[@]} )) || return 0
    (( ${#ends[@]} )) || phw_die "deleted: ${!gone[*]}; nothing of '$which' is left"
    phw_note "left out, for it has been deleted: ${!gone[*]}"
}

# each_end COMMANDS: runs tc in each namespace, with COMMANDS for every interface: its name stands for DEV.
each_end() {
    local netns interface commands
    for netns in "${!ends[@]}"; do
        commands=''
        for interface in ${ends[$netns]}; do
            commands+=${1//DEV/$interface}$'\n'
        done
        tc -n "$netns" -batch - <<<"$commands" || return 1
    done
}

# An interface without a qdisc of its own has none to delete or to replace wholly: it gets a plain one first.
plain=$'qdisc replace dev DEV root handle 1: pfifo\n'

clear_ends() {
    each_end "${plain}qdisc del dev DEV root" || return 1
    clear_nft
}

clear_nft() {
    local netns interface
    for netns in "${!ends[@]}"; do
        [[ -e $nft_mark$netns ]] || continue
        for interface in ${ends[$netns]}; do
            inside "$netns" nft delete table netdev "phw_$interface" 2>/dev/null || continue
            inside "$netns" ethtool -K "$interface" gso on tx-udp-segmentation on
        done
    done
}

# Frames are dropped where they come in; the sender's offload is off, so that they come in one by one.
nft_ends() {
    local netns interface which=''
    (( $1 == 1000000 )) || which="numgen random mod 1000000 < $1"
    for netns in "${!ends[@]}"; do
        touch -- "$nft_mark$netns"
        for interface in ${ends[$netns]}; do
            inside "$netns" ethtool -K "$interface" gso off tx-udp-segmentation off
            inside "$netns" nft -f - <<NFT || return 1
table netdev phw_$interface {
    chain impair {
        type filter hook ingress device "$interface" priority 0
        $which counter drop
    }
}
NFT
        done
    done
}

# ---- What they have -----------------------------------------------------------------------------

# "NAMESPACE INTERFACE WHAT" for every end that has an impairment.
states() {
    local netns told
    for netns in "${!ends[@]}"; do
        told=$'\n'$(tc -n "$netns" -s qdisc show)
        printf '%s\n' "${told//$'\n'qdisc /$'\n'$netns qdisc }"
        [[ ! -e $nft_mark$netns ]] || inside "$netns" nft list ruleset 2>/dev/null | sed "s/^table /$netns &/"
    done | awk '
        $2 == "qdisc" && $3 == "netem" {
            netns = $1; sub(/^.* dev /, ""); interface = $1; sub(/^.* limit [0-9]+ ?/, ""); what = $0
            getline; gsub(/[(,]/, "")
            printf "%s %s %s (%d frames passed, %d lost)\n", netns, interface, what, $4, $7
        }
        $2 == "table" { netns = $1; interface = substr($4, 5) }
        / drop$/ {
            share = $1 == "numgen" ? $6 / 10000 : 100
            sub(/^.*packets /, "")
            printf "%s %s loss %g%% by nftables (%d frames lost)\n", netns, interface, share, $1
        }'
}

show_links() {
    local id a b if_a if_b netns interface what
    local -A state=()
    while read -r netns interface what; do
        state[$netns/$interface]=$what
    done < <(states)
    netns=$(phw_netns "$lab" '')
    while IFS=$'\t' read -r id a _ b _ if_a if_b _; do
        [[ -z ${gone[$a:$if_a]:-} ]] || state[$netns$a/$if_a]="gone: the interface has been deleted"
        [[ -z ${gone[$b:$if_b]:-} ]] || state[$netns$b/$if_b]="gone: the interface has been deleted"
        printf '%s\t%s:%s\t%s\n' "$id" "$a" "$if_a" "${state[$netns$a/$if_a]:-clear}" \
            "$id" "$b" "$if_b" "${state[$netns$b/$if_b]:-clear}"
    done <<<"$links"
}

# ---- What is asked ------------------------------------------------------------------------------

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

# Which namespaces have nftables' impairments: clear need not ask all of them.
nft_mark=$(phw_lab_dir "$lab")/nft-
find_ends

case $1 in
    show)
        find_ends look
        show_links | column -t -s $'\t'
        exit 0 ;;
    clear)
        (( $# == 1 )) || phw_bad_call "clear takes nothing after it"
        clear_ends 2>/dev/null || { look; clear_ends; }
        exit 0 ;;
esac

if (( nft )); then
    lost=$(per_million "$@")
    phw_need nft:nftables
    phw_has_nft_loss || phw_skip "the nftables of kernel $(uname -r) cannot lose frames at random"
    look
    clear_ends
    nft_ends "$lost" || { clear_ends; phw_die "nftables refused it"; }
    exit 0
fi

clear_nft
impaired="${plain}qdisc replace dev DEV root netem $*"
! each_end "$impaired" 2>/dev/null || exit 0
look
if ! error=$(each_end "$impaired" 2>&1); then
    clear_ends
    if ! phw_has_netem; then
        phw_note "this kernel has no netem. Two ways out:"
        phw_note "  with-netem.sh COMMAND...    brings up the lab and impairs it in user-mode Linux, which has it"
        phw_note "  impair.sh --nft $which loss P%    loses frames by nftables; plain loss only"
        phw_skip "no sch_netem in kernel $(uname -r)"
    fi
    phw_note "tc refused 'netem $*':"
    printf '%s\n' "$error" >&2
    exit 1
fi
