#!/usr/bin/env bash
# Wrong descriptions and wrong cables are rejected, and the message says what is wrong and where.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

printf 'nmae = "x"\n' >"$T_SCRATCH/key.toml"
t_lab mistake
check_fails "an unknown key is shown with its place" "key.toml:1:1" \
    "$PHW_SCRIPTS/up.sh" --lab "$LAB" "$T_SCRATCH/key.toml"
check "and nothing is left" nothing_left "$LAB"

# The cables of two processors are swapped without telling the processes: the wired plan differs from their description.
# Over Ethernet, where addresses do not reveal it.
mkdir "$T_SCRATCH/bin"
ln -s "$PHITWIRE_BIN_DIR/phitwire-msgrate" "$T_SCRATCH/bin/"
cat >"$T_SCRATCH/bin/phitwire" <<STUB
#!/bin/bash
real=$PHITWIRE_BIN_DIR/phitwire
[[ "\$1 \$2" == "topology plan" ]] || exec "\$real" "\$@"
"\$real" "\$@" | awk -F '\t' -v OFS='\t' '
    { line[NR] = \$0 }
    \$1 == "link" && n < 2 { ++n; at[n] = NR; node[n] = \$3; port[n] = \$4; interface[n] = \$7 }
    END {
        for (i = 1; i <= NR; i++) {
            \$0 = line[i]
            for (k = 1; k <= 2; k++) if (i == at[k]) { \$3 = node[3 - k]; \$4 = port[3 - k]; \$7 = interface[3 - k] }
            print
        }
    }'
STUB
chmod +x "$T_SCRATCH/bin/phitwire"
t_lab crossed
check_fails "a miswired cable is rejected, with both names" "expect" \
    env "PHITWIRE_BIN_DIR=$T_SCRATCH/bin" "$PHW_SCRIPTS/up.sh" quickstart --link ethernet --timeout 6 --lab "$LAB"
check "and nothing is left" nothing_left "$LAB"
