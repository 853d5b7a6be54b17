# shellcheck shell=bash
# What the lab scripts share: names, where a lab keeps its state, dependencies, binaries, processes.
# Sourced, never run. Every function begins with `phw_`; every message of a script begins with its name.
#
# A lab is a directory `RUN/LAB` and the network namespaces `phw-LAB-NODE`:
#   plan.tsv       nodes and links, as `phitwire topology plan` printed them
#   lab.env        how the lab was brought up (PHW_LAB_*), read by the other scripts
#   topology.toml  the description the processes read
#   NODE.process   "PID START": a process id and its start time, so that a reused id is never taken for ours
#   NODE.log       what the process wrote
#   NODE.sock      its control socket, and NODE.pid, its lock: both made by the process itself
# RUN is $PHITWIRE_RUN_DIR, else /run/phitwire for root, else ${XDG_RUNTIME_DIR:-/tmp}/phitwire-UID: the same
# rule as the binaries.
#
# Exit statuses: 0 well, 1 failed, 2 called wrongly, 4 cannot be done here (a skip, with its reason on stderr).

set -Eeuo pipefail

PHW_NAME=${0##*/}
PHW_SCRIPTS=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
PHW_ROOT=$(cd -- "$PHW_SCRIPTS/.." && pwd -P)
PHW_SKIP=4

# Debian leaves these out of an ordinary user's PATH; cargo's own directory is missing under `sudo` and cron.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:$HOME/.cargo/bin
export PATH

phw_note() { printf '%s: %s\n' "$PHW_NAME" "$*" >&2; }
phw_die() { phw_note "$@"; exit 1; }
phw_bad_call() { phw_note "$@"; exit 2; }
phw_skip() { phw_note "skipped: $*"; exit "$PHW_SKIP"; }

# The comment at the head of a script is its manual.
phw_usage() { sed -n '2,/^[^#]/{/^# shellcheck/d;/^#/{s/^# \{0,1\}//;p;};}' "$0"; }

# ---- Where we are -------------------------------------------------------------------------------

phw_is_root() { (( EUID == 0 )); }

# Root of the machine, not only of a user namespace.
phw_is_machine_root() {
    phw_is_root && awk 'NR == 1 { exit !($1 == 0 && $2 == 0 && $3 == 4294967295) }' /proc/self/uid_map
}

phw_is_debian() {
    [[ -r /etc/os-release ]] && command -v apt-get >/dev/null \
        && (. /etc/os-release && [[ " ${ID:-} ${ID_LIKE:-} " =~ \ (debian|ubuntu)\  ]])
}

phw_need_root() {
    phw_is_root || phw_die "needs root for namespaces: run it with sudo, or as $PHW_SCRIPTS/rootless.sh $0 ..."
}

# ---- Dependencies -------------------------------------------------------------------------------

# phw_need COMMAND:PACKAGES...  Installs what is missing where it may, else names it and fails.
# Several packages are joined by '+'. PHITWIRE_NO_INSTALL=1 forbids installing.
phw_need() {
    local pair missing=() packages=()
    for pair; do
        command -v "${pair%%:*}" >/dev/null && continue
        missing+=("${pair%%:*}")
        IFS=+ read -ra more <<<"${pair#*:}"
        packages+=("${more[@]}")
    done
    (( ${#missing[@]} )) || return 0
    if [[ ${PHITWIRE_NO_INSTALL:-0} != 0 ]] || ! phw_is_machine_root || ! phw_is_debian; then
        phw_note "missing: ${missing[*]}"
        phw_die "install first: sudo apt-get install ${packages[*]}"
    fi
    phw_note "installing ${packages[*]}"
    local log
    log=$(mktemp)
    if ! phw_apt install "${packages[@]}" >"$log" 2>&1 \
        && ! { phw_apt update && phw_apt install "${packages[@]}"; } >>"$log" 2>&1; then
        cat -- "$log" >&2
        rm -f -- "$log"
        phw_die "apt-get could not install: ${packages[*]}"
    fi
    rm -f -- "$log"
    hash -r
    for pair in "${missing[@]}"; do
        command -v "$pair" >/dev/null || phw_die "$pair is still missing after installing ${packages[*]}"
    done
}

phw_apt() {
    local verb=$1
    shift
    DEBIAN_FRONTEND=noninteractive apt-get "$verb" -q -y --no-install-recommends \
        -o DPkg::Lock::Timeout=120 "$@" </dev/null
}

phw_need_lab_tools() { phw_need ip:iproute2 tc:iproute2 nsenter:util-linux setsid:util-linux jq:jq ethtool:ethtool pgrep:procps column:bsdextrautils; }

# ---- Binaries -----------------------------------------------------------------------------------

# Directory of the binaries: $PHITWIRE_BIN_DIR, taken as it is, or our own release build, brought up to date once
# per process tree.
phw_binaries() {
    [[ -n ${PHITWIRE_BIN_DIR:-} ]] && return 0
    local target=${CARGO_TARGET_DIR:-$PHW_ROOT/target}
    [[ $target == /* ]] || target=$PHW_ROOT/$target
    phw_build
    export PHITWIRE_BIN_DIR=$target/release
}

# Builds as the user who called sudo, whose toolchain it is, so that no file of root's is left in `target`.
phw_build() {
    local target=${CARGO_TARGET_DIR:-$PHW_ROOT/target} newer
    [[ $target == /* ]] || target=$PHW_ROOT/$target
    if [[ -x $target/release/phitwire && -x $target/release/phitwire-msgrate ]]; then
        newer=$(cd "$PHW_ROOT" && find Cargo.toml Cargo.lock src framing nodes bench -name target -prune -o \
            \( -name '*.rs' -o -name '*.toml' -o -name Cargo.lock \) -newer "$target/release/phitwire" -print -quit)
        [[ -z $newer ]] && return 0
    fi
    local as=()
    if phw_is_machine_root && ! command -v cargo >/dev/null && [[ -n ${SUDO_USER:-} && $SUDO_USER != root ]]; then
        as=(runuser -u "$SUDO_USER" -- env HOME="$(getent passwd "$SUDO_USER" | cut -d: -f6)")
        PATH=$PATH:$(getent passwd "$SUDO_USER" | cut -d: -f6)/.cargo/bin
    fi
    command -v cargo >/dev/null || phw_die "no Rust toolchain: cargo is not in PATH (get it from https://rustup.rs)"
    phw_need cc:gcc+libc6-dev
    phw_note "building (cargo build --release)"
    (cd "$PHW_ROOT" && "${as[@]}" cargo build --release --workspace --bins --locked </dev/null >&2) \
        || phw_die "the build failed"
    # Cargo leaves an up-to-date binary's time alone; without this, every later call would ask it again.
    touch -c "$target/release/phitwire"
}

phw() { "$PHITWIRE_BIN_DIR/phitwire" "$@"; }

# ---- Names and places ---------------------------------------------------------------------------

# No '-' in a lab's name, so that phw-LAB-NODE can be read back; short, because a socket path has 108 bytes.
phw_check_lab() {
    [[ $1 =~ ^[A-Za-z0-9_]{1,24}$ ]] || phw_bad_call "not a lab name: '$1' (1 to 24 letters, digits or '_')"
}

phw_default_lab() { printf '%s\n' "${PHITWIRE_LAB:-lab}"; }

phw_run_dir() {
    if [[ -n ${PHITWIRE_RUN_DIR:-} ]]; then
        printf '%s\n' "$PHITWIRE_RUN_DIR"
    elif phw_is_root; then
        printf '/run/phitwire\n'
    else
        printf '%s\n' "${XDG_RUNTIME_DIR:-/tmp}/phitwire-$UID"
    fi
}

phw_lab_dir() { printf '%s/%s\n' "$(phw_run_dir)" "$1"; }
phw_netns() { printf 'phw-%s-%s\n' "$1" "$2"; }

# Names of the labs that have left anything: a directory or a namespace.
phw_labs() {
    local dir
    {
        for dir in "$(phw_run_dir)"/*/; do
            [[ -e $dir/plan.tsv || -e $dir/lab.env ]] && basename -- "$dir"
        done
        phw_all_netns | sed -n 's/^phw-\([A-Za-z0-9_]*\)-.*/\1/p'
    } | sort -u
}

phw_all_netns() { ls -1 /run/netns 2>/dev/null || true; }
phw_lab_netns() { phw_all_netns | grep "^phw-$1-" || true; }

# Reads a lab's lab.env into PHW_LAB_*; fails with a message when the lab is not up.
phw_open_lab() {
    local dir
    dir=$(phw_lab_dir "$1")
    [[ -r $dir/lab.env && -r $dir/plan.tsv ]] || phw_die "lab '$1' is not up (up.sh TOPOLOGY --lab $1)"
    # shellcheck source=/dev/null
    . "$dir/lab.env"
    # A lab stays with the binaries it was brought up with.
    export PHITWIRE_BIN_DIR=${PHITWIRE_BIN_DIR:-$PHW_LAB_BIN_DIR}
}

phw_plan_nodes() { awk -F '\t' '$1 == "node" { print $2 }' "$(phw_lab_dir "$1")/plan.tsv"; }
# ID NODE_A PORT_A NODE_B PORT_B IF_A IF_B ADDR_A ADDR_B, one link per line.
phw_plan_links() { awk -F '\t' -v OFS='\t' '$1 == "link" { $1 = ""; print substr($0, 2) }' "$(phw_lab_dir "$1")/plan.tsv"; }

# phw_find_links LAB WHICH: the plan lines that WHICH names: all, a link id, NODE:PORT, NODE-NODE or NODE.
phw_find_links() {
    phw_plan_links "$1" | awk -F '\t' -v which="$2" '
        which == "all" || which == $1 ||
        which == $2 ":" $3 || which == $2 ":" $6 || which == $4 ":" $5 || which == $4 ":" $7 ||
        which == $2 "-" $4 || which == $4 "-" $2 || which == $2 || which == $4'
}

# ---- Processes ----------------------------------------------------------------------------------

# Start time of a process in clock ticks; fails when there is no such process. The command name, field 2 of
# /proc/PID/stat, may hold blanks and parentheses, so everything up to the last ')' goes first.
phw_start_time() {
    local stat
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
    local -a fields
    read -ra fields <<<"${stat##*) }"
    [[ ${fields[0]} != Z ]] || return 1
    printf '%s\n' "${fields[19]}"
}

# Process id of a node if that very process still runs.
phw_node_pid() {
    local pid start
    read -r pid start 2>/dev/null <"$(phw_lab_dir "$1")/$2.process" || return 1
    [[ $(phw_start_time "$pid") == "$start" ]] || return 1
    printf '%s\n' "$pid"
}

# phw_start_nodes LAB NODE...: starts the processes of nodes, in their namespaces, detached from this terminal.
# One process of its own session starts them and writes their ids; phw_started waits for it, and so must whoever
# is interrupted meanwhile, lest it miss one.
phw_start_nodes() {
    local lab=$1 dir arguments netns=''
    dir=$(phw_lab_dir "$lab")
    shift
    [[ $PHW_LAB_MODE == netns ]] && netns=$(phw_netns "$lab" '')
    read -ra arguments <<<"$PHW_LAB_RUN_ARGUMENTS"
    # shellcheck disable=SC2016  # expanded by the inner shell
    setsid bash -c '
        dir=$1 netns=$2 lab=$3 nodes=$4
        for node in $nodes; do
            enter=()
            [[ -z $netns ]] || enter=(nsenter "--net=/run/netns/$netns$node" --)
            "${enter[@]}" "${@:5}" --topology "$dir/topology.toml" --node "$node" --lab "$lab" \
                </dev/null >>"$dir/$node.log" 2>&1 &
            stat=$(<"/proc/$!/stat")
            read -ra fields <<<"${stat##*) }"
            echo "$! ${fields[19]}" >"$dir/$node.process"
        done' bash "$dir" "$netns" "$lab" "$*" "$PHITWIRE_BIN_DIR/phitwire" run "${arguments[@]}" </dev/null >/dev/null 2>&1 &
    PHW_STARTER=$!
    phw_started || phw_die "could not start the processes of lab '$lab'"
}

PHW_STARTER=''
phw_started() {
    [[ -n $PHW_STARTER ]] || return 0
    wait "$PHW_STARTER" || return 1
    PHW_STARTER=''
}

# phw_stop PID...: TERM, a bounded wait, then KILL.
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
        phw_start_time "$pid" >/dev/null && return 1
    done
    return 0
}

# phw_until SECONDS COMMAND...: polls COMMAND until it succeeds; status 1 when the time is over.
phw_until() {
    local end=$(( $(phw_ms) + $1 * 1000 ))
    shift
    until "$@"; do
        (( $(phw_ms) < end )) || return 1
        sleep 0.05
    done
}

phw_ms() { printf '%s\n' "$(( ${EPOCHREALTIME/[^0-9]/} / 1000 ))"; }

# Is this process, or one of its ancestors, PID?
phw_is_ancestor() {
    local pid=$$
    while (( pid > 1 )); do
        (( pid == $1 )) && return 0
        pid=$(awk '/^PPid:/ { print $2 }' "/proc/$pid/status" 2>/dev/null) || return 1
        [[ -n $pid ]] || return 1
    done
    return 1
}

# ---- Taking a lab down --------------------------------------------------------------------------

# Ends everything of a lab; may be called in any state of it, and again. What a lab owns: the processes whose
# ids it recorded, whatever runs in its namespaces, the namespaces (interfaces and qdiscs go with them), and
# its directory.
phw_remove_lab() {
    local lab=$1 dir netns file pid pids=() status=0
    dir=$(phw_lab_dir "$lab")
    for file in "$dir"/*.process; do
        [[ -e $file ]] || continue
        file=${file##*/}
        pid=$(phw_node_pid "$lab" "${file%.process}") && pids+=("$pid")
    done
    while read -r netns; do
        for pid in $(ip netns pids "$netns" 2>/dev/null || true); do
            phw_is_ancestor "$pid" || pids+=("$pid")
        done
    done < <(phw_lab_netns "$lab")
    phw_stop "${pids[@]}" || { phw_note "processes of lab '$lab' survive SIGKILL: ${pids[*]}"; status=1; }
    while read -r netns; do
        ip netns del "$netns" || status=1
    done < <(phw_lab_netns "$lab")
    # Only a directory that up.sh marked is ours to remove.
    if [[ -e $dir/.phitwire-lab ]]; then
        rm -rf -- "$dir"
    fi
    rmdir -- "$(phw_run_dir)" 2>/dev/null || true
    return "$status"
}
