#!/usr/bin/env bash
# quickstart.sh [--seconds S] [--loss P%] [--link udp|ethernet]      brings up, measures and takes down a small lab
#
# Builds phitwire, brings up two BlackWidow R1 subtrees of four processors each, joined by sidelinks, drops 1 % of the
# frames on every link, measures the message rate between all processors for 5 s, and takes everything down again.
# Status 0 only if every message arrived exactly once, intact and in order, and nothing was left behind.
#
# As root it uses network namespaces; as an ordinary user the same in a user namespace; where those are forbidden, UDP
# ports on loopback, without loss. Status 4 if loss was requested and is not possible.
# shellcheck source=lib.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/lib.sh"

seconds=5 loss='' link=udp arguments=("$@")
while (( $# )); do
    case $1 in
        --seconds|--loss|--link)
            (( $# > 1 )) || phw_bad_call "$1 needs a value"
            printf -v "${1#--}" %s "$2"
            shift ;;
        -h|--help) phw_usage; exit 0 ;;
        *) phw_bad_call "unknown argument $1 (--help lists them)" ;;
    esac
    shift
done
[[ $seconds =~ ^[0-9]+(\.[0-9]+)?$ ]] || phw_bad_call "--seconds must be a number of seconds, not '$seconds'"
[[ $link == udp || $link == ethernet ]] || phw_bad_call "--link must be udp or ethernet, not '$link'"
asked=$loss loss=${loss:-1%}
[[ $loss =~ ^([0-9]{1,2}(\.[0-9]{1,4})?|100)%$ ]] || phw_bad_call "--loss must be a percentage such as 1% or 0.25%, not '$loss'"

phw_need setsid:util-linux jq:jq pgrep:procps column:bsdextrautils
phw_binaries

up=(--link "$link") impaired=1
if phw_is_root; then
    phw_need_lab_tools
elif "$PHW_SCRIPTS/rootless.sh" true; then
    phw_note "not root: running in a user namespace"
    exec "$PHW_SCRIPTS/rootless.sh" "$PHW_SCRIPTS/quickstart.sh" "${arguments[@]}"
else
    [[ -z $asked ]] || phw_skip "--loss needs root or user namespaces"
    phw_note "neither root nor user namespaces: running over UDP ports on loopback, without loss"
    up=(--loopback) impaired=0
fi

# Use a unique name, to stay clear of other runs and of other labs.
lab=quickstart_$$

# shellcheck disable=SC2317  # called by the trap
finish() {
    local status=$?
    trap '' INT TERM HUP
    trap - EXIT
    "$PHW_SCRIPTS/down.sh" --lab "$lab" 2>/dev/null || status=1
    left_behind || status=1
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# shellcheck disable=SC2317
left_behind() {
    local left
    left=$(phw_left_of "$lab")
    if [[ -n $left ]]; then
        phw_note "left behind: $left"
        return 1
    fi
    phw_note "lab taken down; no namespace, process or file is left behind"
}

impair() {
    local status=0
    "$PHW_SCRIPTS/impair.sh" --lab "$lab" all loss "$loss" || status=$?
    if (( status == 0 )); then
        phw_note "every link loses $loss of its frames"
    elif (( status == PHW_SKIP )) && [[ -z $asked ]]; then
        phw_note "this kernel has neither netem nor random loss in nftables: running without loss"
    else
        return "$status"
    fi
}

"$PHW_SCRIPTS/up.sh" quickstart --lab "$lab" "${up[@]}"
(( ! impaired )) || impair
phw_note "measuring for $seconds s"
"$PHITWIRE_BIN_DIR/phitwire-msgrate" --lab "$lab" --pattern uniform --seconds "$seconds"
