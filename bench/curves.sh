#!/usr/bin/env bash
# The latency-load curves of docs/guide/src/curves, and the values that they are drawn of, as CSV beside them.
#
#     bench/curves.sh [NAME...]            simulates and draws these, or all: those of one chip take seconds,
#                                          t3e-* one to four minutes each, aries-* some more, r3-16384 the longest
#     bench/curves.sh --redraw [NAME...]   draws again what was simulated before
#     bench/curves.sh --list               their names
set -euo pipefail
shopt -s inherit_errexit
unset CDPATH
cd "$(dirname -- "${BASH_SOURCE[0]}")/.."
phitwire=${PHITWIRE_BIN_DIR:-${CARGO_TARGET_DIR:-target}/release}/phitwire
curves=docs/guide/src/curves

declare -A calls=()
names=()
curve() { names+=("$1"); calls[$1]=${*:2}; }

chip='--warmup 3000 --measure 20000 --seeds 5'
curve yarc-64-uniform yarc-64 --load 0.05..1.0:0.05 "$chip"
curve yarc-64-hotspot yarc-64 --traffic hotspot:0:10 --load 0.01..0.2:0.01 "$chip"
curve yarc-64-row-adversary yarc-64 --traffic row-adversary --load 0.05..1.0:0.05 "$chip"
curve r1.5-288-uniform r1.5-288 --load 0.05..1.0:0.05 --seeds 3
curve r2-1024-uniform r2-1024 --load 0.05..0.95:0.05
curve r3-16384-uniform r3-16384 --load 0.1..0.8:0.1 --warmup 600 --measure 600
aries='aries-9x1x16x4:20 --warmup 5000 --measure 3000'
some='--routing minimal,valiant,adaptive0,adaptive1'
curve aries-9x1x16x4-group-adversarial "$aries" --traffic group-adversarial --load 0.05..0.75:0.1 \
    --routing minimal,valiant,adaptive0,adaptive1,adaptive2,adaptive3
curve aries-9x1x16x4-group-adversarial-packet "$aries" --traffic group-adversarial --load 0.15..0.75:0.2 "$some" --grain packet
aries='aries-9x1x16x4:20 --warmup 3000 --measure 2500'
curve aries-9x1x16x4-uniform "$aries" --load 0.1..1.0:0.15 "$some"
curve aries-9x1x16x4-uniform-packet "$aries" --load 0.1..1.0:0.3 --routing minimal,valiant,adaptive0 --grain packet
t3e='--routing deterministic,adaptive --channels optimised,time-of-crossing'
for pattern in "uniform 0.05..1.0:0.05" "transpose 0.06..0.78:0.06" "rotation 0.02..0.5:0.04" \
    "tornado 0.05..0.45:0.04" "bit-reverse 0.02..0.5:0.04"; do
    traffic=${pattern% *} load=${pattern#* }
    [[ $traffic == uniform ]] || traffic=grid-$traffic
    curve "t3e-8x8x8-${pattern% *}" t3e-8x8x8 --traffic "$traffic" --load "$load" "$t3e" --warmup 4000 --measure 8000
done
curve t3e-8x16x16-uniform t3e-8x16x16 --load 0.05..0.5:0.05 "$t3e" --warmup 2000 --measure 3000

redraw=0
case ${1:-} in
    --redraw) redraw=1; shift ;;
    --list) printf '%s\n' "${names[@]}"; exit ;;
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
        "$phitwire" sim "${words[@]}" --csv "$curves/$name.csv" --plot "$curves/$name.svg"
    fi
done
