#!/usr/bin/env bash
# mpi-page.sh      runs the three commands of docs/guide/src/mpi.md and the README, with the program shown there
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces
t_need_mpi
# On busy processors, links of this many processes may be down for long: do not declare peers dead here.
export PHITWIRE_PATIENCE=60

# section FILE: the text under the heading of the three commands.
section() { awk '/^## /{ inside = ($0 == "## Your MPI program on an emulated Aries, in three commands") } inside' "$PHW_ROOT/$1"; }
commands() { section "$1" | awk '/^```/{ code = !code } !code && sub(/^    /, "")' | head -n 3; }
section docs/guide/src/mpi.md | awk '/^```/{ code = !code; next } code' >"$T_SCRATCH/halo.c"
# The expected output: the first line indented by four blanks after the program.
shown=$(section docs/guide/src/mpi.md | awk '/^```$/{ behind = 1 } behind && sub(/^    /, "")' | head -n 1)

mapfile -t lines < <(commands docs/guide/src/mpi.md)
check "the page has three commands" test "${#lines[@]}" = 3
check "the README has the same" diff <(commands README.md) <(commands docs/guide/src/mpi.md)
check "the page has a program" grep -q MPI_Init "$T_SCRATCH/halo.c"
check "and says what it prints" grep -q STEP <<<"$shown"

t_lab xc
ln -s "$PHW_SCRIPTS" "$T_SCRATCH/netns-scripts"
cd "$T_SCRATCH"
run() { timeout --foreground -k 5 120 bash -c "$1" </dev/null; }
for line in "${lines[@]}"; do
    here=${line#sudo }
    if ! run "${here//--lab xc/--lab $LAB}" >out 2>err; then
        not_ok "page: $line" "status $?"
        tail -n 10 out err | detail
        break
    fi
    ok "page: $line"
done
check "the program says what the page shows" grep -qxE "${shown/STEP/[1-9][0-9]*}" out || detail <out
