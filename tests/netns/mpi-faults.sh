#!/usr/bin/env bash
# mpi-faults.sh      a halo exchange of twelve ranks survives a dying lane, a cut black link and a reroute around a
# blue bundle; killed routers, NICs and ranks become MPI errors, and no rank hangs
#
# PHITWIRE_LONG=1: failures with twelve ranks instead of six, the first of them with the provider's default patience;
# then also with MPICH, where $PHITWIRE_MPICH is a directory with its bin/ (such as a virtual environment).
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces
t_need_mpi

RANKS=12 DEAD=4
# Exceeds the two seconds until the provider probes a dead peer, and the ten until it gives the peer up. The other ranks
# then learn of it within two seconds of one another, six on each side, from those that ended because of it.
BOUND=40
HALO=$T_SCRATCH/mpi_halo OUT=$T_SCRATCH/out STOP=$T_SCRATCH/stop

# ---- The program --------------------------------------------------------------------------------

# halo [mpi.sh options] -- [program arguments]: starts it in the background, and waits until it is running.
halo() {
    local options=()
    while [[ $1 != -- ]]; do options+=("$1"); shift; done
    shift
    rm -f -- "$STOP"
    : >"$OUT"
    timeout --foreground -k 5 500 "$PHW_SCRIPTS/mpi.sh" --lab "$LAB" -n "$RANKS" "${options[@]}" "$HALO" "$STOP" "$@" >"$OUT" 2>&1 &
    RUNNER=$!
    goes_on_by 2 || not_ok "the halo exchange begins" "$(tail -n 3 "$OUT" | tr '\n' ' ')"
}
lines() { grep -c '^step ' "$OUT"; }
has_lines() { (( $(lines) >= $1 )); }
# goes_on_by N: it reports progress N more times, every five steps.
goes_on_by() { phw_until 40 has_lines $(( $(lines) + $1 )); }
# ended SECONDS: sets ENDED to its status, and measures the seconds since BEGIN; stops it if it takes longer.
ended() {
    if ! phw_until "$1" gone "$RUNNER"; then
        TOOK="more than $1" ENDED=hangs
        kill "$RUNNER"
        wait "$RUNNER" || true
        return
    fi
    TOOK=$(( ($(phw_ms) - BEGIN) / 1000 ))
    settled "$RUNNER"
    ENDED=$SETTLED
}
gone() { ! kill -0 "$1" 2>/dev/null; }
says() { grep -qE -- "$1" "$OUT" || { tail -n 30 "$OUT"; return 1; }; }
finish_halo() { touch "$STOP"; BEGIN=$(phw_ms); ended 60; }
# ranks_failed [BUT]: every rank except that one reported an MPI error. MPICH ends the rank itself on such an error,
# whatever its error handler.
ranks_failed() {
    local found wanted
    found=$(sed -nE 's/^rank ([0-9]+): step [0-9]+: .*: MPI error of class [1-9][0-9]*: .*/\1/p
        s/^Abort\([0-9]+\) on node ([0-9]+) .*: Fatal error in .*/\1/p' "$OUT" | sort -nu | paste -sd ' ')
    wanted=$(seq 0 $(( RANKS - 1 )) | grep -vxF -- "${1:-none}" | paste -sd ' ')
    [[ $found == "$wanted" ]] || { echo "found: $found, not $wanted"; tail -n 30 "$OUT"; return 1; }
}

# ---- The network --------------------------------------------------------------------------------

# set_link ID up|down: sets the interface at end A. The other end loses its carrier, as if the cable were cut.
set_link() {
    local a interface
    IFS=$'\t' read -r _ a _ _ _ interface _ < <(phw_find_links "$LAB" "$1")
    ip -n "$(phw_netns "$LAB" "$a")" link set "$interface" "$2"
}
ids() { phw_find_links "$LAB" "$1" | cut -f 1; }
# Ids of all links between two groups.
bundle() {
    phw_plan_links "$LAB" | awk -F '\t' -v a="g$1-" -v b="g$2-" \
        'index($2, a) == 1 && index($4, b) == 1 || index($2, b) == 1 && index($4, a) == 1 { print $1 }'
}
# sent STATS ID...: packets sent by both ends of links, according to a file of all counters.
sent() {
    local file=$1 id a port_a b port_b sum=0
    shift
    for id; do
        IFS=$'\t' read -r _ a port_a b port_b _ < <(phw_find_links "$LAB" "$id")
        (( sum += $(jq --arg a "$a" --arg b "$b" --arg p "port$port_a.tx_packets" --arg q "port$port_b.tx_packets" \
            '.[$a][$p] + .[$b][$q]' "$file") )) || true
    done
    printf '%d\n' "$sum"
}
# over: takes all counters before and after STEPS steps of the program, at least forty. They are not read at one
# moment: the first and the last line are up to an eighth of the steps off, and the bounds below allow for a quarter.
over() {
    t_ctl all stats --json >"$T_SCRATCH/before.json"
    local begin=$(( $(lines) ))
    goes_on_by 8 || not_ok "the halo exchange continues" "$(tail -n 1 "$OUT")"
    t_ctl all stats --json >"$T_SCRATCH/after.json"
    STEPS=$(( ($(lines) - begin) * 5 ))
}
packets() { printf '%d\n' $(( $(sent "$T_SCRATCH/after.json" "$@") - $(sent "$T_SCRATCH/before.json" "$@") )); }
per_step() { printf '%d\n' $(( ($(sent "$T_SCRATCH/after.json" "$@") - $(sent "$T_SCRATCH/before.json" "$@")) / STEPS )); }
port_of() { t_ctl "$1" links --json | jq -r --argjson port "$2" --arg field "$3" '.[] | select(.port == $port) | .[$field]'; }
port_is() { [[ $(port_of "$1" "$2" "$3") == "$4" ]]; }
reports() { [[ -s $T_SCRATCH/watch ]] && tail -n 1 "$T_SCRATCH/watch" | jq -e "$1" >/dev/null; }

watch_begins() {
    env --default-signal=INT "$PHITWIRE_BIN_DIR/phitwire" manage reroute --lab "$LAB" --watch --json >"$T_SCRATCH/watch" 2>"$T_SCRATCH/watch.err" &
    check "manage --watch begins" phw_until 10 reports '.disconnected_pairs == 0'
}

if ! compiled=$(mpicc -O2 -Wall -o "$HALO" "$PHW_ROOT/tests/netns/mpi_halo.c" 2>&1); then
    not_ok "the MPI program compiles" "mpicc fails"
    detail <<<"$compiled"
    exit
fi
# Each rank prints its own errors. Collected by the launcher, which is Open MPI's default, they get lost when the job is
# aborted ("Data unpack would read past end of buffer").
export OMPI_MCA_orte_base_help_aggregate=0
# A message lost to a cut is resent after three seconds instead of twenty; noisy lanes are disabled.
t_topology "$T_SCRATCH/impatient.toml" aries-3x4 request_timeout_ms=3000 lane_retry_threshold=20
t_up mpifaults "$T_SCRATCH/impatient.toml"

# ---- Faults that the network hides from MPI ------------------------------------------------

RANKS=3
halo -- spoil 7
finish_halo
RANKS=12
check "one wrong bit of a halo would be seen" says '^wrong answer: [1-9]'
check "and the status reports it" test "$ENDED" = 1

watch_begins
halo --
t_ctl g0-c0s0 fault lane-noise 0 1 1/2000 >/dev/null
check "a noisy lane is given up" phw_until 30 port_is g0-c0s0 0 tx_lanes 2
t_ctl g0-c0s0 fault lane-noise 0 1 0 >/dev/null
check "the halo exchange continues with two lanes" goes_on_by 2
check "sets were resent" test "$(counter_sum '^port0\.tx_replayed_sets$')" -gt 0

mapfile -t black < <(ids g0-c0s0-g0-c1s0)
mapfile -t direct < <(bundle 0 1)
mapfile -t round < <(bundle 0 2; bundle 1 2)
over
before=$(per_step "${round[@]}")
check "the first black link of three carries halos ($(per_step "${black[0]}") packets a step)" test "$(per_step "${black[0]}")" -gt 0
check "both blue links of two groups carry halos ($(per_step "${direct[@]}") packets a step)" test "$(per_step "${direct[@]}")" -gt 0
set_link "${black[0]}" down
check "it is cut, and routed around" phw_until 10 reports '.status == "done" and (.failed_links | length == 1 and .[0].kind == "black") and .disconnected_pairs == 0'
over
cut=$(packets "${black[0]}") others=$(per_step "${black[@]:1}")
check "halos go the other two ($others packets a step; $cut over the cut one)" test "$others" -gt 0 -a "$cut" = 0

for id in "${direct[@]}"; do set_link "$id" down; done
check "they are cut, and the third group leads around" \
    phw_until 10 reports '.status == "done" and ([.failed_links[].kind] | sort == ["black", "blue", "blue"]) and .disconnected_pairs == 0'
# Ignore resends that were merely waiting for their turn.
goes_on_by 4
over
cut=$(packets "${direct[@]}") after=$(per_step "${round[@]}")
check "halos go over the third group ($after packets a step where there were $before; $cut over the cut ones)" \
    test "$after" -gt $(( before * 5 / 4 )) -a "$cut" = 0
for id in "${black[0]}" "${direct[@]}"; do set_link "$id" up; done
check "the links are readmitted" phw_until 15 reports '.failed_links == [] and .disconnected_pairs == 0'
check "the halo exchange continues" goes_on_by 2
finish_halo
check "it ends (status $ENDED)" test "$ENDED" = 0
check "with the right answer ($(grep -o '[0-9]* steps$' "$OUT"); requests that timed out: $(counter_sum '^requests_timed_out$'))" says '^right answer: '

# ---- Faults that become MPI errors -----------------------------------------------------

kill_node() { "$PHW_SCRIPTS/node.sh" --lab "$LAB" kill "$1"; }
kill_rank() {
    local pid
    for pid in $(pgrep -x mpi_halo); do
        grep -zqxE "PHITWIRE_LAB=$LAB" "/proc/$pid/environ" || continue
        grep -zqxE "(OMPI_COMM_WORLD_RANK|PMI_RANK)=$1" "/proc/$pid/environ" || continue
        kill -KILL "$pid"
        return
    done
    echo "no rank $1"
    return 1
}
again() {
    check "$1 is restarted" "$PHW_SCRIPTS/node.sh" --lab "$LAB" start "$1"
    check "all links come up" "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$LAB" --timeout 15
    check "the watcher takes it in" phw_until 15 reports '.failed_routers == [] and .failed_links == [] and .disconnected_pairs == 0'
}

# Six ranks and four seconds of patience instead of ten; --long has all twelve, and the ten seconds for the first
# failure.
t_long || { RANKS=6; export PHITWIRE_PATIENCE=4; }
# The launcher would end all ranks when the first one ends; here each has to end on its own.
go_on=(--launcher --enable-recovery)
halo "${go_on[@]}" -- return
BEGIN=$(phw_ms)
check "a router is killed for good" kill_node g1-c0s0
ended "$BOUND"
check "all ranks end ($TOOK s)" test "$ENDED" != hangs
check "each with an error of MPI" ranks_failed
again g1-c0s0

export PHITWIRE_PATIENCE=4
# With combined reports, Open MPI 4.1 loses some when it aborts.
halo --launcher "--mca orte_base_help_aggregate 0" --
BEGIN=$(phw_ms)
check "a router is killed, and errors are fatal" kill_node g1-c0s0
ended "$BOUND"
check "the job is aborted ($TOOK s)" test "$ENDED" != 0 -a "$ENDED" != hangs
# Open MPI's launcher may lose the text while it ends the job; then it says so about its help messages.
check "with an error of MPI" says 'MPI_ERR|ORTE_ERROR_LOG: .*/show_help\.c'
again g1-c0s0

halo "${go_on[@]}" -- return
BEGIN=$(phw_ms)
check "a network interface is killed for good" kill_node "nic$DEAD"
ended "$BOUND"
check "all ranks end ($TOOK s)" test "$ENDED" != hangs
check "each with an error of MPI" ranks_failed
again "nic$DEAD"

halo "${go_on[@]}" -- return
BEGIN=$(phw_ms)
check "a rank is killed" kill_rank "$DEAD"
ended "$BOUND"
check "all others end ($TOOK s)" test "$ENDED" != hangs
check "each with an error of MPI" ranks_failed "$DEAD"

[[ ${PHITWIRE_LONG:-0} != 0 ]] || exit 0
if [[ ! -x ${PHITWIRE_MPICH:-}/bin/mpicc ]]; then
    skip "the same with MPICH" "no \$PHITWIRE_MPICH/bin/mpicc (a virtual environment with pip install mpich)"
    exit 0
fi
PATH=$PHITWIRE_MPICH/bin:$PATH
check "the MPI program compiles with MPICH" mpicc -O2 -Wall -o "$HALO" "$PHW_ROOT/tests/netns/mpi_halo.c"
for node in g1-c0s0 "nic$DEAD"; do
    halo --with mpich --launcher -disable-auto-cleanup -- return
    BEGIN=$(phw_ms)
    check "MPICH: $node is killed for good" kill_node "$node"
    ended "$BOUND"
    check "MPICH: all ranks end ($TOOK s)" test "$ENDED" != hangs
    check "MPICH: each with an error of MPI" ranks_failed
    again "$node"
done
