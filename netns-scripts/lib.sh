# shellcheck shell=bash
# Shared by the lab scripts: names, the state of a lab, dependencies, binaries, processes. Sourced, never run. Every
# function begins with `phw_`; every message of a script begins with its name.
#
# A lab is a directory `RUN/LAB` and the network namespaces `phw-LAB-NODE`:
#   plan.tsv       nodes and links, as `phitwire topology plan` printed them
#   lab.env        how the lab was brought up, one NAME=VALUE per line: read into PHW_LAB_*, never sourced
#   topology.toml  the description that the processes read
#   NODE.process   "PID START": a process id and its start time, so that a reused id is never mistaken for ours
#   .up, .starter  the same for a running up.sh, and for the sessions that have started nodes
#   .phitwire-lab  marks a directory that may be removed; .phitwire-run, in RUN, marks one made by up.sh
#   NODE.log       output of the process
#   NODE.sock      its control socket, and NODE.pid, its lock: both made by the process itself
# RUN is $PHITWIRE_RUN_DIR, else /run/phitwire for root, else ${XDG_RUNTIME_DIR:-/tmp}/phitwire-UID, as for the
# binaries. Only its user may write there, whatever the umask: in /tmp, anyone could have created it first. up.sh builds
# a lab as RUN/.new-LAB.PID and moves it to RUN/LAB with its mark inside, so that a lab without a mark never exists.
#
# Exit statuses: 0 success, 1 failure, 2 invalid arguments, 4 not possible here (a skip, with its reason on stderr).

set -Eeuo pipefail
# Undo settings of the caller's shell: `cd` must use the given path and print nothing, and files may be overwritten.
unset CDPATH
set +C

PHW_NAME=${0##*/}
PHW_SCRIPTS=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
PHW_ROOT=$(cd -- "$PHW_SCRIPTS/.." && pwd -P)
PHW_SKIP=4

# Make it absolute: scripts and processes have different working directories.
[[ ${PHITWIRE_RUN_DIR:-/} == /* ]] || export PHITWIRE_RUN_DIR=$PWD/$PHITWIRE_RUN_DIR

# Debian keeps these out of an ordinary user's PATH; cargo's directory is missing under `sudo` and cron.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin${HOME:+:$HOME/.cargo/bin}
export PATH

phw_note() { printf '%s: %s\n' "$PHW_NAME" "$*" >&2; }
phw_die() { phw_note "$@"; exit 1; }
phw_bad_call() { phw_note "$@"; exit 2; }
phw_skip() { phw_note "skipped: $*"; exit "$PHW_SKIP"; }

# The comment at the head of a script is its manual.
phw_usage() { sed -n '2,/^[^#]/{/^# shellcheck/d;/^#/{s/^# \{0,1\}//;p;};}' -- "$0"; }

# ---- Environment --------------------------------------------------------------------------------

phw_is_root() { (( EUID == 0 )); }

# Whether we are root of the machine, not only of a user namespace.
phw_is_machine_root() {
    phw_is_root && awk 'NR == 1 { exit !($1 == 0 && $2 == 0 && $3 == 4294967295) }' /proc/self/uid_map
}

phw_is_debian() {
    [[ -r /etc/os-release ]] && command -v apt-get >/dev/null \
        && (. /etc/os-release && [[ " ${ID:-} ${ID_LIKE:-} " =~ \ (debian|ubuntu)\  ]])
}

phw_need_root() {
    phw_is_root || phw_die "namespaces need root: run this with sudo, or as $PHW_SCRIPTS/rootless.sh $0 ..."
}

# ---- Dependencies -------------------------------------------------------------------------------

# phw_need COMMAND:PACKAGES... installs missing commands if allowed, or else names them and fails. Several packages are
# joined by '+'. PHITWIRE_NO_INSTALL=1 forbids installing.
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
        phw_note "missing commands: ${missing[*]}"
        phw_die "install them with: sudo apt-get install ${packages[*]}"
    fi
    phw_note "installing ${packages[*]}"
    local log
    log=$(mktemp)
    if ! phw_apt install "${packages[@]}" >"$log" 2>&1 \
        && ! { phw_apt update && phw_apt install "${packages[@]}"; } >>"$log" 2>&1; then
        cat -- "$log" >&2
        rm -f -- "$log"
        phw_die "apt-get cannot install ${packages[*]}"
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

# Whether this kernel has netem: tried in a namespace that ends with its process, so that nothing is left behind.
phw_has_netem() {
    local how=-n
    phw_is_root || how=-Urn
    unshare "$how" tc qdisc add dev lo root netem loss 1% 2>/dev/null
}

# Whether nftables can drop frames at random, tried the same way.
phw_has_nft_loss() {
    local how=-n
    phw_is_root || how=-Urn
    unshare "$how" nft 'add table netdev t; add chain netdev t c { type filter hook ingress device "lo" priority 0; }
        add rule netdev t c numgen random mod 10 < 1 drop' 2>/dev/null
}

phw_need_lab_tools() { phw_need ip:iproute2 tc:iproute2 nsenter:util-linux setsid:util-linux jq:jq ethtool:ethtool pgrep:procps setpriv:util-linux unshare:util-linux column:bsdextrautils; }

# ---- Binaries -----------------------------------------------------------------------------------

# Directory of the binaries: $PHITWIRE_BIN_DIR as it is, or our own release build, updated once per process tree.
phw_binaries() {
    if [[ -n ${PHITWIRE_BIN_DIR:-} ]]; then
        [[ -x $PHITWIRE_BIN_DIR/phitwire ]] || phw_die "PHITWIRE_BIN_DIR: no phitwire in $PHITWIRE_BIN_DIR"
        return 0
    fi
    local target=${CARGO_TARGET_DIR:-$PHW_ROOT/target}
    [[ $target == /* ]] || target=$PHW_ROOT/$target
    phw_build
    export PHITWIRE_BIN_DIR=$target/release
}

# Updates the release build.
phw_build() {
    local target=${CARGO_TARGET_DIR:-$PHW_ROOT/target} newer
    [[ $target == /* ]] || target=$PHW_ROOT/$target
    if [[ -x $target/release/phitwire && -x $target/release/phitwire-msgrate ]]; then
        newer=$(cd "$PHW_ROOT" && find Cargo.toml Cargo.lock src framing machines client fabric nodes bench -name target -prune -o \
            \( -name '*.rs' -o -name '*.toml' -o -name Cargo.lock \) -newer "$target/release/phitwire" -print -quit)
        [[ -z $newer ]] && return 0
    fi
    phw_need_cargo
    phw_need cc:gcc+libc6-dev
    phw_note "building (cargo build --release)"
    (cd "$PHW_ROOT" && phw_cargo build --release --lib --bins --locked </dev/null >&2) || phw_die "the build failed"
    # Cargo does not touch an up-to-date binary; without this, every later call would run Cargo again.
    touch -c "$target/release/phitwire"
}

# Runs cargo as the user who called sudo if cargo is theirs and not root's, so that it finds their toolchain and leaves
# no root-owned files in `target`.
phw_cargo_user() {
    local home
    phw_is_machine_root && ! command -v cargo >/dev/null && [[ -n ${SUDO_USER:-} && $SUDO_USER != root ]] || return 1
    home=$(getent passwd "$SUDO_USER" | cut -d: -f6)
    [[ -x $home/.cargo/bin/cargo ]] && printf '%s\n' "$SUDO_USER $home"
}

phw_need_cargo() {
    command -v cargo >/dev/null || phw_cargo_user >/dev/null \
        || phw_die "no Rust toolchain: cargo is not in PATH (get it from https://rustup.rs)"
}

phw_cargo() { phw_as_cargo_user cargo "$@"; }

phw_as_cargo_user() {
    local user home
    if read -r user home < <(phw_cargo_user); then
        runuser -u "$user" -- env "HOME=$home" "PATH=$PATH:$home/.cargo/bin" "$@"
    else
        "$@"
    fi
}

phw() { "$PHITWIRE_BIN_DIR/phitwire" "$@"; }

# ---- Names and directories ----------------------------------------------------------------------

# No '-' in lab names, so that phw-LAB-NODE can be parsed; short, because a socket path is limited to 108 bytes.
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

# Whether the run directory exists. A directory of another user, or one that others can write to, is never read: it is
# rejected with the same message as by the binaries.
phw_has_run_dir() {
    local run why mode remedy='set PHITWIRE_RUN_DIR to a directory that you own'
    run=$(phw_run_dir)
    [[ -e $run || -L $run ]] || return 1
    if [[ -L $run ]]; then
        why='it is a symbolic link'
    elif [[ ! -d $run ]]; then
        why='it is a file'
    elif [[ ! -O $run ]]; then
        why="it belongs to user $(stat -c %u -- "$run")"
    else
        mode=$(stat -c %a -- "$run")
        (( 8#$mode & 8#022 )) || return 0
        why="its mode is $mode"
        # In a shared directory such as /tmp, others must still be able to write.
        if (( 8#$mode & 8#1000 )); then remedy+=", such as $run/phitwire"; else remedy="run \`chmod go-w $run\`"; fi
    fi
    phw_die "$run must be a directory writable only by you: $why; $remedy"
}

# Creates the run directory and marks it as ours: down.sh removes no other.
phw_make_run_dir() {
    local run error
    run=$(phw_run_dir)
    [[ -d ${run%/*}/ ]] || error=$(umask 077; mkdir -p -- "${run%/*}" 2>&1) || phw_die "$error"
    if error=$(mkdir -m 700 -- "$run" 2>&1); then
        phw_write "$run/.phitwire-run" ''
    else
        phw_has_run_dir || phw_die "$error"
    fi
}

# Removes the run directory if it is ours and empty.
phw_drop_run_dir() {
    local run
    run=$(phw_run_dir)
    [[ -O $run/.phitwire-run ]] || return 0
    rm -f -- "$run/.phitwire-run"
    rmdir -- "$run" 2>/dev/null || [[ ! -d $run ]] || : >"$run/.phitwire-run"
}

# phw_write FILE TEXT: fails with the kernel's reason, such as a full disk.
phw_write() {
    local error
    error=$( { printf %s "$2" >"$1"; } 2>&1) || phw_die "cannot write $1: ${error##*: }"
}

# phw_why_not DIRECTORY: prints why nothing can be written there; fails if writing works. Tries more than a page, which
# a process that failed for lack of space may have freed when it ended.
phw_why_not() {
    local error probe=$1/.probe.$$
    if error=$( { head -c 65536 /dev/zero >"$probe"; } 2>&1); then
        rm -f -- "$probe"
        return 1
    fi
    rm -f -- "$probe"
    printf '%s\n' "$1: ${error##*: }"
}

# phw_need_room NODES: checks that the run directory's file system has room for a lab: a log, a socket and three small
# files per node. Says nothing if the file system does not report its size.
phw_need_room() {
    local run free files kib=$(( 64 + $1 * 16 )) names=$(( 16 + $1 * 5 )) blocks inodes
    run=$(phw_run_dir)
    read -r blocks free inodes files < <(stat -f -c '%b %a %c %d' -- "$run") || return 0
    free=$(( free * $(stat -f -c %S -- "$run") / 1024 ))
    (( blocks == 0 || free >= kib )) \
        || phw_die "$run is full: $free KiB are free, and this lab needs at least $kib; free some space, or set PHITWIRE_RUN_DIR to another directory"
    (( inodes == 0 || files >= names )) \
        || phw_die "$run is full: $files files can be created, and this lab needs at least $names; free some space, or set PHITWIRE_RUN_DIR to another directory"
}

phw_lab_dir() { printf '%s/%s\n' "$(phw_run_dir)" "$1"; }
# Directory whose files `ip netns exec` mounts over those in /etc.
PHW_ETC_NETNS=/etc/netns
phw_netns() { printf 'phw-%s-%s\n' "$1" "$2"; }

# Names of labs that left anything behind: a directory, a partial one, or a namespace.
phw_labs() {
    local run have=0
    run=$(phw_run_dir)
    phw_has_run_dir && have=1
    {
        (( ! have )) || find "$run" -regextype posix-extended -mindepth 1 -maxdepth 1 -type d \
            \( -exec test -e '{}/.phitwire-lab' \; -o -regex '.*/\.new-[A-Za-z0-9_]+\.[0-9]+' \) -printf '%f\n' \
            | sed 's/^\.new-\(.*\)\.[0-9]*$/\1/'
        { phw_all_netns; ls -1 "$PHW_ETC_NETNS" 2>/dev/null || true; } | sed -n 's/^phw-\([A-Za-z0-9_]*\)-.*/\1/p'
    } | sort -u
}

phw_all_netns() { ls -1 /run/netns 2>/dev/null || true; }
# Directories with its hosts files.
phw_lab_etc() { find "$PHW_ETC_NETNS" -mindepth 1 -maxdepth 1 -name "phw-$1-*" 2>/dev/null || true; }
phw_lab_netns() { phw_all_netns | grep "^phw-$1-" || true; }

# Partial directories of a lab left by a killed up.sh; those of a running up.sh are not listed.
phw_half_made() {
    local half pid
    for half in "$(phw_run_dir)/.new-$1."*; do
        pid=${half##*.}
        [[ -d $half && $pid =~ ^[0-9]+$ ]] || continue
        if [[ -e $half/.up ]]; then
            phw_recorded "$half/.up" >/dev/null && continue
        elif [[ -e /proc/$pid ]]; then
            continue
        fi
        printf '%s\n' "$half"
    done
}

# Whether anything of a lab exists.
phw_lab_exists() {
    [[ -z $(phw_lab_netns "$1")$(phw_lab_etc "$1") ]] || return 0
    phw_has_run_dir || return 1
    [[ -e $(phw_lab_dir "$1") || -n $(phw_half_made "$1") ]]
}

# Records how a lab was brought up: phw_write_env LAB NAME VALUE...
phw_write_env() {
    local lab=$1 text=''
    shift
    while (( $# )); do
        [[ $2 != *$'\n'* ]] || phw_die "file names with line breaks are not supported: $2"
        text+="$1=$2"$'\n'
        shift 2
    done
    phw_write "$(phw_lab_dir "$lab")/lab.env" "$text"
}

# phw_not_up LAB: fails, and names the labs that are up; an omitted --lab is a common mistake.
phw_not_up() {
    local others
    others=$(phw_labs | paste -sd ' ')
    phw_die "lab '$1' is not up (up.sh TOPOLOGY --lab $1)${others:+; running labs: $others (--lab NAME)}"
}

# Reads a lab's lab.env into PHW_LAB_*; fails with a message if the lab is not up.
phw_open_lab() {
    local dir name value
    dir=$(phw_lab_dir "$1")
    if ! phw_has_run_dir || [[ ! -r $dir/lab.env || ! -r $dir/plan.tsv ]]; then
        phw_lab_exists "$1" || phw_not_up "$1"
        ! phw_recorded "$dir/.up" >/dev/null || phw_die "lab '$1' is coming up"
        phw_die "lab '$1' is left behind: down.sh --lab $1"
    fi
    while IFS='=' read -r name value; do
        case $name in
            MODE|LINK|MTU|TOPOLOGY|RUN_ARGUMENTS|BIN_DIR) printf -v "PHW_LAB_$name" %s "$value" ;;
            *) phw_die "$dir/lab.env: unknown name '$name'" ;;
        esac
    done <"$dir/lab.env"
    # A lab keeps using the binaries it was brought up with.
    export PHITWIRE_BIN_DIR=${PHITWIRE_BIN_DIR:-$PHW_LAB_BIN_DIR}
}

phw_plan_nodes() { awk -F '\t' '$1 == "node" { print $2 }' "$(phw_lab_dir "$1")/plan.tsv"; }
# Prints ID NODE_A PORT_A NODE_B PORT_B IF_A IF_B ADDR_A ADDR_B, one link per line.
phw_plan_nics() { awk -F '\t' '$1 == "node" && $3 == "nic" { print $2 }' "$(phw_lab_dir "$1")/plan.tsv"; }
phw_plan_links() { awk -F '\t' -v OFS='\t' '$1 == "link" { $1 = ""; print substr($0, 2) }' "$(phw_lab_dir "$1")/plan.tsv"; }

# phw_find_links LAB WHICH: prints the plan lines of the links WHICH: all, a link id, NODE:PORT, NODE-NODE or NODE.
phw_find_links() {
    phw_plan_links "$1" | awk -F '\t' -v which="$2" '
        which == "all" || which == $1 ||
        which == $2 ":" $3 || which == $2 ":" $6 || which == $4 ":" $5 || which == $4 ":" $7 ||
        which == $2 "-" $4 || which == $4 "-" $2 || which == $2 || which == $4'
}

# ---- Processes ----------------------------------------------------------------------------------

# Checked separately.
# shellcheck source=/dev/null
. "$PHW_SCRIPTS/processes.sh"

# ---- Taking a lab down --------------------------------------------------------------------------

# phw_members LAB: prints the ids of a lab's processes, one per line: recorded ones, those of a starter's session, which
# outlives the starter, and everything in its namespaces. Never this process or its callers.
phw_members() {
    local dir file pid session ours
    local -a command
    dir=$(phw_lab_dir "$1")
    ours=$(phw_ancestors)
    {
        for file in "$dir"/*.process; do
            [[ ! -e $file ]] || phw_recorded "$file" || true
        done
        [[ ! -e $dir/.starter ]] || while read -r session _; do
            # Only those that name this lab: once a session has ended, its number may be reused.
            for pid in $(pgrep -s "$session"); do
                { mapfile -d '' -t command <"/proc/$pid/cmdline"; } 2>/dev/null || continue
                [[ "${command[*]} " != *" $dir"[/\ ]* ]] || echo "$pid"
            done
        done <"$dir/.starter"
        phw_in_netns "$1"
    } | sort -un | while read -r pid; do
        [[ $ours == *" $pid "* ]] || ! phw_runs "$pid" || echo "$pid"
    done
}

# Processes in the namespaces of a lab. Reads all of /proc once, not once per namespace like `ip netns pids`.
phw_in_netns() {
    local spaces
    mapfile -t spaces < <(phw_lab_netns "$1" | sed 's|^|/run/netns/|')
    (( ${#spaces[@]} )) || return 0
    { stat -L -c '%d:%i space' -- "${spaces[@]}"; stat -L -c '%d:%i %n' /proc/[0-9]*/ns/net; } 2>/dev/null \
        | awk '$2 == "space" { ours[$1] = 1; next } $1 in ours { split($2, part, "/"); print part[3] }' || true
}

# Ends the processes of a lab. A list of them is soon outdated, so list them again until there are none.
phw_end_members() {
    local starter pids='' round
    for (( round = 0; round < 20; round++ )); do
        while starter=$(phw_recorded "$(phw_lab_dir "$1")/.starter"); do
            phw_stop "$starter" || break
        done
        pids=$(phw_members "$1")
        [[ -n $pids ]] || return 0
        # shellcheck disable=SC2086  # a list
        phw_stop $pids || break
    done
    phw_note "cannot end these processes of lab '$1': ${pids//$'\n'/ }"
    return 1
}

# Removes everything of a lab; may be called in any state of it, and repeatedly. A lab owns its processes, its
# namespaces (interfaces and qdiscs go with them), and its directory.
phw_remove_lab() {
    local lab=$1 dir half status=0 have=0
    dir=$(phw_lab_dir "$lab")
    phw_has_run_dir && have=1
    phw_end_members "$lab" || status=1
    if phw_is_root; then
        phw_lab_netns "$lab" | sed 's/^/netns del /' | ip -force -batch - || status=1
        phw_lab_etc "$lab" | while read -r half; do rm -rf -- "$half" || exit 1; done || status=1
        rmdir -- "$PHW_ETC_NETNS" 2>/dev/null || true
    elif [[ -n $(phw_lab_netns "$lab") ]]; then
        # This may be another user's lab of the same name; remove what is ours anyway.
        phw_note "lab '$lab' has network namespaces, which only root can remove: run this as the user who brought the lab up"
        status=1
    fi
    (( have )) || return "$status"
    phw_end_members "$lab" || status=1
    while read -r half; do
        rm -rf -- "$half" || status=1
    done < <(phw_half_made "$lab")
    # Remove only a directory that up.sh marked.
    if [[ -e $dir/.phitwire-lab ]]; then
        # A process that just ended may still be writing.
        phw_until 2 rm -rf -- "$dir" || status=1
    elif [[ -e $dir ]] && ! rmdir -- "$dir" 2>/dev/null; then
        phw_note "$dir has no mark of up.sh and is not empty: check its contents and remove it by hand"
        status=1
    fi
    phw_drop_run_dir
    return "$status"
}

# phw_left_of LAB: prints everything that is left of a lab: namespaces, files, processes.
phw_left_of() {
    phw_lab_netns "$1"
    phw_lab_etc "$1"
    [[ ! -e $(phw_lab_dir "$1") ]] || phw_lab_dir "$1"
    phw_half_made "$1"
    pgrep -af -- "phitwire (run|wait) .*--lab $1( |\$)" || true
}
