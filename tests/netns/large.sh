#!/usr/bin/env bash
# 256 processors with four slices, 288 processes and 1,472 links, where a process may have 1,024 descriptors and no more.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces
ulimit -n 1024

topology=$T_SCRATCH/large.toml
"$PHITWIRE_BIN_DIR/phitwire" topology generate blackwidow --processors 256 --slices 4 >"$topology"
timed() {
    local begin name=$1
    shift
    begin=$(phw_ms)
    check "$name" "$@"
    printf '# %s: %d ms\n' "$name" $(( $(phw_ms) - begin ))
}
t_lab large
timed "256 processors come up with 1,024 descriptors" "$PHW_SCRIPTS/up.sh" "$topology" --lab "$LAB"
timed "status.sh is content" "$PHW_SCRIPTS/status.sh" --lab "$LAB"
rate_case "they move messages" 10000 --seconds 1 --window 64
timed "they go down" "$PHW_SCRIPTS/down.sh" --lab "$LAB"
check "and leave nothing" nothing_left "$LAB"
