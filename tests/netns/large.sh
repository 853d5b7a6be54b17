#!/usr/bin/env bash
# 128 processors with four slices, 144 processes and 752 links, with a limit of 512 descriptors per process; --long
# doubles all of it.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces
processors=128 descriptors=512
! t_long || processors=256 descriptors=1024
ulimit -n "$descriptors"

topology=$T_SCRATCH/large.toml
"$PHITWIRE_BIN_DIR/phitwire" topology generate blackwidow --processors "$processors" --slices 4 >"$topology"
timed() {
    local begin name=$1
    shift
    begin=$(phw_ms)
    check "$name" "$@"
    printf '# %s: %d ms\n' "$name" $(( $(phw_ms) - begin ))
}
t_lab large
timed "$processors processors come up with $descriptors descriptors" "$PHW_SCRIPTS/up.sh" "$topology" --lab "$LAB"
timed "status.sh is content" "$PHW_SCRIPTS/status.sh" --lab "$LAB"
rate_case "they move messages" 10000 --seconds 1 --window 64
timed "they go down" "$PHW_SCRIPTS/down.sh" --lab "$LAB"
check "and leave nothing" nothing_left "$LAB"
