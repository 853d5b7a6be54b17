#!/usr/bin/env bash
# Leftovers of crashes: up.sh killed at any moment, partial labs, directories without an owner, or with another one.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

up=$PHW_SCRIPTS/up.sh down=$PHW_SCRIPTS/down.sh status=$PHW_SCRIPTS/status.sh

# Whether anything of LAB exists, or appears a moment later: commands started by a killed script may be late.
stays_away() { nothing_left "$1" && sleep 0.5 && nothing_left "$1"; }

# SIGKILL hits up.sh while it makes the directory, namespaces and links, starts processes, and waits for links.
delays=(0.02 0.15 0.35 0.7)
[[ ${PHITWIRE_LONG:-0} == 0 ]] || delays+=(0.08 0.25 0.5 1)
for mode in '' --loopback; do
    # A lab over loopback can leave only processes behind.
    [[ -z $mode ]] || t_long || delays=(0.15 0.35)
    for delay in "${delays[@]}"; do
        t_lab killed
        # shellcheck disable=SC2086  # none or one
        "$up" quickstart --lab "$LAB" $mode 2>/dev/null &
        pid=$!
        sleep "$delay"
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
        check "down.sh after SIGKILL to up.sh $mode at $delay s" "$down" --lab "$LAB"
        check "leaves nothing" stays_away "$LAB"
    done
done

# ---- Partial labs -------------------------------------------------------------------

t_up whole quickstart
whole=$LAB
run=$(phw_run_dir)

t_lab half
half=$LAB
mkdir "$run/$half"
touch "$run/$half/.phitwire-lab"
all=$T_SCRATCH/all
check_fails "status.sh fails for a partial lab" "lab $half: left behind: down.sh --lab $half" "$status"
"$status" >"$all" 2>&1 || true
check "and still shows the complete one" grep -F "lab $whole: up" "$all"
check_fails "by name it reports the same" "left behind: down.sh --lab $half" "$status" --lab "$half"
check "status.sh --json reports it too" bash -c '"$1" --json | jq -e --arg lab "$2" "any(.[]; .lab == \$lab and (.up | not) and .why != null)"' \
    bash "$status" "$half"
check_fails "a command for it names the remedy" "down.sh --lab $half" "$PHW_SCRIPTS/impair.sh" --lab "$half" all show
check "down.sh takes it away" "$down" --lab "$half"
check "and leaves nothing" nothing_left "$half"

# Processes not started by up.sh, such as those of a lab over several hosts, have no plan there.
mv "$run/$whole/plan.tsv" "$T_SCRATCH/plan.tsv"
check "a lab started without up.sh is shown" bash -c '"$1" --lab "$2" | grep -E "started without up.sh: ([0-9]+) of \1 nodes"' \
    bash "$status" "$whole"
mv "$T_SCRATCH/plan.tsv" "$run/$whole/plan.tsv"

mkdir "$run/$half"
check "an empty directory without a mark is taken away" "$down" --lab "$half"
check "and leaves nothing" nothing_left "$half"
mkdir "$run/$half"
touch "$run/$half/precious"
check_fails "one that is not empty is not, and down.sh reports it" "has no mark" "$down" --lab "$half"
check "what is in it is still there" test -e "$run/$half/precious"
rm -r "${run:?}/$half"

gone=$(bash -c 'echo $$')
mkdir "$run/.new-$half.$gone"
check "what a killed up.sh had begun is listed as a lab" bash -c '. "$1/lib.sh"; phw_labs | grep -qxF "$2"' bash "$PHW_SCRIPTS" "$half"
check "and down.sh takes it away" "$down" --lab "$half"
check "wholly" nothing_left "$half"

# ---- lab.env and the run directory are data, and ours -------------------------------------------

cp "$run/$whole/lab.env" "$T_SCRATCH/"
trace=$T_SCRATCH/executed
printf 'MTU=$(touch %s)\n' "$trace" >>"$run/$whole/lab.env"
"$status" --lab "$whole" >/dev/null 2>&1 || true
check "what lab.env holds is not executed" test ! -e "$trace"
printf 'touch %s\n' "$trace" >>"$run/$whole/lab.env"
check_fails "unknown names in it are rejected" "unknown name" "$PHW_SCRIPTS/impair.sh" --lab "$whole" all show
check "and not executed either" test ! -e "$trace"
cp "$T_SCRATCH/lab.env" "$run/$whole/"
check "the lab is unchanged" "$status" --lab "$whole"

foreign=$T_SCRATCH/foreign
mkdir "$foreign"
cp -r "$run/$whole" "$foreign/"
chmod 777 "$foreign"
# Scripts and binaries give the same reason and remedy; the binaries wrap their messages, so that blanks and line ends
# do not count.
without_blanks() { "$@" 2>&1 | sed 's/^ *[×│]//' | tr -d ' \n'; return "${PIPESTATUS[0]}"; }
refused() {
    local says="writable only by you: $2; $remedy"
    check_fails "$1 refuses a run directory: $2" "${says// /}" without_blanks env "PHITWIRE_RUN_DIR=$foreign" "${@:3}"
}
# The scripts share one check, the binaries another. The first reason shows that each command makes it.
everybody_refuses() {
    local remedy=${2:-set PHITWIRE_RUN_DIR to a directory that you own}
    refused up.sh "$1" "$up" quickstart --lab "x_$$"
    refused "phitwire ctl" "$1" "$PHITWIRE_BIN_DIR/phitwire" ctl --lab "$whole" all links
    [[ $1 == "its mode is 777" ]] || t_long || return 0
    refused status.sh "$1" "$status"
    refused down.sh "$1" "$down" --lab "$whole"
    refused impair.sh "$1" "$PHW_SCRIPTS/impair.sh" --lab "$whole" all show
}
everybody_refuses "its mode is 777" "run \`chmod go-w $foreign\`"
chmod 1777 "$foreign"
everybody_refuses "its mode is 1777" "set PHITWIRE_RUN_DIR to a directory that you own, such as $foreign/phitwire"
chmod 700 "$foreign"
if chown -R 1 "$foreign" 2>/dev/null; then
    everybody_refuses "it belongs to user 1"
    chown -R 0 "$foreign"
else
    skip "a run directory of another user is rejected" "no other user in this namespace"
fi
mv "$foreign" "$foreign.aside"
ln -s "$foreign.aside" "$foreign"
everybody_refuses "it is a symbolic link"
check "the lab goes down" "$down" --lab "$whole"
