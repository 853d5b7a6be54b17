#!/usr/bin/env bash
# The first command of the README, as a user runs it: a table, a clean verdict, nothing left behind.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

output=$T_SCRATCH/output
ours() { phw_all_netns | grep "^phw-quickstart" || true; }
before=$(ours)
check "quickstart.sh succeeds" bash -c '"$1" --seconds 3 >"$2" 2>&1 </dev/null || { cat "$2"; exit 1; }' bash \
    "$PHW_SCRIPTS/quickstart.sh" "$output"
check "it loses 1 % of the frames on every link" grep -E "every link loses 1% of its frames" "$output"
check "it prints a message rate" grep -iE "messages" "$output"
check "nothing lost, duplicated, corrupted or misordered" grep -E "lost 0 +duplicated 0 +corrupted 0 +misordered 0" "$output"
check "it says that nothing is left behind" grep -F "no namespace, process or file is left behind" "$output"
check "and nothing is" test "$before" = "$(ours)"
