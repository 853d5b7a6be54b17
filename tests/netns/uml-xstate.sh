#!/usr/bin/env bash
# uml-xstate.c, without which user-mode Linux panics on processors with AMX: the object alone between a tracer and a
# tracee, and under user-mode Linux on a host that pretends to have AMX.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
here=$PHW_ROOT/tests/netns/xstate with=$PHW_SCRIPTS/with-netem.sh

[[ $(uname -m) == x86_64 ]] || skip_all "AMX exists only on x86-64"
command -v cc >/dev/null || skip_all "no compiler: sudo apt-get install gcc libc6-dev"

cd "$T_SCRATCH"
object() { cc -Wall -Wextra -Werror -O2 -shared -fPIC -o "$1" "$2" -ldl; }
check "uml-xstate.c compiles without a warning" object uml-xstate.so "$PHW_SCRIPTS/uml-xstate.c"
check "so does what plays a host with AMX" object amx-host.so "$here/amx-host.c"
check "and the tracer" cc -Wall -Wextra -Werror -O2 -o trace "$here/trace.c" -ldl
chmod a+rx . ./*
ours=$T_SCRATCH/uml-xstate.so host=$T_SCRATCH/amx-host.so

# traced NAME STATUS PATTERN PRELOADED WHAT: the tracer ends with STATUS and prints PATTERN.
traced() {
    local status=0
    LD_PRELOAD=$4 ./trace "$5" >traced 2>&1 || status=$?
    if (( status == 4 )); then
        skip "$1" "this processor has no AVX"
    elif (( status == $2 )) && grep -qE -- "$3" traced; then
        ok "$1"
    else
        not_ok "$1" "status $status, wanted $2 and '$3'"
        detail <traced
    fi
}
traced "a host with AMX refuses a short state" 2 "refused: Bad address" "$host" short
traced "there the object completes it: the bytes are set, the rest stays as it was" 0 "11008 bytes, completed 1$" "$ours:$host" short
traced "a whole state goes through as it is" 0 "11008 bytes, completed 0$" "$ours:$host" whole
traced "on this processor too a short state is completed" 0 "completed 1$" "$ours" short
traced "and a whole one is not" 0 "completed 0$" "$ours" whole

command -v linux.uml >/dev/null || { skip "user-mode Linux under AMX" "not installed: sudo apt-get install user-mode-linux"; exit 0; }

# run STATUS ENVIRONMENT... : runs with-netem.sh in this environment, in user-mode Linux.
run() {
    local expected=$1 status=0
    shift
    env "$@" "$with" --uml --timeout 60 bash -c 'awk "BEGIN { print 0.5 + 41.5 }"; exit 42' >out 2>err </dev/null || status=$?
    cat err out
    (( status == expected ))
}
check "user-mode Linux runs with the object" run 42 PHITWIRE_UML_XSTATE=1
check "and what it computes is right" grep -qx 42 out
check "without it, a host with AMX is a skip" run "$PHW_SKIP" PHITWIRE_UML_XSTATE=0 "LD_PRELOAD=$host"
check "of one line that says why" test "$(grep -c 'skipped: .*does not run here: panic' err)" = 1
check "with it, it runs there" run 42 PHITWIRE_UML_XSTATE=1 "LD_PRELOAD=$host"
check "and what it computes is right" grep -qx 42 out
