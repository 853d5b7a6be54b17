#!/usr/bin/env bash
# The README's tour, verbatim: runs every command of its code blocks, in order, each within a minute. Lab names are made
# unique; features that the kernel lacks are skipped with a reason. Without PHITWIRE_LONG=1 long measurements are
# shortened.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces
(phw_need ping:iputils-ping) || true

# The commands of "A short tour", without their comments.
commands=$T_SCRATCH/commands
awk '/^## /{ inside = ($0 == "## A short tour") } inside && sub(/^    /, "") { sub(/ +#.*$/, ""); print }' \
    "$PHW_ROOT/README.md" | grep -v '^$' >"$commands"
check "the tour has commands" test "$(wc -l <"$commands")" -ge 20
# Words that a user must find there: without one of them the tour has lost its point.
for word in up.sh status.sh phitwire-msgrate impair.sh node.sh down.sh phitwire-bench 'manage reroute' 'topology generate' \
    'phitwire sim' soak reproduce; do
    check "the tour has $word" grep -qF -- "$word" "$commands"
done

# The directory of its `cd`: the scripts, in a writable directory.
tour=$T_SCRATCH/tour
mkdir "$tour"
ln -s "$PHW_SCRIPTS"/* "$tour/"
cd "$tour"
PATH=$PATH:$PHITWIRE_BIN_DIR
export PHITWIRE_NO_INSTALL=1
t_lab demo
demo=$LAB
t_lab xc
xc=$LAB

# A command whose output nobody reads may continue or end, but must not fail. A watcher runs until the tour is over.
watchers=()
run_one() {
    local text=$1 status=0 begin
    begin=$(phw_ms)
    timeout --foreground -k 5 60 bash -c "$text" >"$T_SCRATCH/out" 2>"$T_SCRATCH/err" </dev/null || status=$?
    case $status in
        0) ok "tour: $2 ($(( $(phw_ms) - begin )) ms)" ;;
        "$PHW_SKIP") skip "tour: $2" "$(tail -n 1 "$T_SCRATCH/err")" ;;
        124) not_ok "tour: $2" "took longer than a minute" ;;
        *) not_ok "tour: $2" "status $status"
           tail -n 10 "$T_SCRATCH/out" "$T_SCRATCH/err" | detail ;;
    esac
}

# shortened COMMAND: prints it with fewer seconds, seeds, sizes or loads if it would take long.
shortened() {
    if t_long; then printf '%s\n' "$1"; return; fi
    case $1 in
        *--seconds*) printf '%s\n' "$1" ;;
        phitwire-msgrate*) printf '%s --seconds 0.5\n' "$1" ;;
        'phitwire-bench latency '*) printf '%s --size 8,64,4096 --seconds 0.1\n' "$1" ;;
        'phitwire sim t3e-8x8x8 '*) printf '%s\n' "${1//2000/300}" ;;
        'phitwire sim yarc-64 '*) printf '%s\n' "${1/:0.05/:0.3}" ;;
        'phitwire soak '*) printf '%s\n' "${1/%..20/..3}" ;;
        *) printf '%s\n' "$1" ;;
    esac
}

while IFS= read -r line; do
    named=$(shortened "$line")
    named=${named//--lab demo/--lab $demo}
    named=${named//--lab xc/--lab $xc}
    named=${named//phw-xc-/phw-$xc-}
    case $line in
        'cargo build'*|'sudo '*|'cd netns-scripts '*) ok "tour: $line is done by the test itself" ;;
        *' &')
            # It ends with this script, even if that is interrupted.
            setpriv --pdeathsig TERM bash -c "exec ${named% &}" >"$T_SCRATCH/watch" 2>&1 </dev/null &
            watchers+=($!)
            sleep 1
            check "tour: $line runs on" phw_start_time "$!" ;;
        *) run_one "$named" "$line" ;;
    esac
done <"$commands"
for watcher in "${watchers[@]}"; do
    kill -TERM "$watcher" 2>/dev/null || true
    check "the watcher ends when interrupted" phw_until 10 phw_all_gone "$watcher" || detail <"$T_SCRATCH/watch"
    kill -KILL "$watcher" 2>/dev/null || true
done
check "it has drawn a curve" test -s "$tour/curve.svg"
check "and a network" test -s "$tour/my.svg"
check "lab demo leaves nothing" nothing_left "$demo"
check "nor does lab xc" nothing_left "$xc"

# A reader that exits early is not an error and causes no output, long before the run would be over.
quietly() {
    local name=$1 status begin
    begin=$(phw_ms)
    shift
    { status=0; timeout 60 "$@" 2>"$T_SCRATCH/err" || status=$?; echo "$status" >"$T_SCRATCH/status"; } | head -n 1 >/dev/null
    status=$(<"$T_SCRATCH/status")
    check "$name | head ends quietly" test ! -s "$T_SCRATCH/err"
    check "with the status of a command that is not read any more, or that was done (was $status)" test "$status" = 141 -o "$status" = 0
    check "and soon" test $(( $(phw_ms) - begin )) -lt 50000
}
quietly "phitwire sim" phitwire sim r3-16384 --load 0.1..1.0:0.01 --measure 100000000
quietly "phitwire topology generate" phitwire topology generate blackwidow --processors 4096
quietly "phitwire topology show" phitwire topology show topologies/quickstart.toml
quietly "phitwire reproduce" phitwire reproduce aries-table1
quietly "phitwire --help" phitwire --help
