# shellcheck shell=bash
# Shared by the namespace tests. A test is a script that prints one line per case, as TAP does without numbers:
#   ok - NAME             not ok - NAME: WHY             ok - NAME # SKIP WHY
# and ends with 0 if no case failed, 1 if one did, 4 if nothing could be tried here. tests/run.sh numbers and counts
# the lines. Each test takes its labs down on every exit path, and reports leftovers.
# shellcheck source=../../netns-scripts/lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../../netns-scripts/lib.sh"

T_SCRATCH=$(mktemp -d)
T_LABS=()
T_FAILED=0
T_DONE=0

ok() { printf 'ok - %s\n' "$1"; }
skip() { printf 'ok - %s # SKIP %s\n' "$1" "$2"; }
not_ok() { printf 'not ok - %s: %s\n' "$1" "$2"; T_FAILED=1; }
# More about a failure; not counted.
detail() { sed 's/^/#   /'; }

# Skips the whole test.
skip_all() { skip "${0##*/}" "$1"; T_DONE=1; exit "$PHW_SKIP"; }

# check NAME COMMAND...: a case. The output of COMMAND is shown if it fails.
check() {
    local name=$1 output
    shift
    if output=$("$@" 2>&1); then
        ok "$name"
    else
        not_ok "$name" "status $? of: $*"
        [[ -z $output ]] || printf '%s\n' "$output" | tail -n 30 | detail
    fi
}

# check_fails NAME PATTERN COMMAND...: COMMAND must fail and print PATTERN (extended, on either stream).
check_fails() {
    local name=$1 pattern=$2 output
    shift 2
    if output=$("$@" 2>&1); then
        not_ok "$name" "succeeded: $*"
    elif ! grep -qE -- "$pattern" <<<"$output"; then
        not_ok "$name" "output does not match '$pattern'"
        printf '%s\n' "$output" | tail -n 20 | detail
    else
        ok "$name"
    fi
}

# t_long: whether the long half also runs (tests/run.sh --long): more machines and kinds of links, larger labs, longer
# runs.
t_long() { [[ ${PHITWIRE_LONG:-0} != 0 ]]; }

# A lab name that no other running test has. Registers it for cleanup.
t_lab() {
    LAB=$1_$$
    T_LABS+=("$LAB")
}

# t_topology FILE TOPOLOGY KEY=VALUE...: writes a ready-made topology with changed keys of its [network] section to
# FILE.
t_topology() { t_settings "$PHW_SCRIPTS/topologies/$2.toml" "$1" "${@:3}"; }

# t_settings FROM FILE KEY=VALUE...: writes the topology FROM with changed keys of its [network] section to FILE.
t_settings() {
    local from=$1 file=$2
    shift 2
    awk -v settings="$(printf '%s\n' "$@")" '
        BEGIN {
            n = split(settings, line, "\n")
            for (i = 1; i <= n; i++) { split(line[i], part, "="); ours[part[1]] = 1 }
        }
        function ours_now() { for (i = 1; i <= n; i++) print line[i]; done = 1 }
        /^\[/ { inside = ($0 ~ /^\[network\]/) }
        { key = $1; sub(/=.*/, "", key) }
        inside && (key in ours) { next }
        { print }
        inside && !done { ours_now() }
        END { if (!done) { print "[network]"; ours_now() } }' "$from" >"$file"
}

# t_every_colour FILE: writes the smallest dragonfly with a green, a black and a blue link to FILE: four routers, each
# with one NIC.
t_every_colour() {
    printf '%s\n' 'family = "aries"' 'name = "aries-kinds"' '[dragonfly]' 'groups = 2' 'chassis = 2' 'blades = 2' 'nics = 1' \
        'black_links = 1' 'global_links = 1' 'absent = ["g0-c1s1", "g1-c0s1", "g1-c1s0", "g1-c1s1"]' >"$1"
}

# t_up NAME TOPOLOGY [up.sh options]: brings up a lab of that name, $LAB. Failure ends the test.
t_up() {
    t_lab "$1"
    local output
    if ! output=$("$PHW_SCRIPTS/up.sh" --lab "$LAB" "${@:2}" 2>&1); then
        not_ok "lab $1 comes up" "up.sh failed"
        printf '%s\n' "$output" | tail -n 40 | detail
        exit 1
    fi
}

# t_first COMMAND...: gives COMMAND two shares of busy processors, where permitted. The kernel divides processors among
# sessions first (sched(7), autogroup), so that a nice value alone has no effect against a lab, each of whose nodes has
# its own session. With many more shares a stranger would starve the lab. Its own session also keeps Ctrl-C from it: it
# ends with this test, however that ends.
T_FIRST=''
t_first() {
    local status=0
    # shellcheck disable=SC2016  # expanded there
    setpriv --pdeathsig KILL -- setsid bash -c '{ echo -3 >/proc/self/autogroup; renice -n -3 -p "$$"; } >/dev/null 2>&1 || true; exec "$@"' first "$@" &
    T_FIRST=$!
    wait "$T_FIRST" || status=$?
    T_FIRST=''
    return "$status"
}

# The stranger on the wires (nodes/examples/stranger), $STRANGER: $PHITWIRE_STRANGER, or next to the binaries.
t_stranger() {
    STRANGER=${PHITWIRE_STRANGER:-$PHITWIRE_BIN_DIR/examples/stranger}
    [[ -x $STRANGER ]] || skip_all "$STRANGER does not exist (cargo build --release --workspace --lib --bins --example stranger)"
}

t_impair() { "$PHW_SCRIPTS/impair.sh" --lab "$LAB" "$@"; }
t_ctl() { "$PHITWIRE_BIN_DIR/phitwire" ctl --lab "$LAB" "$@"; }

# t_rate FILE [options]: runs the message-rate tool on $LAB, with its JSON in FILE. The status is that of the tool.
t_rate() {
    timeout --foreground -k 5 "${T_RATE_TIMEOUT:-120}" "$PHITWIRE_BIN_DIR/phitwire-msgrate" --lab "$LAB" --json "${@:2}" \
        >"$1" 2>"$1.err"
}

# long_rate FILE OPTIONS...: a run that lasts until it is interrupted, however long a busy machine takes for the events
# in between. A job of the caller's: long_rate ... & runner=$!; ...; stop_job "$runner". Its status is 130 if nothing
# else is wrong.
long_rate() {
    # Run in this process, which gets the signal: timeout(1) would kill it five seconds later.
    exec "$PHITWIRE_BIN_DIR/phitwire-msgrate" --lab "$LAB" --json --seconds 90 "${@:2}" >"$1" 2>"$1.err"
}
# steady_rate FILE OPTIONS...: the same with 2,000 messages per second from each source, a tenth of what a lab carries on
# two processors. For tests of what happens next to traffic: at full rate it would wait for the processors instead.
steady_rate() { long_rate "$1" --rate 2000 "${@:2}"; }
stop_job() {
    kill -TERM "$1" 2>/dev/null || true
    settled "$1"
}

field() { jq -r --arg key "$2" '.[$key] // error("no field \($key)")' "$1"; }

# puts_done NODE: messages of NODE answered since it started.
puts_done() { t_ctl "$1" stats --json | jq '[.writes_done, .reads_done, .requests_done] | map(. // 0) | add'; }

# under_way NODE [COUNT]: waits until NODE has had COUNT more messages answered. A background run has then started,
# however busy the machine is; a sleep would prove nothing.
under_way() {
    goes_on "$@" || not_ok "messages of $1 flow" "fewer than ${2:-1000} in 20 s"
}
# goes_on NODE [COUNT]: the same, as a condition.
goes_on() {
    local start
    start=$(puts_done "$1") && [[ -n $start ]] || return 1
    phw_until 20 has_done "$1" $(( start + ${2:-1000} ))
}
has_done() { (( $(puts_done "$1") >= $2 )); }

# settled PID: waits for a background job of this shell, and sets $SETTLED to its status. (`check wait PID` would run in
# a subshell, of which it is not a child.)
# shellcheck disable=SC2034  # read by the tests
settled() {
    SETTLED=0
    wait "$1" || SETTLED=$?
}

# exactly_once FILE [MIN]: everything sent was acknowledged, once, intact, in order, and at least MIN messages.
exactly_once() {
    [[ -s $1 ]] && jq -e --argjson min "${2:-1000}" '
        .lost == 0 and .duplicated == 0 and .corrupted == 0 and .misordered == 0 and .timed_out == 0
        and .sent == .acknowledged and .acknowledged >= $min' "$1" >/dev/null && return 0
    jq -c '{sent, acknowledged, lost, duplicated, corrupted, misordered, timed_out}' "$1" || true
    cat -- "$1.err"
    return 1
}

# honest FILE: missing messages were reported as timed out; nothing duplicated, corrupted or out of order.
honest() {
    [[ -s $1 ]] && jq -e '.duplicated == 0 and .corrupted == 0 and .misordered == 0
        and .sent == .acknowledged + .timed_out' "$1" >/dev/null && return 0
    jq -c '{sent, acknowledged, lost, duplicated, corrupted, misordered, timed_out}' "$1" || true
    cat -- "$1.err"
    return 1
}

# rate_case NAME MIN [options]: a run as one case: exactly once, at least MIN messages.
rate_case() {
    local name=$1 min=$2 file=$T_SCRATCH/rate.json
    shift 2
    if t_rate "$file" "$@" && exactly_once "$file" "$min" >/dev/null; then
        ok "$name ($(jq -r '"\(.acknowledged) messages, \(.retransmitted_packets) packets resent, slowest \(.latency_us.max / 1000 | floor) ms"' "$file"))"
    else
        not_ok "$name" "not exactly once, or fewer than $min messages"
        { exactly_once "$file" "$min" || true; tail -n 20 "$file.err"; } 2>&1 | detail
    fi
}

# counter_sum PATTERN: the sum of all counters of $LAB whose name matches the extended pattern.
counter_sum() {
    t_ctl all stats --json | jq --arg pattern "$1" \
        '[.[] | to_entries[] | select((.key | test($pattern)) and (.value | type == "number")) | .value] | add // 0'
}

# lost_share [LINK]: the share of frames lost to the impairments of $LAB, or of those links, in per mille.
lost_share() {
    "$PHW_SCRIPTS/impair.sh" --lab "$LAB" "${1:-all}" show | sed -n 's/.*(\([0-9]*\) frames passed, \([0-9]*\) lost)/\1 \2/p' \
        | awk '{ passed += $1; lost += $2 } END { printf "%d\n", passed + lost ? lost * 1000 / (passed + lost) : 0 }'
}

# nft_lost_share: the same for nftables, relative to the frames that the interfaces received: the wires' names end both
# the rules' tables and the interfaces, and each namespace is queried once.
nft_lost_share() {
    local netns
    while read -r netns; do
        nsenter "--net=/run/netns/$netns" nft list ruleset | awk -v at="$netns" '
            $1 == "table" { sub(/^phw_/, "", $3); interface = $3 }
            match($0, /counter packets [0-9]+/) { print "lost", at "/" interface, substr($0, RSTART + 16, RLENGTH - 16) }'
        ip -n "$netns" -j -s link show | jq -r --arg at "$netns" '.[] | "all \($at)/\(.ifname) \(.stats64.rx.packets)"'
    done < <(phw_lab_netns "$LAB") | awk '
        $1 == "lost" { lost += $3; ours[$2] = 1 }
        $1 == "all" { packets[$2] = $3 }
        END { for (at in ours) all += packets[at]; printf "%d\n", all ? lost * 1000 / all : 0 }'
}

between() { (( $1 >= $2 && $1 <= $3 )) || { echo "$1 is not in $2 to $3"; return 1; }; }

# The last log lines of a lab's processes, without routine ones.
t_last_words() {
    local log
    for log in "$(phw_lab_dir "$1")"/*.log; do
        grep -vE 'event=(Up|TrafficDone) |: running ' "$log" | tail -n 4 | cut -c 1-240 | sed "s/^/$(basename "$log" .log): /" || true
    done
}

nothing_left() {
    local left
    left=$(phw_left_of "$1")
    [[ -z $left ]] || { printf '%s\n' "$left"; return 1; }
}

# shellcheck disable=SC2317  # called by the trap
t_finish() {
    local status=$? lab
    trap '' INT TERM HUP
    trap - EXIT
    if (( status != 0 && T_FAILED == 0 && T_DONE == 0 )); then
        not_ok "${0##*/}" "ended early with status $status"
    fi
    [[ -z $T_FIRST ]] || phw_stop "$T_FIRST" || true
    for lab in "${T_LABS[@]}"; do
        (( T_FAILED == 0 )) || [[ ! -d $(phw_lab_dir "$lab") ]] || t_last_words "$lab" | detail
        "$PHW_SCRIPTS/down.sh" --lab "$lab" 2>/dev/null || not_ok "lab $lab goes down" "down.sh failed"
        nothing_left "$lab" >/dev/null || not_ok "nothing is left of lab $lab" "$(phw_left_of "$lab" | paste -sd ' ')"
    done
    rm -rf -- "$T_SCRATCH"
    (( T_FAILED == 0 )) || status=1
    exit "$status"
}
trap t_finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

phw_binaries

# For tests that need namespaces: they run as root of the machine or of a user namespace.
t_need_namespaces() {
    if ! phw_is_root; then
        skip_all "network namespaces need root or rootless.sh"
    fi
    phw_need_lab_tools
}

# For tests that run MPI programs: needs Open MPI with its compiler, and libfabric's own programs.
t_need_mpi() {
    (phw_need mpirun:openmpi-bin mpicc:libopenmpi-dev+gcc+libc6-dev fi_pingpong:libfabric-bin ss:iproute2) 2>/dev/null \
        || skip_all "missing Open MPI or libfabric (sudo apt-get install openmpi-bin libopenmpi-dev libfabric-bin)"
}

# Whether nftables can drop frames here (it cannot in user-mode Linux).
t_has_nft() {
    command -v nft >/dev/null || { phw_is_machine_root && (phw_need nft:nftables) 2>/dev/null; } || return 1
    phw_has_nft_loss
}
