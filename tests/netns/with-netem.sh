#!/usr/bin/env bash
# with-netem.sh: a command with real netem; its output, status and environment; timeout, Ctrl-C and SIGKILL.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
with=$PHW_SCRIPTS/with-netem.sh

status=0
NOTE='two words' "$with" bash -c '
    ip netns add scratch && tc -n scratch qdisc add dev lo root netem loss 50% && ip -n scratch link set lo up
    nsenter --net=/run/netns/scratch bash -c "for (( i = 0; i < 400; i++ )); do echo >/dev/udp/127.0.0.1/9; done" 2>/dev/null
    tc -n scratch -s qdisc show dev lo | sed -n "s/.*(dropped \([0-9]*\),.*/\1/p"
    ip netns del scratch
    echo "$NOTE in $PWD"
    echo aside >&2
    exit 42' >"$T_SCRATCH/out" 2>"$T_SCRATCH/err" </dev/null || status=$?
(( status != PHW_SKIP )) || skip_all "$(tail -n 1 "$T_SCRATCH/err")"

check "the status comes back" test "$status" = 42
check "netem loses frames in there (of 400 or 800, half)" between "$(head -n 1 "$T_SCRATCH/out")" 140 460
check "environment and working directory are the caller's" grep -qxF "two words in $PWD" "$T_SCRATCH/out"
check "stderr is kept apart" bash -c 'grep -qx aside "$1" && ! grep -q aside "$2"' bash "$T_SCRATCH/err" "$T_SCRATCH/out"

if ! grep -q 'user-mode Linux' "$T_SCRATCH/err"; then
    ok "this kernel has netem itself; user-mode Linux is not needed"
    exit 0
fi

# Only this user-mode Linux: the sleep's duration identifies it.
kernels() { pgrep -af 'linux.uml .*phitwire-uml' | grep -F "$1" || true; }
sessions() { find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'phitwire-uml.*' -newer "$T_SCRATCH/mark" 2>/dev/null; }
mine() {
    local session
    for session in $(sessions); do
        grep -qF "sleep $1" "$session/command" 2>/dev/null && echo "$session"
    done
    true
}
has_mine() { [[ -n $(mine "$1") ]]; }
none_of_mine() { [[ -z $(mine "$1") ]] && [[ -z $session || -z $(kernels "$session") ]]; }
touch "$T_SCRATCH/mark"

status=0 session=''
"$with" --uml --timeout 6 sleep 3131 2>/dev/null || status=$?
check "it ends after its time, with status 124" test "$status" = 124
check "and leaves nothing" none_of_mine 3131

for signal in INT KILL; do
    length=$(( 3200 + RANDOM ))
    env --default-signal=INT "$with" --uml sleep "$length" 2>/dev/null &
    pid=$!
    phw_until 20 has_mine "$length"
    session=$(mine "$length")
    sleep 2
    kill "-$signal" "$pid"
    wait "$pid" 2>/dev/null || true
    check "SIG$signal leaves no kernel and no file" phw_until 15 none_of_mine "$length"
done

# Where user-mode Linux cannot run: one line, its reason and a skip, immediately.
# skipped NAME REASON ENVIRONMENT...: with-netem.sh in that environment.
skipped() {
    local name=$1 reason=$2 status=0
    shift 2
    timeout 30 env "$@" "$with" --uml true >"$T_SCRATCH/out" 2>"$T_SCRATCH/err" </dev/null || status=$?
    check "$name is a skip" test "$status" = "$PHW_SKIP"
    check "and says why" grep -E "skipped: .*user-mode Linux does not run here: $reason" "$T_SCRATCH/err"
    check "in one line" test "$(grep -vc 'running in user-mode Linux$' "$T_SCRATCH/err")" = 1
}
mkdir "$T_SCRATCH/bin"
skipped "too little memory" "Too few physical memory" PHITWIRE_UML_MEMORY=4M
printf '#!/bin/sh\necho "Checking that ptrace can change system call numbers...check_ptrace : ptrace failed, errno = 1"\nexit 1\n' \
    >"$T_SCRATCH/bin/linux.uml"
chmod -R a+rx "$T_SCRATCH/bin"
skipped "a host that forbids ptrace" ".*ptrace failed" "PATH=$T_SCRATCH/bin:$PATH"
printf '#!/bin/sh\nexec sleep 600\n' >"$T_SCRATCH/bin/linux.uml"
skipped "a kernel that does not come up" "no output within" "PATH=$T_SCRATCH/bin:$PATH" PHITWIRE_UML_BOOT_SECONDS=2
