#!/usr/bin/env bash
# The first command of the README, as a user runs it: a table, a clean verdict, nothing left behind.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

output=$T_SCRATCH/output
ours() { phw_all_netns | grep "^phw-quickstart" || true; }
before=$(ours)
check "quickstart.sh succeeds" bash -c '"$1" --seconds 1 >"$2" 2>&1 </dev/null || { cat "$2"; exit 1; }' bash \
    "$PHW_SCRIPTS/quickstart.sh" "$output"
check "it loses 1 % of the frames on every link" grep -E "every link loses 1% of its frames" "$output"
check "it prints a message rate" grep -iE "messages" "$output"
check "nothing lost, duplicated, corrupted or misordered" grep -E "lost 0 +duplicated 0 +corrupted 0 +misordered 0" "$output"
check "it says that nothing is left behind" grep -F "no namespace, process or file is left behind" "$output"
check "and nothing is" test "$before" = "$(ours)"

# Ubuntu's default umask for users: the lab's files are private nevertheless.
# shellcheck disable=SC2016  # expanded by the inner shell
check "quickstart.sh succeeds with umask 002" bash -c 'umask 002; PHITWIRE_RUN_DIR=$1 "$2" --seconds 1' bash "$T_SCRATCH/run" "$PHW_SCRIPTS/quickstart.sh"
check "and leaves no directory" test ! -e "$T_SCRATCH/run"

# Requested loss is applied, or the status reports that it is not.
check_fails "an invalid share is rejected" "must be a percentage such as 1%" "$PHW_SCRIPTS/quickstart.sh" --loss 1
status=0
"$PHW_SCRIPTS/quickstart.sh" --loss 101% 2>/dev/null || status=$?
check "too many are rejected before anything starts" test "$status" = 2

# It must not touch another lab named quickstart.
T_LABS+=(quickstart)
if phw_lab_exists quickstart; then
    T_LABS=()
    skip "a lab named quickstart is left alone" "such a lab already exists"
else
    "$PHW_SCRIPTS/up.sh" pair --lab quickstart 2>/dev/null
    check "quickstart.sh beside a lab named quickstart" "$PHW_SCRIPTS/quickstart.sh" --seconds 1 --loss 0.5%
    check "leaves that lab alone" "$PHW_SCRIPTS/status.sh" --lab quickstart
fi
