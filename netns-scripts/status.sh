#!/usr/bin/env bash
# status.sh [--lab NAME] [--json]      shows labs, processes, links and their impairments
#
# Shows all labs without --lab. For a lab started without up.sh, such as one over several hosts, it reports how many
# nodes answer here; an incomplete lab is reported as left behind, with the command that removes it. Status 1 if a
# process has ended or is stopped, if a link is not up (its wire may be dead: interface-down, no-carrier, no-interface,
# no-address, short-mtu, not-bound; or its other end is silent, or stalled: heard, but acknowledging nothing), or if the
# lab does not exist.
#
# HEARD is the time since a data frame was last accepted, at the end where that is longer; an idle link has nothing to
# send. RESENT counts resent packets (YARC) or sets (Aries), CHARGED bad copies charged to a lane, IMPAIRED lost frames;
# all of both ends together.
# shellcheck source=lib.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/lib.sh"

labs='' json=0
while (( $# )); do
    case $1 in
        --lab) (( $# > 1 )) || phw_bad_call "--lab needs a name"; phw_check_lab "$2"; labs=$2; shift ;;
        --json) json=1 ;;
        -h|--help) phw_usage; exit 0 ;;
        *) phw_bad_call "unknown argument $1 (--help lists them)" ;;
    esac
    shift
done
phw_need jq:jq column:bsdextrautils

# One JSON object per node; `links` is its process's port report, or null if the process reports an error.
nodes_of() {
    local kind node pid rss
    while IFS=$'\t' read -r _ node kind; do
        pid=$(phw_node_pid "$1" "$node") || pid=''
        rss=''
        [[ -z $pid ]] || while read -r key rss _; do [[ $key != VmRSS: ]] || break; done <"/proc/$pid/status" || true
        printf '%s\t%s\t%s\t%s\n' "$node" "$kind" "$pid" "$rss"
    done < <(grep "^node" "$(phw_lab_dir "$1")/plan.tsv") | jq -cR --slurpfile answers <(answers_of "$1") '
        split("\t") as [$name, $kind, $pid, $rss]
        | ($answers[0][$name]? | if type == "array" then . else null end) as $links
        | {$name, $kind, pid: ($pid | tonumber? // null),
           state: (if $pid == "" then "ended" elif $links == null then "silent" else "running" end),
           rss_kib: ($rss | tonumber? // null), $links}'
}

answers_of() {
    local phitwire=phitwire
    [[ -z ${PHITWIRE_BIN_DIR:-} ]] || phitwire=$PHITWIRE_BIN_DIR/phitwire
    timeout 60 "$phitwire" ctl --lab "$1" all links --json 2>/dev/null || true
}

links_of() {
    phw_plan_links "$1" | jq -cR 'split("\t")
        | {id: .[0], a: {node: .[1], port: .[2], interface: .[5], address: .[7]},
           b: {node: .[3], port: .[4], interface: .[6], address: .[8]}}'
}

# Impairments of link ends. Needs root; an ordinary user sees none.
impairments_of() {
    [[ $PHW_LAB_MODE == netns ]] && phw_is_root || return 0
    "$PHW_SCRIPTS/impair.sh" --lab "$1" all show 2>/dev/null | awk '$3 != "clear"' \
        | jq -cR 'capture("^(?<link>\\S+)\\s+(?<where>\\S+)\\s+(?<what>.*)$")'
}

report() {
    phw_open_lab "$1"
    jq -n --arg lab "$1" --arg mode "$PHW_LAB_MODE" --arg link "$PHW_LAB_LINK" --argjson mtu "$PHW_LAB_MTU" \
        --arg topology "$PHW_LAB_TOPOLOGY" --slurpfile nodes <(nodes_of "$1") --slurpfile links <(links_of "$1") \
        --slurpfile impairments <(impairments_of "$1") '
        def port_of($side): [$nodes[] | select(.name == $side.node) | .links[]?
            | select((.port | tostring | ltrimstr("p")) == ($side.port | ltrimstr("p")))][0];
        {$lab, $mode, $link, $mtu, $topology, nodes: [$nodes[] | del(.links)],
         links: [$links[] | . as $l
            | .a += {status: port_of($l.a)} | .b += {status: port_of($l.b)}
            | .impairment = ([$impairments[] | select(.link == $l.id) | {(.where): .what}] | add)
            | .up = (.a.status.up == true and .b.status.up == true)]}
        | .up = (all(.nodes[]; .state == "running") and all(.links[]; .up))'
}

# Reports a lab that up.sh did not bring up, or not yet, or not as this user.
remainder() {
    local dir why="left behind: down.sh --lab $1" answers
    dir=$(phw_lab_dir "$1")
    if phw_recorded "$dir/.up" >/dev/null; then
        why="coming up"
    elif [[ ! -e $dir ]] && [[ -z $(phw_half_made "$1") ]]; then
        # Only namespaces exist: their processes may be another user's, or keep their files elsewhere.
        if ! phw_is_root; then
            why="belongs to another user: run this as that user, such as root"
        elif phw_lab_netns "$1" | xargs -rn1 ip netns pids 2>/dev/null | grep -q .; then
            why="its processes are running, but their files are in another directory: set PHITWIRE_RUN_DIR"
        fi
    elif [[ -e $dir && ! -r $dir ]]; then
        why="belongs to another user: run this as that user, such as root"
    elif [[ -r $dir/topology.toml ]] && answers=$(answers_of "$1") && [[ -n $answers ]]; then
        # Processes started without up.sh, such as those of a lab over several hosts.
        jq --arg lab "$1" '
            [to_entries[] | {name: .key, state: (if .value | type == "array" then "running" else "not here" end),
                links: (if .value | type == "array" then .value else [] end)}] as $nodes
            | ([$nodes[] | select(.state == "running")]) as $here | [$here[].links[]] as $ends
            | {$lab, nodes: [$nodes[] | del(.links)], links: [],
               up: ($here != [] and all($ends[]; .up)),
               why: (if $here == [] then "left behind: down.sh --lab \($lab)" else
                   "started without up.sh: \($here | length) of \($nodes | length) nodes answer here, "
                   + "\([$ends[] | select(.up)] | length) of \($ends | length) of their link ends are up" end)}' <<<"$answers"
        return
    fi
    jq -n --arg lab "$1" --arg why "$why" '{$lab, $why, nodes: [], links: [], up: false}'
}

node_table='
    "NODE\tKIND\tPROCESS\tSTATE\tRESIDENT",
    (.nodes[] | [.name, .kind, .pid // "-", .state,
        if .rss_kib then "\(.rss_kib / 102.4 | round / 10) MiB" else "-" end] | join("\t"))'
link_table='
    def resent: [.a.status, .b.status] | map(.resent? // 0) | add;
    def charged: [.a.status, .b.status] | map(.lane_retries? // [] | add // 0) | add;
    def heard: [.a.status, .b.status] | map(.heard_ms?) | map(values)
        | if . == [] then "-" else max | if . < 10000 then "\(.) ms" else "\(. / 1000 | floor) s" end end;
    def rtt: [.a.status.rtt_ns?, .b.status.rtt_ns?] | map(values) | if . == [] then "-" else "\(max / 100 | round / 10) us" end;
    def state: if .up then "up" else "\(.a.status.state // "?")/\(.b.status.state // "?")" end;
    # Equal impairments of both ends are one, with the sums of their numbers.
    def sums: (map([scan("[0-9]+") | tonumber]) | transpose | map(add)) as $sums
        | [.[0] | splits("[0-9]+")] | to_entries | map("\(.value)\($sums[.key] // "")") | add;
    def impaired: [.impairment // {} | .[] | capture("^(?<what>[^(]*)(?<counts>.*)$")]
        | if . == [] then "-" else group_by(.what) | map(.[0].what + (map(.counts) | sums)) | join("; ") end;
    def lanes: "\(.a.status.tx_lanes // "?")/\(.b.status.tx_lanes // "?")";
    "LINK\tFROM\tTO\tSTATE\tHEARD\tLANES\tROUND TRIP\tRESENT\tCHARGED\tIMPAIRED",
    (.links[] | [.id, "\(.a.node):\(.a.interface)", "\(.b.node):\(.b.interface)", state, heard, lanes, rtt, resent, charged,
        impaired] | join("\t"))'
reasons='
    .links[] | (.a, .b) | select(.status.why? != null) | "  \(.node):\(.interface): \(.status.why)"'

reports=()
if [[ -n $labs ]]; then
    phw_lab_exists "$labs" || phw_not_up "$labs"
else
    labs=$(phw_labs)
fi
for lab in $labs; do
    one=$(report "$lab" 2>/dev/null) || one=$(remainder "$lab")
    reports+=("$one")
done
if (( json )); then
    jq -s . <<<"${reports[*]}"
elif (( ${#reports[@]} == 0 )); then
    phw_note "no lab is up"
else
    for one in "${reports[@]}"; do
        if jq -e .why <<<"$one" >/dev/null; then
            jq -r '"lab \(.lab): \(.why)\n"' <<<"$one"
            continue
        fi
        jq -r '"lab \(.lab): \(if .up then "up" else "NOT FULLY UP" end), \(.mode), \(.link), mtu \(.mtu), \(.topology)"' <<<"$one"
        jq -r "$node_table" <<<"$one" | column -t -s $'\t'
        jq -r "$link_table" <<<"$one" | column -t -s $'\t'
        jq -r "$reasons" <<<"$one"
        echo
    done
fi
jq -es 'all(.[]; .up)' <<<"${reports[*]}" >/dev/null
