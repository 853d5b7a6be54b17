#!/usr/bin/env bash
# Checks docs/guide/src/paper-coverage.md: every entry names code and a test (or says why there is none), every
# file named exists, and every test named is a test of the file it is said to be in: a function right
# after #[test], or a case that is listed as one; not just one of that name.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# is_test FILE NAME: other attributes, and the comment of the function, may stand between.
is_test() {
  awk -v name="$2" '
    /^[[:space:]]*#\[test\]/ { test = 1; next }
    /^[[:space:]]*(#\[|\/\/|$)/ || (test && inside) { inside = test && /#\[/ && !/\]$/ || inside && !/^[[:space:]]*\)\]/; next }
    test && $0 ~ "fn " name "[(<]" { found = 1; exit }
    { test = 0 }
    END { exit !found }' "$1"
}
# is_case FILE NAME: a case that every machine's tests take in by the list in the mod.rs beside it.
is_case() {
  grep -qE "^pub(\(crate\))? fn $2<" "$1" && grep -qE "^ +$2\$" "$(dirname "$1")/mod.rs"
}
# entries FILE: `- **PARAGRAPH** what it says` with `  - code: ...` and `  - test: ...` below, wrapped or not, as a row of
# "PARAGRAPH|CODE|TEST" each. A part that is missing is empty.
entries() {
  awk '
    function told() { if (paragraph != "") print paragraph "|" part["code"] "|" part["test"]; paragraph = ""; delete part }
    /^- \*\*([0-9]|WP )/ { told(); paragraph = $0; sub(/^- \*\*/, "", paragraph); sub(/\*\*.*/, "", paragraph); now = ""; next }
    /^  - (code|test):/ { now = substr($0, 5, 4); part[now] = substr($0, 10); next }
    /^    / && now != "" { part[now] = part[now] " " $0; next }
    /^(#|$)/ { told() }
    END { told() }' "$1"
}
page=${1:-docs/guide/src/paper-coverage.md}
failed=0 rows=0
complain() { echo "not ok - $page: $*"; failed=1; }
while IFS='|' read -r paragraph code test; do
  rows=$((rows + 1))
  for cell in "$code" "$test"; do
    [[ $cell =~ [^[:space:]] ]] || complain "$paragraph has no code or no test"
    while read -r name; do
      file=${name%%::*}
      [ -f "$file" ] || { complain "$paragraph names $file, which is not there"; continue; }
      [ "$file" = "$name" ] || is_test "$file" "${name##*::}" || is_case "$file" "${name##*::}" \
        || complain "$paragraph names test ${name##*::}, which is not in $file"
    done < <(grep -oE '`[^`]+`' <<<"$cell" | tr -d '`')
  done
done < <(entries "$page")
[ "$rows" -ge 40 ] || complain "only $rows entries were read"
[ "$failed" = 0 ] && echo "ok - $rows entries of $page name code and tests that exist"
exit "$failed"
