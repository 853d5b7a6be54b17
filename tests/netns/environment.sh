#!/usr/bin/env bash
# Unusual environments: inherited shell settings, ways of calling the scripts, and topologies that are not files.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

up=$PHW_SCRIPTS/up.sh status=$PHW_SCRIPTS/status.sh
checkout=$(dirname -- "$PHW_SCRIPTS")

# called_from HOW...: status.sh, called this way, finds its library and prints its report.
called() { check_fails "status.sh $1" "status.sh: lab 'none_$$' is not up" "${@:2}"; }
cd "$checkout"
called "under CDPATH" env CDPATH=. bash netns-scripts/status.sh --lab "none_$$"
called "without HOME" env -u HOME bash netns-scripts/status.sh --lab "none_$$"
ln -s "$status" "$T_SCRATCH/status.sh"
called "through a symbolic link" "$T_SCRATCH/status.sh" --lab "none_$$"
ln -s "$checkout" "$T_SCRATCH/-checkout"
cd "$T_SCRATCH"
called "by a path that begins with a dash" bash -- -checkout/netns-scripts/status.sh --lab "none_$$"
check "and it shows its manual" bash -c 'bash -- -checkout/netns-scripts/status.sh --help | grep -q "^status.sh "'
called "where files are not to be overwritten" bash -o noclobber "$status" --lab "none_$$"
check "a lab comes up there" env SHELLOPTS=noclobber "$up" pair --lab "clobber_$$"
check "and goes down" env SHELLOPTS=noclobber "$PHW_SCRIPTS/down.sh" --lab "clobber_$$"
check "which leaves nothing" nothing_left "clobber_$$"
check "a lab comes up without a place for temporary files" env TMPDIR=/nonexistent "$up" pair --lab "tmp_$$"
T_LABS+=("tmp_$$")
check "its processes are restarted there, too" env TMPDIR=/nonexistent "$PHW_SCRIPTS/node.sh" --lab "tmp_$$" restart nic0
T_LABS+=("files_$$")
check "another comes up" "$up" pair --lab "files_$$"
# no_deleted LAB: no process of the lab keeps a deleted file open.
no_deleted() {
    local pid pids
    pids=$(phw_members "$1")
    [[ -n $pids ]] || { echo "no processes"; return 1; }
    for pid in $pids; do
        ! find "/proc/$pid/fd" -lname '*(deleted)' -printf "$pid: %f is %l\n" | grep . || return 1
    done
}
check "no process of it has a deleted file open" no_deleted "files_$$"
for lab in "tmp_$$" "files_$$"; do "$PHW_SCRIPTS/down.sh" --lab "$lab"; done
check_fails "missing binaries are named" "PHITWIRE_BIN_DIR: no phitwire in /nowhere" \
    env PHITWIRE_BIN_DIR=/nowhere "$up" pair --lab "none_$$"

for value in 08 0576 575 65536 99999999999999999999; do
    check_fails "--mtu $value is rejected" "--mtu must be 576 to 65535, not '$value'" "$up" pair --lab "none_$$" --mtu "$value"
done
check_fails "a timeout beyond the shell's range is rejected" "at most 999999, not" \
    "$up" pair --lab "none_$$" --timeout 99999999999999999999

# Nothing is copied before it is examined: the run directory is shared.
mkfifo "$T_SCRATCH/pipe"
truncate -s 3G "$T_SCRATCH/sparse"
for what in /dev/zero /proc/self/mem "$T_SCRATCH/pipe" "$T_SCRATCH/sparse" "$T_SCRATCH"; do
    check_fails "$what is not a topology" "not a usable topology" timeout 10 "$up" "$what" --lab "none_$$"
done
check_fails "nor is a stream without end" "not a usable topology" timeout 10 "$up" <(yes) --lab "none_$$"
check "and nothing of them is left" nothing_left "none_$$"

# A path MTU that the kernel learned from, say, an ICMP message does not apply to the link.
t_up narrow pair
read -r _ a _ b _ if_a _ _ addr_b < <(phw_plan_links "$LAB")
ip -n "$(phw_netns "$LAB" "$a")" route replace "${addr_b%/*}/32" dev "$if_a" mtu 600
check "$a has a narrow path to $b" bash -c 'ip -n "$1" route get "$2" | grep "mtu 600"' \
    bash "$(phw_netns "$LAB" "$a")" "${addr_b%/*}"
rate_case "full frames still leave" 10000 --seconds 1
"$PHW_SCRIPTS/down.sh" --lab "$LAB"

# Processes in a separate session, like the stranger, end with their test.
cat >"$T_SCRATCH/first.sh" <<END
. "$checkout/tests/netns/testlib.sh"
t_first bash -c 'echo \$\$; exit 7' >"$T_SCRATCH/said" || echo "\$?" >>"$T_SCRATCH/said"
t_first bash -c 'echo \$\$; exec sleep 600' >"$T_SCRATCH/first"
END
for signal in INT TERM KILL; do
    : >"$T_SCRATCH/first"
    env --default-signal=INT TMPDIR="$T_SCRATCH" bash "$T_SCRATCH/first.sh" >/dev/null 2>&1 &
    pid=$!
    check "it runs" phw_until 20 test -s "$T_SCRATCH/first"
    check "its output and status are its own" grep -qx 7 "$T_SCRATCH/said"
    kill "-$signal" "$pid"
    first=$(<"$T_SCRATCH/first")
    check "SIG$signal to its test ends it" phw_until 10 phw_all_gone "$first"
    kill -KILL "$first" 2>/dev/null || true
    settled "$pid"
done
