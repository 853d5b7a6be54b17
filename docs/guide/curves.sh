#!/usr/bin/env bash
# The latency-load curves of docs/guide/src/curves, and the values that they are drawn of, as CSV beside them: one table of
# commands, each with the seconds of CPU time that it took on the machine that drew them last.
#
#     docs/guide/curves.sh [NAME...]            simulates and draws these, or all, and prints the CPU time of each
#     docs/guide/curves.sh --only NAME          the same for one
#     docs/guide/curves.sh --redraw [NAME...]   draws again what was simulated before
#     docs/guide/curves.sh --list               their names, and their commands
set -euo pipefail
shopt -s inherit_errexit
unset CDPATH
cd "$(dirname -- "${BASH_SOURCE[0]}")/../.."
phitwire=${PHITWIRE_BIN_DIR:-${CARGO_TARGET_DIR:-target}/release}/phitwire
curves=docs/guide/src/curves

declare -A calls=()
names=()
curve() { names+=("$1"); calls[$1]=${*:2}; }

# Windows are those of the command's own, which settle themselves, where that is cheap; elsewhere as long as a steady state
# needs to be distinguished from a saturated one (virtual-time.md, "Phases and saturation").
chip='--warmup 5000 --measure 10000 --seeds 3'
curve yarc-64-uniform yarc-64 --load 0.05..1.0:0.05 "$chip"
curve yarc-64-hotspot yarc-64 --traffic hotspot:0:10 --load 0.01..0.2:0.01 --warmup 5000 --measure 20000 --seeds 3
curve yarc-64-row-adversary yarc-64 --traffic row-adversary --load 0.05..1.0:0.05 "$chip"
curve r1.5-288-uniform r1.5-288 --load 0.1..0.9:0.1 --warmup 3000 --measure 6000
curve r2-1024-uniform r2-1024 --load 0.1..0.9:0.1 --warmup 2000 --measure 4000
curve r3-16384-uniform r3-16384 --load 0.1..0.7:0.2 --warmup 800 --measure 800
aries='aries-9x1x16x4:20 --warmup 4000 --measure 4000'
some='--routing minimal,valiant,adaptive0,adaptive1'
curve aries-9x1x16x4-group-adversarial "$aries" --traffic group-adversarial --load 0.05..0.65:0.15 \
    --routing minimal,valiant,adaptive0,adaptive1,adaptive2,adaptive3
curve aries-9x1x16x4-group-adversarial-packet "$aries" --traffic group-adversarial --load 0.05..0.65:0.3 \
    --routing minimal,valiant,adaptive0 --grain packet
aries='aries-9x1x16x4:20 --warmup 3000 --measure 3000'
curve aries-9x1x16x4-uniform "$aries" --load 0.1..1.0:0.3 "$some"
curve aries-9x1x16x4-uniform-packet "$aries" --load 0.1..1.0:0.45 --routing minimal,valiant,adaptive0 --grain packet
t3e='--routing deterministic,adaptive --channels optimised,time-of-crossing'
for pattern in "uniform 0.1..1.0:0.15" "transpose 0.06..0.78:0.12" "rotation 0.02..0.5:0.08" \
    "tornado 0.05..0.45:0.08" "bit-reverse 0.02..0.5:0.08"; do
    traffic=${pattern% *} load=${pattern#* }
    [[ $traffic == uniform ]] || traffic=grid-$traffic
    curve "t3e-8x8x8-${pattern% *}" t3e-8x8x8 --traffic "$traffic" --load "$load" "$t3e" --warmup 3000 --measure 4000
done
curve t3e-8x16x16-uniform t3e-8x16x16 --load 0.05..0.45:0.1 --routing deterministic,adaptive --warmup 2000 --measure 3000

redraw=0
case ${1:-} in
    --redraw) redraw=1; shift ;;
    --only) shift; (( $# == 1 )) || { printf '%s: --only wants one name\n' "${0##*/}" >&2; exit 2; } ;;
    --list) for name in "${names[@]}"; do printf '%s: phitwire sim %s\n' "$name" "${calls[$name]}"; done; exit ;;
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit ;;
    -*) printf '%s: unknown option %s (--help lists them)\n' "${0##*/}" "$1" >&2; exit 2 ;;
esac
(( $# )) || set -- "${names[@]}"
for name; do
    [[ -n ${calls[$name]:-} ]] || { printf '%s: no curve %s (--list has the names)\n' "${0##*/}" "$name" >&2; exit 2; }
    if (( redraw )); then
        "$phitwire" plot "$curves/$name.csv" -o "$curves/$name.svg"
    else
        read -ra words <<<"${calls[$name]}"
        TIMEFORMAT="$name: %U s of CPU time"
        time "$phitwire" sim "${words[@]}" --csv "$curves/$name.csv" --plot "$curves/$name.svg"
    fi
done
