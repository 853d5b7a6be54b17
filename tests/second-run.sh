#!/usr/bin/env bash
# How tests/run.sh treats failing test files: one that passes its second run is reported as flaky, one that fails twice
# has failed, and if three fail none is run again. The test files here are synthetic.
# shellcheck disable=SC2317  # cases are called by name
set -euo pipefail
cd "$(dirname -- "${BASH_SOURCE[0]}")/.."
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT

# tree NAME TIMES FILE...: a project whose test files pass, except that these first fail that many times.
tree() {
    local at=$scratch/$1 times=$2 file
    mkdir -p "$at/tests/netns"
    cp tests/run.sh "$at/tests"
    cp -r netns-scripts "$at"
    for file in aries capture mpi-faults dead-wires processes large loopback mpi attacks lanes non-minimal view cut top; do
        printf '#!/bin/sh\necho "ok - one of %s"\n' "$file" >"$at/tests/netns/$file.sh"
    done
    for file in "${@:3}"; do
        cat >"$at/tests/netns/$file.sh" <<EOF
#!/bin/sh
echo run >>"$at/$file.runs"
echo "ok - one of $file"
[ "\$(wc -l <"$at/$file.runs")" -gt $times ] || { echo "not ok - two of $file"; exit 1; }
echo "ok - two of $file"
EOF
    done
    chmod +x "$at"/tests/netns/*.sh
}
# ends NAME STATUS LINE: the expected status and last line of a tree's tests.
ends() {
    local status=0 last
    PHITWIRE_LONG=0 PHITWIRE_BIN_DIR=$scratch "$scratch/$1/tests/run.sh" netns >"$scratch/$1.out" 2>&1 || status=$?
    last=$(tail -n 1 "$scratch/$1.out")
    [[ $status == "$2" && $last == "$3" ]] && return
    cat -- "$scratch/$1.out"
    printf '%s: status %s and "%s" instead of %s and "%s"\n' "$1" "$status" "$last" "$2" "$3"
    return 1
}
runs() { [[ $(wc -l <"$scratch/$1/$2.runs") == "$3" ]] || { printf '%s: %s has not run %s times\n' "$1" "$2" "$3"; return 1; }; }
says() { grep -qxF -- "$2" "$scratch/$1.out" || { cat -- "$scratch/$1.out"; printf '%s: it does not say: %s\n' "$1" "$2"; return 1; }; }

# with NAME FILE: replaces a test file of a tree by standard input.
with() { cat >"$scratch/$1/tests/netns/$2.sh"; }

# second NAME STATUS LAST FIRST SECOND: the result for cut.sh, which runs FIRST, and SECOND in its second run.
second() {
    tree "$1" 0
    with "$1" cut <<EOF
#!/bin/sh
if [ -e "$scratch/$1/ran" ]; then $5; fi
touch "$scratch/$1/ran"; $4
EOF
    ends "$1" "$2" "$3"
}

never() { tree never 0 cut && ends never 0 "15 passed, 0 failed, 0 skipped" && runs never cut 1; }
once() {
    tree once 1 cut top
    ends once 0 "16 passed, 0 failed, 0 skipped"
    runs once cut 2
    says once "# flaky, a defect: tests/netns/cut.sh: two of cut"
    says once "# flaky, a defect: tests/netns/top.sh: two of top"
}
twice() {
    tree twice 2 cut
    ends twice 1 "14 passed, 1 failed, 0 skipped"
    runs twice cut 2
    says twice "# failed: two of cut"
}
many() { tree many 1 cut top dead-wires && ends many 1 "14 passed, 3 failed, 0 skipped" && runs many cut 1; }
# A file that runs alone anyway has no second run.
alone() { tree alone 1 lanes && ends alone 1 "14 passed, 1 failed, 0 skipped" && runs alone lanes 1; }
# Failed cases have to pass: a second run that omits one, or tries nothing, does not count. Numbers may differ.
fails='echo "ok - one"; echo "not ok - it took 5 ms (7): why: so"; exit 1'
numbers() { second numbers 0 "15 passed, 0 failed, 0 skipped" "$fails" 'echo "ok - one"; echo "ok - it took 3 ms (9)"; exit 0'; }
skips() { second skips 1 "13 passed, 1 failed, 1 skipped" "$fails" 'echo "ok - one # SKIP nothing here"; exit 4'; }
leaves_out() { second leaves-out 1 "14 passed, 1 failed, 0 skipped" "$fails" 'echo "ok - one"; exit 0'; }
nothing() { second nothing 1 "13 passed, 1 failed, 0 skipped" "$fails" 'exit 0'; }
status() { second status 1 "13 passed, 1 failed, 0 skipped" "$fails" 'exit 1'; }
ended() { second ended 0 "14 passed, 0 failed, 0 skipped" 'echo "ok - one"; exit 2' 'echo "ok - one"; exit 0'; }

# They wait more than they compute.
jobs=() failed=0
for job in never once twice many alone numbers skips leaves_out nothing status ended; do
    ( set -e; "$job" ) &
    jobs+=($!)
done
for job in "${jobs[@]}"; do wait "$job" || failed=1; done
exit "$failed"
