#!/usr/bin/env bash
# The first impairments that a user types: `loss 3%` works with and without netem in the kernel; what needs netem works,
# or is refused with the command that runs it elsewhere.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces
impair=$PHW_SCRIPTS/impair.sh
kinds=$("$impair" --kernel)
[[ -n $kinds ]] || skip_all "this kernel has neither netem nor random loss in nftables"
netem=0
[[ $kinds != netem* ]] || netem=1

t_up impair quickstart
check "loss 3% is accepted" bash -c '"$1" --lab "$2" all loss 3% 2>"$3"' bash "$impair" "$LAB" "$T_SCRATCH/said"
if (( netem )); then
    check "by netem, without a word" test ! -s "$T_SCRATCH/said"
    share=lost_share
else
    check "by nftables, which it says" grep -F "this kernel has no netem: nftables drops 3% of the frames" "$T_SCRATCH/said"
    share=nft_lost_share
fi
check "status.sh shows it" bash -c '"$1/status.sh" --lab "$2" | grep -c "loss 3%" | grep -qx 10' bash "$PHW_SCRIPTS" "$LAB"
rate_case "exactly once under loss" 1000 --seconds 2
check "about 3 % of the frames were lost (was $($share) per mille)" between "$($share)" 20 40
total() { awk '{ n += $1 } END { print n + 0 }'; }
ends_lost() { "$impair" --lab "$LAB" r1-0-r1-1 show | sed -nE 's/.*\((.* passed, )?([0-9]+) (frames )?lost\)$/\2/p' | total; }
links_lost() { "$PHW_SCRIPTS/status.sh" --lab "$LAB" | sed -nE '/r1-1:p3[23] /s/.*[( ]([0-9]+) (frames )?lost\)$/\1/p' | total; }
# Links at rest lose a frame now and then, too.
agrees() {
    local before shown
    before=$(ends_lost) shown=$(links_lost)
    (( before > 0 )) && between "$shown" "$before" "$(ends_lost)"
}
check "status.sh shows the frames that both ends of a link lost" agrees
check "packets were resent" bash -c "(( $(field "$T_SCRATCH/rate.json" retransmitted_packets) > 0 ))"
check "clear removes it" bash -c '"$1" --lab "$2" all clear && ! "$1" --lab "$2" all show | grep -v clear' bash "$impair" "$LAB"
rate_case "exactly once without loss" 1000 --seconds 0.5

# Words are checked before anything changes, also without netem in the kernel.
t_impair r1-0-r1-1 loss 2%
for typo in "lose 3%|loss 3%" "3%|loss 3%" "loss=3%|loss 3%" "loss 3 %|loss 3%" "dealy 2ms|delay 2ms" "corupt 1% loss 3%|corrupt 1% loss 3%"; do
    # shellcheck disable=SC2086  # words
    check_fails "\`${typo%|*}\` is refused, with a better one" "did you mean '${typo#*|}'" "$impair" --lab "$LAB" all ${typo%|*}
done
check_fails "\`delay two\` is refused" "tc rejected 'netem delay two': .*--help" "$impair" --lab "$LAB" all delay two
check "the earlier impairment stays" bash -c '"$1" --lab "$2" all show | grep -c "loss 2%" | grep -qx 4' bash "$impair" "$LAB"
check "loss 3 is accepted" t_impair r1-0-r1-1 loss 3
check "and is 3 %, as for tc" bash -c '"$1" --lab "$2" r1-0-r1-1 show | grep -c "loss 3%" | grep -qx 4' bash "$impair" "$LAB"

if (( netem )); then
    check "delay works" t_impair all delay 2ms loss 5%
else
    t_impair r1-0-r1-1 loss 2%
    check_fails "delay is refused, with the reason" "no netem, and nftables does only 'loss P%'" \
        "$impair" --lab "$LAB" all delay 2ms loss 5%
    check "the earlier impairment stays" bash -c '"$1" --lab "$2" all show | grep -q "loss 2% by nftables"' bash "$impair" "$LAB"
    "$impair" --lab "$LAB" all delay 2ms loss 5% 2>"$T_SCRATCH/said" || status=$?
    check "with status 4" test "${status:-0}" = "$PHW_SKIP"
    typed=$(sed -n 's/^  //p' "$T_SCRATCH/said")
    check "and the command to type" grep -E "^[^ ]*with-netem.sh bash -c '.*up.sh quickstart .*impair.sh .* all delay 2ms loss 5% && .*'$" \
        <<<"$typed"
fi
check_fails "more than everything cannot be lost" "100 ?%|rejected" "$impair" --lab "$LAB" all loss 101%
"$PHW_SCRIPTS/down.sh" --lab "$LAB"
check "nothing is left" nothing_left "$LAB"
# The command as printed, for the smallest lab: an emulated machine takes a minute and a half to bring up a larger one.
if [[ -n ${typed:-} ]] && command -v linux.uml >/dev/null; then
    status=0
    if ! t_long; then
        t_up impair_pair pair
        typed=$({ "$impair" --lab "$LAB" all delay 2ms loss 5% 2>&1 || true; } | sed -n 's/^  //p')
        "$PHW_SCRIPTS/down.sh" --lab "$LAB"
    fi
    timeout 300 bash -c "$typed" >"$T_SCRATCH/out" 2>"$T_SCRATCH/err" || status=$?
    if (( status == PHW_SKIP )); then
        skip "the command works" "$(tail -n 1 "$T_SCRATCH/err")"
    else
        check "the command works" grep -E "lost 0 +duplicated 0 +corrupted 0" "$T_SCRATCH/out"
    fi
fi
