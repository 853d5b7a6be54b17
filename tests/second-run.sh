#!/usr/bin/env bash
# What tests/run.sh makes of test files that fail: one that fails once is judged by its second run, one that fails twice has
# failed, and of three that fail none is run again. Its tests here are made up.
set -euo pipefail
cd "$(dirname -- "${BASH_SOURCE[0]}")/.."
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT

# tree NAME TIMES FILE...: a project whose test files pass, but for these, which fail so many times first.
tree() {
    local at=$scratch/$1 times=$2 file
    mkdir -p "$at/tests/netns"
    cp tests/run.sh "$at/tests"
    cp -r netns-scripts "$at"
    for file in aries mpi-faults dead-wires processes large loopback mpi attacks lanes non-minimal view cut top; do
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
# ends NAME STATUS LINE: how the tests of a tree end, and what their last line is. attacks.sh runs twice.
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

tree never 0 cut
ends never 0 "15 passed, 0 failed, 0 skipped"
runs never cut 1
tree once 1 cut top
ends once 0 "16 passed, 0 failed, 0 skipped"
runs once cut 2
says once "# failed beside others: two of cut"
says once "# judged by a second run: tests/netns/cut.sh tests/netns/top.sh"
tree twice 2 cut
ends twice 1 "14 passed, 1 failed, 0 skipped"
runs twice cut 2
says twice "# failed: two of cut"
tree many 1 cut top lanes
ends many 1 "14 passed, 3 failed, 0 skipped"
runs many cut 1
