#!/usr/bin/env bash
# A suspended host is not a broken network. All processes of a lab under traffic stop and resume, by signal and, where
# the kernel supports it, by a frozen control group: nothing is lost or timed out, no link is given up. Half of a lab
# that stops for less than `give_up_ms` costs nothing either; for longer, its links are given up and come back. With 5 %
# of a processor for the whole lab, links resend less than 1 % of what they send. With PHITWIRE_LONG=1 each way of
# stopping runs with each duration, including half a minute, on two machines, which also get 20 % of a processor.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

FREEZER=/sys/fs/cgroup/freezer
SLOW=/sys/fs/cgroup/cpu
GROUP=$(phw_netns test still-$$)
# Runs before the library's finish().
groups_end() {
    [[ ! -d $FREEZER/$GROUP ]] || { echo THAWED >"$FREEZER/$GROUP/freezer.state"; leave "$FREEZER"; }
    [[ ! -d $SLOW/$GROUP ]] || leave "$SLOW"
}
leave() {
    local pid
    while read -r pid; do echo "$pid" >"$1/cgroup.procs" || true; done <"$1/$GROUP/cgroup.procs"
    rmdir -- "$1/$GROUP" || true
}
trap 'groups_end; t_finish' EXIT

pids() { cat -- "$(phw_lab_dir "$LAB")"/*.pid; }
half() { pids | awk 'NR % 2'; }
join() { local pid; mkdir -p -- "$1/$GROUP"; while read -r pid; do echo "$pid" >"$1/$GROUP/cgroup.procs"; done; }
downs() { cat -- "$(phw_lab_dir "$LAB")"/*.log | grep -c 'event=Down' || true; }

# links_sent: what links resent so far, and all they sent, in the unit of their family (packets, or sets on Aries), over
# all processes.
links_sent() { t_ctl all links --json | jq -er '[.[][]] | [(map(.resent) | add), (map(.sent + .resent) | add)] | @tsv'; }

# frozen HOW WHICH SECONDS: stops these processes for that time.
frozen() {
    local all
    mapfile -t all < <("$2")
    case $1 in
        signal) kill -STOP "${all[@]}"; sleep "$3"; kill -CONT "${all[@]}" ;;
        freezer)
            printf '%s\n' "${all[@]}" | join "$FREEZER"
            echo FROZEN >"$FREEZER/$GROUP/freezer.state"
            sleep "$3"
            echo THAWED >"$FREEZER/$GROUP/freezer.state"
            leave "$FREEZER" ;;
    esac
}

# unharmed HOW WHICH SECONDS...: stops these processes once for each of the times; the concurrent run shows no loss.
unharmed() {
    local how=$1 which=$2 file=$T_SCRATCH/run.json before seconds runner
    before=$(downs)
    long_rate "$file" --rate 2000 --window 64 &
    runner=$!
    under_way nic0 200
    for seconds in "${@:3}"; do
        frozen "$how" "$which" "$seconds"
        under_way nic0 200
    done
    stop_job "$runner"
    check "$LAB, $how, $which, ${*:3} s: nothing is lost or timed out" \
        jq -e '.acknowledged > 1000 and .lost == 0 and .timed_out == 0 and .duplicated == 0 and .corrupted == 0 and .misordered == 0' "$file"
    check "$LAB, $how, $which, ${*:3} s: no link is given up" test "$(downs)" = "$before"
}

# starved SECONDS SHARE...: the lab gets each of these percentages of a processor.
starved() {
    local share before resent_before sent_before resent sent
    if [[ ! -w $SLOW/tasks ]]; then skip "$LAB with a share of a processor" "no cpu control group"; return; fi
    for share in "${@:2}"; do
        pids | join "$SLOW"
        echo 100000 >"$SLOW/$GROUP/cpu.cfs_period_us"
        echo $(( share * 1000 )) >"$SLOW/$GROUP/cpu.cfs_quota_us"
        before=$(downs)
        read -r resent_before sent_before <<<"$(links_sent)"
        rate_case "$LAB with $share % of a processor: nothing is lost or timed out" 100 --rate 100 --window 8 --seconds "$1"
        check "$LAB with $share % of a processor: no link is given up" test "$(downs)" = "$before"
        read -r resent sent <<<"$(links_sent)"
        (( resent -= resent_before, sent -= sent_before )) || true
        check "$LAB with $share % of a processor: links resend under 1 % ($resent of $sent)" \
            test "$sent" -gt 1000 -a "$resent" -ge 0 -a $(( 100 * resent )) -lt "$sent"
        leave "$SLOW"
    done
}

kinds=(signal)
if [[ -w $FREEZER/tasks ]]; then kinds+=(freezer); else skip "control groups" "no freezer control group"; fi

t_up still_aries aries-group
if t_long || (( ${#kinds[@]} == 1 )); then
    for how in "${kinds[@]}"; do unharmed "$how" pids 0.5 3; done
else
    unharmed signal pids 0.5
    unharmed freezer pids 3
fi
unharmed signal half 0.5
if (( ${PHITWIRE_LONG:-0} )); then
    unharmed signal pids 30
    # Until frames have arrived for a quarter of `give_up_ms`, a silent peer may still be waking up.
    rate_case "$LAB: the run after that is clean" 1000 --seconds 1.5
fi

# Longer than `give_up_ms`, even if the other half is held up for most of that time: the contents of the links are lost
# and reported, and the links come back.
before=$(downs)
frozen signal half 8
check "$LAB: half a lab that is stopped for 8 s is given up" test "$(downs)" -gt "$before"
check "$LAB: and comes back" "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$LAB" --timeout 15
rate_case "$LAB: the next run is clean" 1000 --seconds 0.5

shares=(5)
! t_long || shares=(20 5)
starved "$(t_long && echo 10 || echo 3)" "${shares[@]}"

if (( ${PHITWIRE_LONG:-0} )); then
    t_up still_t3e t3e-2x2x2
    unharmed signal pids 0.5 3 30
    starved 10 "${shares[@]}"
fi
