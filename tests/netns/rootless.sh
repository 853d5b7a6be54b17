#!/usr/bin/env bash
# A lab without root: up, traffic, status, down in a user namespace; no process survives it, and Ctrl-C ends it.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"

status=0
reason=$("$PHW_SCRIPTS/rootless.sh" true 2>&1) || status=$?
(( status != PHW_SKIP )) || skip_all "$(tail -n 1 <<<"$reason")"

# Ctrl-C reaches the terminal's whole process group, which setsid creates here. A shell's background job ignores SIGINT
# unless configured otherwise.
for command in "sleep 600" "bash -c 'trap : TERM; sleep 600; true'"; do
    eval "exec env --default-signal=INT setsid '$PHW_SCRIPTS/rootless.sh' $command" >"$T_SCRATCH/interrupted" 2>&1 &
    pid=$!
    phw_until 20 pgrep -x sleep -g "$pid" >/dev/null \
        || { not_ok "rootless.sh $command runs" "not running after 20 s"; detail <"$T_SCRATCH/interrupted"; }
    kill -INT -- "-$pid"
    check "Ctrl-C ends rootless.sh $command" phw_until 15 phw_all_gone "$pid"
    kill -KILL -- "-$pid" 2>/dev/null || true
    settled "$pid"
    check "with the status of an interrupted command (was $SETTLED)" test "$SETTLED" = 130
done

# As an ordinary user, if there is one: root's entry into a user namespace proves less.
as=()
if phw_is_machine_root && id nobody >/dev/null 2>&1 \
    && runuser -u nobody -- test -r "$PHW_SCRIPTS/up.sh" -a -x "$PHITWIRE_BIN_DIR/phitwire"; then
    as=(runuser -u nobody -- env HOME=/tmp)
fi

# Tests of cargo need no binaries, and may run before there are any: they used to be skipped silently in that case.
for how in "" "${as[*]}"; do
    # shellcheck disable=SC2086  # words
    check "a command needs no binaries${how:+, as an ordinary user}" env $how PHITWIRE_BIN_DIR=none "$PHW_SCRIPTS/rootless.sh" true
    # shellcheck disable=SC2086  # words
    check "nor do tests of cargo${how:+, as an ordinary user}" \
        env -C "$PHW_ROOT/nodes" $how ../tests/runner.sh 0 ip link add p0 type veth peer name p1
    [[ -n ${as[0]:-} ]] || break
done
# runner.sh prints the result of an earlier run of a binary, with its status.
mkdir "$T_SCRATCH/before"
printf 'test a ... FAILED\n' >"$T_SCRATCH/before/t.out"
printf 'why\n' >"$T_SCRATCH/before/t.err"
printf '101\n' >"$T_SCRATCH/before/t.status"
status=0
said=$(PHITWIRE_TESTED=$T_SCRATCH/before "$PHW_ROOT/tests/runner.sh" 4 /nowhere/t 2>&1) || status=$?
check "a failure that was found before stays one" test "$status $said" = $'101 test a ... FAILED\nwhy'
check_fails "a lab without binaries misses them by name" "PHITWIRE_BIN_DIR: no phitwire in /nowhere" \
    env PHITWIRE_BIN_DIR=/nowhere "$PHW_SCRIPTS/rootless.sh" "$PHW_SCRIPTS/up.sh" pair --lab "none_$$"

t_lab rootless
output=$T_SCRATCH/output
"${as[@]}" "$PHW_SCRIPTS/rootless.sh" bash -c '
    set -e
    cd "$1"
    ./up.sh quickstart --lab "$2"
    ./status.sh --lab "$2"
    "$PHITWIRE_BIN_DIR/phitwire-msgrate" --lab "$2" --seconds 0.5 --json >/run/rate.json
    jq -c "{acknowledged, lost, duplicated, corrupted, misordered, timed_out}" /run/rate.json
    exit 42' bash "$PHW_SCRIPTS" "$LAB" >"$output" 2>&1 && status=0 || status=$?
check "a lab runs in a user namespace${as[0]:+, as an ordinary user}" test "$status" = 42
(( status == 42 )) || detail <"$output"
check "its messages arrive exactly once" grep -E '"lost":0,"duplicated":0,"corrupted":0,"misordered":0,"timed_out":0' "$output"
check "all links were up" grep -E "lab $LAB: up" "$output"
check "the machine's own namespaces are untouched" nothing_left "$LAB"

# Real netem without root: user-mode Linux in a user namespace, where the machine's root appears as nobody.
if ! command -v linux.uml >/dev/null; then
    skip "rootless.sh with-netem.sh COMMAND" "user-mode Linux is not installed: sudo apt-get install user-mode-linux"
else
    status=0
    timeout 120 "${as[@]}" "$PHW_SCRIPTS/rootless.sh" "$PHW_SCRIPTS/with-netem.sh" --timeout 50 bash -c '
        ip netns add scratch && tc -n scratch qdisc add dev lo root netem loss 5% && tc -n scratch qdisc show dev lo
        exit 42' >"$output" 2>&1 </dev/null || status=$?
    check "rootless.sh with-netem.sh COMMAND gives its status" test "$status" = 42
    (( status == 42 )) || detail <"$output"
    check "and it had netem" grep -E "qdisc netem .*loss 5%" "$output"
fi
