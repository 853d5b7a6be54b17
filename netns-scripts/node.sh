#!/usr/bin/env bash
# node.sh [--lab NAME] start|stop|kill|restart NODE      controls one process of a lab
#
# stop ends it with SIGTERM (it drains and logs its summary), kill with SIGKILL, like a crash. Namespace, links and
# impairments stay; a restarted process joins as a new incarnation. start returns when the process answers; status 1,
# with the end of its log, if it ends instead.
# shellcheck source=lib.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/lib.sh"

lab=$(phw_default_lab)
while (( $# )); do
    case $1 in
        --lab) (( $# > 1 )) || phw_bad_call "--lab needs a name"; lab=$2; shift ;;
        -h|--help) phw_usage; exit 0 ;;
        -*) phw_bad_call "unknown option $1 (--help lists them)" ;;
        *) break ;;
    esac
    shift
done
(( $# == 2 )) || phw_bad_call "specify start, stop, kill or restart, and a node"
action=$1 node=$2

phw_check_lab "$lab"
phw_open_lab "$lab"
[[ $PHW_LAB_MODE != virtual ]] || phw_die "lab '$lab' is virtual: one process hosts all nodes, and none can be started or stopped alone"
phw_plan_nodes "$lab" | grep -qxF -- "$node" || phw_die "lab '$lab' has no node '$node'"

end_node() {
    local pid
    pid=$(phw_node_pid "$lab" "$node") || { phw_note "$node is not running"; return 0; }
    if [[ $1 == KILL ]]; then
        kill -KILL "$pid"
        phw_until 5 phw_all_gone "$pid"
    else
        phw_stop "$pid"
    fi
}

# Only one start at a time: the loser of two would record its own process, which ends, over the running one. The lock is
# on the node's log, and the process does not inherit it: descriptor 9 would hold the lock as long as the process runs.
lock_node() {
    umask 077
    exec 9>>"$(phw_lab_dir "$lab")/$node.log"
    flock -w 30 9 || phw_die "timed out waiting for another start of $node to finish"
}

start_node() {
    ! phw_node_pid "$lab" "$node" >/dev/null || phw_die "$node is already running"
    phw_binaries
    rm -f -- "$(phw_lab_dir "$lab")/$node.process"
    phw_start_nodes "$lab" "$node" 9>&-
    phw_until 15 answers_or_ended || phw_die "$node is running, but does not answer"
    phw_node_pid "$lab" "$node" >/dev/null && return 0
    phw_last_words "$lab" "$node"
    return 1
}

answers_or_ended() {
    ! phw_node_pid "$lab" "$node" >/dev/null || timeout 5 "$PHITWIRE_BIN_DIR/phitwire" ctl --lab "$lab" "$node" info >/dev/null 2>&1
}

case $action in
    start) lock_node; start_node ;;
    stop) end_node TERM ;;
    kill) end_node KILL ;;
    restart) lock_node; end_node TERM; start_node ;;
    *) phw_bad_call "expected start, stop, kill or restart, not '$action'" ;;
esac
