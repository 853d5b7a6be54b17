# shellcheck shell=bash
# The processes of a lab: records, start, stop, and the ends of their logs. Sourced by lib.sh, never run.

# Stores /proc/PID/stat from its third field on in PHW_STAT; fails if there is no such process. The second field, the
# command's name, may contain blanks and parentheses, so everything up to the last ')' is removed first. Does not fork:
# it is called often, as are the functions below.
PHW_STAT=()
phw_stat() {
    local stat
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
    read -ra PHW_STAT <<<"${stat##*) }"
}

# Start time of a process in clock ticks; fails if there is no such process.
phw_start_time() { phw_runs "$1" && printf '%s\n' "${PHW_STAT[19]}"; }

# phw_runs PID [START]: whether process PID, started at START, is still running.
phw_runs() { phw_stat "$1" && [[ ${PHW_STAT[0]} != Z && ( $# == 1 || ${PHW_STAT[19]} == "$2" ) ]]; }

# phw_recorded FILE: prints the first PID of the "PID START" lines of FILE whose process is still running.
phw_recorded() {
    local pid start
    while read -r pid start; do
        [[ $pid =~ ^[0-9]+$ ]] || continue
        phw_runs "$pid" "$start" || continue
        printf '%s\n' "$pid"
        return
    done 2>/dev/null <"$1"
    return 1
}

phw_node_pid() { phw_recorded "$(phw_lab_dir "$1")/$2.process"; }

# phw_start_nodes LAB NODE...: starts the processes of nodes, in their namespaces, detached from this terminal. One
# process in its own session starts them and records their ids; phw_started waits for it, and so must a caller that is
# interrupted, or it may miss a process. The starter records itself first; when signalled, it stops between two nodes;
# and it starts none whose id it cannot record, because down.sh has moved the directory.
phw_start_nodes() {
    local lab=$1 dir arguments netns='' said file
    dir=$(phw_lab_dir "$lab")
    shift
    # Keeps the error of a directory that cannot be written: there may be room again when the error is reported.
    if file=$(mktemp 2>/dev/null); then
        exec {said}<>"$file"
        rm -f -- "$file"
    else
        exec {said}<>/dev/null
    fi
    [[ $PHW_LAB_MODE == netns ]] && netns=$(phw_netns "$lab" '')
    read -ra arguments <<<"$PHW_LAB_RUN_ARGUMENTS ${PHW_FIRST:-}"
    # shellcheck disable=SC2016  # expanded by the inner shell
    setsid bash -c '
        dir=$1 netns=$2 lab=$3 nodes=$4 signalled=0
        trap "signalled=1" INT TERM HUP
        id() {
            local stat fields
            stat=$(<"/proc/$1/stat")
            read -ra fields <<<"${stat##*) }"
            echo "$1 ${fields[19]}"
        }
        id $$ >>"$dir/.starter" || exit 1
        for node in $nodes; do
            (( ! signalled )) || exit 1
            enter=()
            [[ -z $netns ]] || enter=(nsenter "--net=/run/netns/$netns$node" --)
            "${enter[@]}" "${@:5}" --topology "$dir/topology.toml" --node "$node" --lab "$lab" \
                </dev/null >>"$dir/$node.log" 2>&1 &
            id $! >"$dir/$node.process" || { kill -KILL $!; exit 1; }
        done' bash "$dir" "$netns" "$lab" "$*" "$PHITWIRE_BIN_DIR/phitwire" run "${arguments[@]}" </dev/null >/dev/null 2>&"$said" {said}>&- &
    PHW_STARTER=$!
    phw_started || phw_die "cannot start the processes of lab '$lab'$(sed -n "s|.*: |: cannot write to $dir: |p;q" "/proc/self/fd/$said")"
    exec {said}>&-
}

PHW_STARTER=''
phw_started() {
    [[ -n $PHW_STARTER ]] || return 0
    wait "$PHW_STARTER" || return 1
    PHW_STARTER=''
}

# phw_ended LAB NODE...: stores those of the nodes whose process has ended in PHW_ENDED.
PHW_ENDED=()
phw_ended() {
    local dir node pid start
    dir=$(phw_lab_dir "$1")
    shift
    PHW_ENDED=()
    for node; do
        { read -r pid start <"$dir/$node.process"; } 2>/dev/null && phw_runs "$pid" "$start" || PHW_ENDED+=("$node")
    done
}

# phw_last_words LAB NODE...: reports that the processes of these nodes have ended, with the ends of their logs; logs
# that differ only in names, numbers and times are shown once.
phw_last_words() {
    local lab=$1 dir node words key shown=0
    local -A who=() said=()
    local -a keys=() names
    dir=$(phw_lab_dir "$lab")
    shift
    for node; do
        words=$(grep -v '^[[:space:]]*$' "$dir/$node.log" 2>/dev/null | tail -n 6 | sed 's/^/    /') || true
        key=.$(sed "s/${node//./\\.}/NODE/g; s/[0-9][0-9]*/0/g" <<<"$words" | tr -d ' \n')
        [[ -n ${who[$key]:-} ]] || { keys+=("$key"); said[$key]=$words; }
        who[$key]+=" $node"
    done
    for key in "${keys[@]}"; do
        (( ++shown <= 5 )) || { phw_note "more processes have ended, with other messages: $dir/*.log"; break; }
        read -ra names <<<"${who[$key]}"
        words=${said[$key]:+; the end of the log of ${names[0]}:}
        if (( ${#names[@]} == 1 )); then
            phw_note "process ${names[0]} has ended${said[$key]:+; the end of its log:}"
        elif (( ${#names[@]} <= 3 )); then
            phw_note "processes ${names[*]} have ended$words"
        else
            phw_note "${#names[@]} processes have ended, ${names[*]:0:3} and others$words"
        fi
        [[ -z ${said[$key]} ]] || printf '%s\n' "${said[$key]}" >&2
    done
    words=$(phw_why_not "$dir") && phw_note "cannot write to $words"
    return 0
}

# phw_stop PID...: sends TERM, waits for a bounded time, then sends KILL.
phw_stop() {
    (( $# )) || return 0
    kill -TERM "$@" 2>/dev/null || true
    phw_until "${PHW_STOP_SECONDS:-5}" phw_all_gone "$@" && return 0
    kill -KILL "$@" 2>/dev/null || true
    phw_until 5 phw_all_gone "$@"
}

phw_all_gone() {
    local pid
    for pid; do
        ! phw_runs "$pid" || return 1
    done
    return 0
}

# phw_until SECONDS COMMAND...: polls COMMAND until it succeeds; status 1 on timeout.
phw_until() {
    local end=$(( $(phw_ms) + $1 * 1000 ))
    shift
    until "$@"; do
        (( $(phw_ms) < end )) || return 1
        sleep 0.05
    done
}

# phw_with_us COMMAND...: COMMAND ends immediately with this shell, even after SIGKILL.
phw_with_us() { setpriv --pdeathsig KILL -- "$@"; }

phw_ms() { printf '%s\n' "$(( ${EPOCHREALTIME/[^0-9]/} / 1000 ))"; }

# Prints this process and its ancestors, separated by blanks.
phw_ancestors() {
    local pid=$$
    while (( pid > 1 )); do
        printf ' %s ' "$pid"
        phw_stat "$pid" || break
        pid=${PHW_STAT[1]}
    done
}

# Whether PID is this process, or one of its ancestors.
phw_is_ancestor() { [[ $(phw_ancestors) == *" $1 "* ]]; }
