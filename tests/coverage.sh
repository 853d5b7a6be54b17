#!/usr/bin/env bash
# Checks docs/guide/src/paper-coverage.md. Every entry says where it runs and names code and a test, or says why there
# is none. Every named file and item exists, and every named test is in its file: a function right after #[test] or a
# listed case. If an entry runs, a `main` must reach each of its items (tests/reachable.py); if only tests run it, no
# binary may.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# is_test FILE NAME: other attributes, and the comment of the function, may come between.
is_test() {
  awk -v name="$2" '
    /^[[:space:]]*#\[test\]/ { test = 1; next }
    /^[[:space:]]*(#\[|\/\/|$)/ || (test && inside) { inside = test && /#\[/ && !/\]$/ || inside && !/^[[:space:]]*\)\]/; next }
    test && $0 ~ "fn " name "[(<]" { found = 1; exit }
    { test = 0 }
    END { exit !found }' "$1"
}
# is_case FILE NAME: a case that every machine's tests include through the list in the mod.rs next to it.
is_case() {
  grep -qE "^pub(\(crate\))? fn $2<" "$1" && grep -qE "^ +$2\$" "$(dirname "$1")/mod.rs"
}
# entries FILE: turns each `- **PARAGRAPH** ...` with its `  - runs: ...`, `  - code: ...` and `  - test: ...`, wrapped
# or not, into a row "PARAGRAPH|RUNS|CODE|TEST". A missing part is empty.
entries() {
  awk '
    function emit() { if (paragraph != "") print paragraph "|" part["runs"] "|" part["code"] "|" part["test"]; paragraph = ""; delete part }
    /^- \*\*([0-9]|WP )/ { emit(); paragraph = $0; sub(/^- \*\*/, "", paragraph); sub(/\*\*.*/, "", paragraph); now = ""; next }
    /^  - (runs|code|test):/ { now = substr($0, 5, 4); part[now] = substr($0, 10); next }
    /^    / && now != "" { part[now] = part[now] " " $0; next }
    /^(#|$)/ { emit() }
    END { emit() }' "$1"
}
# marks RUNS: its marks without the remarks in brackets, one per line.
marks() {
  sed -E 's/\([^)]*\)//g; s/, */\n/g' <<<"$1" | sed -E 's/^ +//; s/ +$//'
}
declare -A reach
while read -r how item; do reach[$item]=$how; done < <(python3 tests/reachable.py)
# judge_item PARAGRAPH RUNS FILE::NAME: the item exists, and is reachable if and only if it runs.
judge_item() {
  case ${reach[$3]-} in
    '') complain "$1 names $3, which is not an item of that file" ;;
    unreached) [ "$2" = "test only" ] || complain "$1 runs ($2), and no binary reaches $3" ;;
    reached) [ "$2" != "test only" ] || complain "$1 is for tests only, and a binary may reach $3" ;;
  esac
}
# judge PARAGRAPH RUNS CODE: the marks are known, stand alone where required, and agree with the code.
judge() {
  local mark all runs=0 items=0 name
  all=$(marks "$2")
  while read -r mark; do
    case $mark in
      live | virtual | "encoded only" | tool) runs=1 ;;
      "test only" | absent | none) [ "$all" = "$mark" ] || complain "$1: $mark stands beside other marks" ;;
      *) complain "$1 has the mark '$mark': none of those that the page explains" ;;
    esac
  done <<<"$all"
  while read -r name; do
    case $name in
      *::*) items=$((items + 1)); judge_item "$1" "$all" "$name" ;;
    esac
  done < <(grep -oE '`[^`]+`' <<<"$3" | tr -d '`')
  [ "$runs" = 0 ] || [ "$items" -gt 0 ] || complain "$1 runs ($2), and names no item of its code"
  [[ $all != absent || $3 == *"not built"* ]] || complain "$1 is absent, and its code is not 'not built'"
  [[ $all != none || $3 =~ ^\ *none ]] || complain "$1 has nothing to build, and its code is not 'none'"
}
# check PAGE: complains about each faulty entry.
check() {
  page=$1 failed=0 rows=0
  local paragraph runs code test cell name file
  while IFS='|' read -r paragraph runs code test; do
    rows=$((rows + 1))
    for cell in "$code" "$test"; do
      [[ $cell =~ [^[:space:]] ]] || complain "$paragraph has no code or no test"
      while read -r name; do
        file=${name%%::*}
        [ -f "$file" ] || complain "$paragraph names $file, which is not there"
      done < <(grep -oE '`[^`]+`' <<<"$cell" | tr -d '`')
    done
    while read -r name; do
      file=${name%%::*}
      [ ! -f "$file" ] || [ "$file" = "$name" ] || is_test "$file" "${name##*::}" || is_case "$file" "${name##*::}" \
        || complain "$paragraph names test ${name##*::}, which is not in $file"
    done < <(grep -oE '`[^`]+`' <<<"$test" | tr -d '`')
    judge "$paragraph" "$runs" "$code"
  done < <(entries "$page")
}
complain() { echo "not ok - $page: $*"; failed=1; }
page=docs/guide/src/paper-coverage.md
check "${1:-$page}"
[ "$rows" -ge 40 ] || complain "only $rows entries were read"
[ "$failed" = 0 ] && echo "ok - $rows entries of $page name code and tests that exist, and run where they say"
[ $# = 0 ] || exit "$failed"
result=$failed

# Each kind of error, made in a copy of the first entries, is found, and nothing else is.
copy=$(mktemp)
trap 'rm -f -- "$copy"' EXIT
# complains_once WORDS SED: after this edit the entries cause exactly one complaint, which contains WORDS.
complains_once() {
  local words=$1 found
  sed '/^- \*\*4.2 /,$d' docs/guide/src/paper-coverage.md | sed "$2" >"$copy"
  found=$(check "$copy")
  if [ "$(grep -c "^not ok" <<<"$found")" = 1 ] && grep -qF -- "$words" <<<"$found"; then return; fi
  echo "not ok - a page with an error ('$words') causes these complaints: ${found:-none}"
  result=1
}
core='machines\/blackwidow\/src\/router\/core.rs'
complains_once "has the mark ''" '0,/^  - runs: live, virtual$/{//d}'
complains_once "has the mark 'sometimes'" '0,/^  - runs: live, virtual$/s//  - runs: live, sometimes/'
complains_once "stands beside other marks" '0,/^  - runs: live, virtual$/s//  - runs: live, test only/'
complains_once "no binary reaches" '0,/^  - runs: test only$/s//  - runs: live/'
complains_once "a binary may reach" '0,/^  - runs: live, virtual$/s//  - runs: test only/'
complains_once "names no item" "0,/\`$core::run_until\`/s//\`$core\`/"
complains_once "which is not an item" "0,/\`$core::run_until\`/s//\`$core::run_backwards\`/"
complains_once "which is not there" '0,/`src\/kit\/arbiter.rs::matrix/s//`src\/kit\/umpire.rs::matrix/'
[ "$result" != 0 ] || echo "ok - errors of eight kinds in the page are found"
exit "$result"
