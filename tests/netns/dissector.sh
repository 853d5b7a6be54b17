#!/usr/bin/env bash
# Runs the Wireshark dissector (docs/wireshark) on the captures in tests/captures: a link of each machine that was taken
# down and up, lost a tenth of its frames and had a noisy lane. Its output for each frame matches NAME.expected
# (PHITWIRE_UPDATE=1 regenerates these files); it never fails on randomly damaged frames; captures of simulated links
# have exactly the retries that the simulator counts.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
command -v tshark >/dev/null || (phw_need tshark:tshark) 2>/dev/null || skip_all "no tshark (sudo apt-get install tshark)"
command -v python3 >/dev/null || (phw_need python3:python3) 2>/dev/null || skip_all "no python3"
phw_need jq:jq

CAPTURES=$PHW_ROOT/tests/captures
WIRESHARK=$PHW_ROOT/docs/wireshark
# Ignore the user's settings.
export HOME=$T_SCRATCH
unset XDG_CONFIG_HOME

shark() { tshark -X "lua_script:${DISSECTOR:-$WIRESHARK/phitwire.lua}" "$@" 2> >(grep -vE '^Running as user|^ \*\* \(tshark' >&2); }
# frames FILE FILTER: the number of frames that match a display filter.
frames() { shark -r "$1" -Y "$2" -T fields -e frame.number | wc -l; }
equal() { [[ $1 == "$2" ]] || { echo "$1 is not $2"; return 1; }; }
# each_counted FILE FILTERS: one line with the number of frames that match each filter of a comma-separated list.
each_counted() { shark -q -z "io,stat,0,$2" -r "$1" | awk -F '|' '/<>/ { for (i = 3; i < NF; i += 2) printf "%d ", $i; print "" }'; }

# Compared frame by frame, after a first pass, in which frames learn of later ones.
columns=()
for column in frame.number frame.interface_name _ws.col.Info phitwire.kind phitwire.check.status phitwire.lcb.seq phitwire.lcb.ack \
    phitwire.lcb.retries phitwire.lcb.retry_of phitwire.lcb.retried_in phitwire.lcb.word.status phitwire.set.crc.status \
    phitwire.burst.check.status phitwire.packet.number phitwire.packet.dest phitwire.packet.source phitwire.packet.command \
    phitwire.packet.address phitwire.packet.size phitwire.packet.vc phitwire.packet.id phitwire.packet.crc.status \
    phitwire.packet.begins_in _ws.expert.message; do
    columns+=(-e "$column")
done
dissect() { shark -2 -r "$1" -T fields "${columns[@]}"; }

as_expected() {
    dissect "$CAPTURES/$1.pcapng" >"$T_SCRATCH/$1"
    [[ ${PHITWIRE_UPDATE:-0} == 0 ]] || cp -- "$T_SCRATCH/$1" "$CAPTURES/$1.expected"
    diff -- "$CAPTURES/$1.expected" "$T_SCRATCH/$1"
}

# Bytes that Wireshark prints for a script error, and for one in the middle of a frame.
no_lua_error() { ! grep -m 5 -E 'Lua Error|Exception occurred' "$1"; }

mangled() {
    local name=$1 seed
    for seed in "${@:2}"; do
        python3 "$CAPTURES/mangle.py" "$CAPTURES/$name.pcapng" "$T_SCRATCH/mangled.pcapng" "$seed" || return 1
        shark -2 -V -o phitwire.units:TRUE -r "$T_SCRATCH/mangled.pcapng" >"$T_SCRATCH/mangled" 2>&1 || return 1
        no_lua_error "$T_SCRATCH/mangled" || { echo "$name, seed $seed"; return 1; }
        # Most frames are damaged, and the dissector notices.
        (( $(grep -c 'Expert Info (Error' "$T_SCRATCH/mangled") > 50 )) || { echo "$name, seed $seed: no damage"; return 1; }
    done
}

# ---- Committed captures -------------------------------------------------------------------------

# One seed damages each capture; --long uses all three.
declare -A seeds=([blackwidow]=1 [aries]=2 [t3e]=3)
for name in blackwidow aries t3e; do
    check "$name: every frame is dissected as expected" as_expected "$name"
    check "$name: the capture is small" bash -c "(( $(stat -c %s "$CAPTURES/$name.pcapng") < 100000 ))"
    ! t_long || seeds[$name]='1 2 3'
    # shellcheck disable=SC2086  # a list
    check "$name: damaged frames cause no errors" mangled "$name" ${seeds[$name]}
done
check "blackwidow: a filter finds a packet by its destination" equal \
    "$(frames "$CAPTURES/blackwidow.pcapng" 'phitwire.packet.dest == 7')" \
    "$(cut -f15 "$CAPTURES/blackwidow.expected" | grep -cE '(^|,)7(,|$)')"
# found_by_filters NAME: retries, new sessions, bad checks.
found_by_filters() {
    local retries sessions wrong
    read -r retries sessions wrong _ < <(each_counted "$CAPTURES/$1.pcapng" \
        'phitwire.lcb.retry,phitwire.epoch.expert,phitwire.packet.crc.status == 0 or phitwire.set.crc.status == 0 or phitwire.burst.check.status == 0')
    echo "$retries retries, $sessions sessions, $wrong wrong"
    (( retries > 10 && sessions > 0 && wrong > 0 ))
}
for name in blackwidow aries t3e; do
    check "$name: retries, new sessions and wrong checks are found by filters" found_by_filters "$name"
done

# Fields that are only there where they are true: their names find exactly the frames whose line says so.
found_by_name() {
    local counts resent
    read -ra counts < <(each_counted "$CAPTURES/$1.pcapng" \
        phitwire.lcb.request,phitwire.lcb.probe,phitwire.lcb.ack_only,phitwire.lcb.retry,phitwire.packet.retry)
    said() { cut -f3 "$CAPTURES/$1.expected" | grep -cE "$2"; }
    resent=$(said "$1" '[0-9] resent\]')
    equal "${counts[*]:0:4}" "$(said "$1" '\[retry request\]') $(said "$1" '\[probe\]') $(said "$1" '^ack |no copy of the control word') $resent" \
        && (( counts[4] > 0 && counts[4] <= resent ))
}
for name in blackwidow aries t3e; do
    check "$name: requests, probes, link control alone and retries are found by the names of their fields" found_by_name "$name"
done

# Canary: a dissector that fails at long frames is noticed.
mkdir "$T_SCRATCH/broken"
cp -- "$WIRESHARK"/*.lua "$T_SCRATCH/broken"
sed 's/^local function analyse(s, frame, interface)$/& if #s > 250 then error("canary") end/' "$WIRESHARK/phitwire.lua" >"$T_SCRATCH/broken/phitwire.lua"
DISSECTOR=$T_SCRATCH/broken/phitwire.lua shark -V -r "$CAPTURES/blackwidow.pcapng" >"$T_SCRATCH/broken/out" 2>&1 || true
check_fails "a script that fails is noticed" canary no_lua_error "$T_SCRATCH/broken/out"

# ---- As a plug-in -------------------------------------------------------------------------------

plugins=$HOME/.local/lib/wireshark/plugins
mkdir -p "$plugins"
cp -- "$WIRESHARK"/*.lua "$plugins"
check "installed as a plug-in it still dissects" equal \
    "$(tshark -r "$CAPTURES/aries.pcapng" -Y phitwire 2>/dev/null | wc -l)" "$(wc -l <"$CAPTURES/aries.expected")"
rm -r -- "$plugins"
# In one pass: tshark names the first invalid rule.
colour_rules=$(grep '^@' "$WIRESHARK/colorfilters" | cut -d @ -f 3 | paste -sd ,)
check "all colour rules are filters" each_counted "$CAPTURES/t3e.pcapng" "$colour_rules"
check_fails "an invalid rule is named" 'phitwire.nonsense' each_counted "$CAPTURES/t3e.pcapng" "$colour_rules,phitwire.nonsense == 1"

# ---- Simulated links ----------------------------------------------------------------------------

# simulated NAME TOPOLOGY [OPTIONS]: a capture of a simulation, with exactly the retries that the simulator counts.
# Frames from Aries terminals of the model have no packet check.
simulated() {
    local file=$T_SCRATCH/$1.pcapng counted seen
    "$PHITWIRE_BIN_DIR/phitwire" sim "${@:2}" --netem "loss 2%" --json --capture "$file" >"$T_SCRATCH/sim.json" || return 1
    counted=$(jq .encoded_links.retransmitted_packets "$T_SCRATCH/sim.json")
    shark -r "$file" -T fields -e phitwire.lcb.retries -e _ws.expert.message >"$T_SCRATCH/sim.seen" || return 1
    seen=$(awk '{ sum += $1 } END { print sum + 0 }' "$T_SCRATCH/sim.seen")
    (( counted > 0 )) && equal "$seen" "$counted" && ! grep -E 'header check|CRC-20|CRC-32C|a frame has|contradicts|is due' "$T_SCRATCH/sim.seen"
}
check "simulated BlackWidow links: retries are those counted" simulated yarc quickstart --load 0.05 --warmup 2000 --measure 2000
check "simulated Aries links: retries are those counted" simulated aries aries-pair --load 0.1 --warmup 1000 --measure 2000
check "simulated T3E links: retries are those counted" simulated t3e t3e-2x2x2 --load 0.05 --warmup 100 --measure 300
sim() { "$PHITWIRE_BIN_DIR/phitwire" sim quickstart --load 0.05 --warmup 200 --measure 200 "$@"; }
check "a simulated capture" sim --links encoded --capture "$T_SCRATCH/a.pcapng"
check "and again" sim --links encoded --threads 2 --capture "$T_SCRATCH/b.pcapng"
check "are the same, byte for byte" cmp "$T_SCRATCH/a.pcapng" "$T_SCRATCH/b.pcapng"
check_fails "direct links carry no frames" 'links encoded' sim --links direct --capture "$T_SCRATCH/x.pcapng"
check_fails "a capture is of one run" 'a single run, but these options give 3' sim --links encoded --seeds 3 --capture "$T_SCRATCH/x.pcapng"
check_fails "a simulation's results have standard output" 'specify a file for --capture' sim --links encoded --capture -
