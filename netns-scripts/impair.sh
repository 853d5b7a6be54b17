#!/usr/bin/env bash
# impair.sh [--lab NAME] LINK clear | show | NETEM-ARGUMENTS...      impairs links in both directions
# impair.sh [--lab NAME] --nft LINK loss P%                          loss by nftables, even if there is netem
# impair.sh --kernel                                                 lists what this kernel supports: netem, nft
#
#   impair.sh all delay 2ms 1ms loss 5%       impair.sh router0:p33 loss gemodel 1% 20%
#   impair.sh router0-router1 corrupt 1%      impair.sh all clear
#
# LINK is all, a link id, NODE:PORT, NODE-NODE (every link between the two) or NODE (every link of the node); the
# remaining arguments are those of `tc qdisc ... netem`, verbatim, and replace any earlier impairment of the link; tc
# checks them first, so that a typo changes nothing (status 2). Without netem in the kernel, `loss P%` alone uses
# nftables; anything else ends with status 4 and the command that runs the lab in user-mode Linux. Status 4 also if
# nftables is needed and cannot drop frames at random.
#
# Loss acts on single frames. A burst that a process hands over in one piece (UDP segmentation offload) would pass a
# qdisc in one piece, and netem would drop all of it: processes detect netem on their interfaces and send frames one by
# one. They cannot detect nftables: there the sending interface's offload is turned off, and on again by clear.
#
# Deleted interfaces are named and skipped; status 1 if none is left.
# shellcheck source=lib.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/lib.sh"

lab=$(phw_default_lab) nft=0 kernel=0
while (( $# )); do
    case $1 in
        --lab) (( $# > 1 )) || phw_bad_call "--lab needs a name"; lab=$2; shift ;;
        --nft) nft=1 ;;
        --kernel) kernel=1 ;;
        -h|--help) phw_usage; exit 0 ;;
        -*) phw_bad_call "unknown option $1 (--help lists them)" ;;
        *) break ;;
    esac
    shift
done
if (( kernel )); then
    (( $# == 0 )) || phw_bad_call "--kernel takes no other arguments"
    ! phw_has_netem || echo netem
    ! phw_has_nft_loss || echo nft
    exit 0
fi
(( $# >= 2 )) || phw_bad_call "specify a link and an impairment (--help shows examples)"
which=$1
shift

inside() { nsenter "--net=/run/netns/$1" -- "${@:2}"; }

# ---- The ends of the named links ----------------------------------------------------------------
# Use as few processes as possible: each takes a tenth of a second in user-mode Linux.

# Interfaces by namespace: one call of tc handles a whole namespace.
declare -A ends=()
# Deleted interfaces, as NODE:INTERFACE.
declare -A gone=()

# find_ends [LOOK]: with LOOK, deleted interfaces are skipped and listed in `gone`. That costs as much as all the rest,
# so commands are first tried without it.
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
        # A deleted namespace has no interfaces.
        there[$netns]=$(ip -n "$netns" -o link show 2>/dev/null) || there[$netns]=none
    fi
    # A line of it is "NUMBER: NAME: ..." or "NUMBER: NAME@PEER: ...".
    if [[ -z $look || $'\n'${there[$netns]} =~ $'\n'[0-9]+:\ "$2"[:@] ]]; then
        ends[$netns]+=" $2"
    else
        gone[$1:$2]=1
    fi
}

# Finds the existing ends, and prints the names of the deleted ones.
look() {
    find_ends look
    (( ${#gone[@]} )) || return 0
    (( ${#ends[@]} )) || phw_die "all interfaces of '$which' have been deleted: ${!gone[*]}"
    phw_note "skipping deleted interfaces: ${!gone[*]}"
}

# each_end COMMANDS: runs tc in each namespace, with COMMANDS for every interface, whose name replaces DEV.
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

# An interface without a qdisc has none to delete or replace: it first gets a plain one.
plain=$'qdisc replace dev DEV root handle 1: pfifo\n'

clear_ends() {
    each_end "${plain}qdisc del dev DEV root" || return 1
    clear_nft
}

# whole_again NETNS INTERFACE: turns the interface's offload on again.
whole_again() { inside "$1" ethtool -K "$2" gso on tx-udp-segmentation on; }

clear_nft() {
    local netns interface
    for netns in "${!ends[@]}"; do
        [[ -e $nft_mark$netns ]] || continue
        for interface in ${ends[$netns]}; do
            inside "$netns" nft delete table netdev "phw_$interface" 2>/dev/null || continue
            whole_again "$netns" "$interface"
        done
    done
}

# Frames are dropped on arrival; the sender's offload is off, so that they arrive one by one.
nft_ends() {
    local netns interface which=''
    (( $1 == 1000000 )) || which="numgen random mod 1000000 < $1"
    for netns in "${!ends[@]}"; do
        touch -- "$nft_mark$netns"
        for interface in ${ends[$netns]}; do
            inside "$netns" ethtool -K "$interface" gso off tx-udp-segmentation off
            inside "$netns" nft -f - <<NFT || { whole_again "$netns" "$interface"; return 1; }
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

# ---- State --------------------------------------------------------------------------------------

# "NAMESPACE INTERFACE WHAT" for every end that has an impairment.
states() {
    local netns qdiscs
    for netns in "${!ends[@]}"; do
        qdiscs=$'\n'$(tc -n "$netns" -s qdisc show)
        printf '%s\n' "${qdiscs//$'\n'qdisc /$'\n'$netns qdisc }"
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

# ---- Commands -----------------------------------------------------------------------------------

# As for tc, `loss 3` is 3 %, and so is `drop 3%`.
is_pure_loss() { [[ $# == 2 && ($1 == loss || $1 == drop) && $2 =~ ^([0-9]+)(\.([0-9]{1,4}))?%?$ ]]; }

per_million() {
    is_pure_loss "$@" \
        || phw_bad_call "--nft supports only 'loss P%' (up to four decimals), not '$*'"
    local decimals=${BASH_REMATCH[3]}0000
    local value=$(( 10#${BASH_REMATCH[1]}${decimals:0:4} ))
    (( value <= 1000000 )) || phw_bad_call "loss must be at most 100 %, not $2"
    printf '%s\n' "$value"
}

# tc_says IMPAIRMENT...: prints what tc finds wrong with the words. It reads them before it looks for the interface and
# asks the kernel, so that this needs neither netem nor a link.
tc_says() {
    local said
    said=$(tc qdisc add dev . root netem "$@" 2>&1) || true
    [[ $said == *'Cannot find device'* ]] || printf '%s\n' "${said%%$'\n'*}"
}

# meant IMPAIRMENT...: prints similar words that tc accepts, if there are any.
meant() {
    local text=" $*" word words=()
    text=${text//=/ } text=${text// %/%}
    for word in $text; do
        case $word in
            lo*) word=loss ;;
            de*|la*) word=delay ;;
            co*|fl*) word=corrupt ;;
            du*) word=duplicate ;;
            re*) word=reorder ;;
            [0-9]*%) (( ${#words[@]} )) || words=(loss) ;;
        esac
        words+=("$word")
    done
    [[ -n $(tc_says "${words[@]}") ]] || printf '%s\n' "${words[*]}"
}

check_words() {
    local wrong like hint='--help shows examples'
    wrong=$(tc_says "$@")
    [[ -n $wrong ]] || return 0
    like=$(meant "$@")
    [[ -z $like ]] || hint="did you mean '$like'?"
    phw_bad_call "tc rejected 'netem $*': $wrong ($hint)"
}

# lose_by_nft loss P%: replaces the impairment of the links by loss with nftables.
lose_by_nft() {
    local lost
    lost=$(per_million "$@")
    phw_need nft:nftables
    phw_has_nft_loss || phw_skip "the nftables of kernel $(uname -r) cannot drop frames at random"
    look
    clear_ends
    nft_ends "$lost" || { clear_ends; phw_die "nftables rejected the impairment"; }
}

# with_netem IMPAIRMENT...: prints the command that runs this lab with the impairment in user-mode Linux.
with_netem() {
    local topology=$PHW_LAB_TOPOLOGY rate=phitwire-msgrate here='' up=() command
    # Scripts and binaries outside the PATH need their directories.
    [[ $(command -v with-netem.sh) -ef $PHW_SCRIPTS/with-netem.sh ]] || here=${0%"${0##*/}"}
    command -v "$rate" >/dev/null || rate=$PHITWIRE_BIN_DIR/$rate
    case $topology in
        "$PHW_SCRIPTS"/topologies/*) topology=${topology##*/} topology=${topology%.toml} ;;
        # User-mode Linux does not see the lab's directory.
        "$(phw_lab_dir "$lab")"/*)
            printf '  cp %q %q\n' "$(phw_lab_dir "$lab")/topology.toml" "$lab.toml"
            topology=$lab.toml ;;
    esac
    [[ $PHW_LAB_LINK == udp ]] || up+=(--link "$PHW_LAB_LINK")
    (( PHW_LAB_MTU == 1500 )) || up+=(--mtu "$PHW_LAB_MTU")
    command="$(printf '%q ' "${here}up.sh" "$topology" --lab "$lab" "${up[@]}")&& "
    command+="$(printf '%q ' "${here}impair.sh" --lab "$lab" "$which" "$@")&& $(printf '%q ' "$rate" --lab "$lab")"
    command="${command% }; $(printf '%q ' "${here}down.sh" --lab)$lab"
    printf '  %q bash -c %s\n' "${here}with-netem.sh" "${command@Q}"
}

phw_check_lab "$lab"
phw_open_lab "$lab"
[[ $PHW_LAB_MODE != virtual ]] || phw_die "lab '$lab' is virtual: its links cannot be impaired yet"
[[ $PHW_LAB_MODE == netns ]] || phw_die "lab '$lab' runs over loopback ports, which cannot be impaired"
phw_need_root
phw_need ip:iproute2 tc:iproute2 nsenter:util-linux ethtool:ethtool
links=$(phw_find_links "$lab" "$which")
[[ -n $links ]] || phw_die "lab '$lab' has no link '$which' (status.sh --lab $lab lists them)"

# Namespaces with nftables' impairments: clear need not query the others.
nft_mark=$(phw_lab_dir "$lab")/nft-
find_ends

case $1 in
    show)
        find_ends look
        show_links | column -t -s $'\t'
        exit 0 ;;
    clear)
        (( $# == 1 )) || phw_bad_call "clear takes no arguments"
        clear_ends 2>/dev/null || { look; clear_ends; }
        exit 0 ;;
esac

if (( nft )); then
    lose_by_nft "$@"
    exit 0
fi

check_words "$@"
impaired="${plain}qdisc replace dev DEV root netem $*"
if each_end "$impaired" 2>/dev/null; then
    clear_nft
    exit 0
fi
look
if ! error=$(each_end "$impaired" 2>&1); then
    if ! phw_has_netem; then
        each_end "${plain}qdisc del dev DEV root"
        if is_pure_loss "$@"; then
            lose_by_nft "$@"
            phw_note "this kernel has no netem: nftables drops ${2%\%}% of the frames"
            exit 0
        fi
        phw_note "this kernel has no netem, and nftables does only 'loss P%'. In user-mode Linux, with netem:"
        with_netem "$@" >&2
        phw_skip "no sch_netem in kernel $(uname -r)"
    fi
    clear_ends
    phw_note "tc rejected 'netem $*':"
    printf '%s\n' "$error" >&2
    exit 1
fi
clear_nft
