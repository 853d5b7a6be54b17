#!/usr/bin/env bash
# tests/walls.sh [--imports]    checks that what machines share knows no machine, and that folders make no circle
#
# 1. Outside a machine's own folders no line of code or comment names it, but the lists of machines and the tests of
#    commands do.
# 2. Machines do not name each other; a machine's routing decision imports no chip.
# 3. The folders of the core, and those of a machine, import each other without a circle.
# 4. The table of folders in src/lib.rs says what each imports.
# Every rule is then broken once in a copy, where the check has to notice it.
# --imports prints the column for the table instead.
# shellcheck source=../netns-scripts/lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../netns-scripts/lib.sh"
cd "$PHW_ROOT"
# A search that finds nothing is the good case here.
set +e +o pipefail

# What stands for each machine of src/machine/mod.rs in code and prose, as words or as parts of names.
declare -A words=(
    [blackwidow]='(^|[^a-zA-Z])(yarc|YARC|blackwidow|BLACKWIDOW|clos|Clos|CLOS)([^a-zA-Z]|$)|Yarc|Black[Ww]idow|Clos[A-Z]'
    [aries]='(^|[^a-zA-Z])(aries|ARIES)([^a-zA-Z]|$)|Aries|[Dd]ragonfl|DRAGONFL'
    [t3e]='(^|[^a-zA-Z0-9])(t3e|T3E)([^a-zA-Z0-9]|$)|T3e'
    [toy]='(^|[^a-zA-Z])(toy|TOY|Toy)([^a-zA-Z]|$)'
)
# The folders of each machine's own, beside src/machine/NAME.
declare -A own=(
    [blackwidow]='framing/src/yarc/'
    [aries]='framing/src/aries/'
    [toy]='tests/toy/'
)
# Lists of all machines: the only other files that may name one.
lists='^(src/machine/(mod|tests/[a-z]+)\.rs|framing/src/lib\.rs)$'

machines_of() { sed -nE 's/^ *pub mod ([a-z0-9_]+);/\1/p' "$1/src/machine/mod.rs"; }

# Product code of files: without comments and without the items that are for tests only.
code() {
    awk '
        FNR == 1 { skipping = 0 }
        skipping && /^}|^[a-z(].*;$|^\} *;?$/ { skipping = 0; next }
        skipping { next }
        /^#\[cfg\(test\)\]$/ { skipping = 1; next }
        { sub(/(^|[^:])\/\/.*/, "") } 1' "$@"
}

# sources DIR: the files that the walls stand between.
folders_searched=(src framing/src nodes/src nodes/tools/src bench/src tests/toy)
sources() { (cd "$1" && find "${folders_searched[@]}" -name '*.rs' | sort); }

# told FILES...: their lines as FILE:NUMBER:LINE; outside the core without the items that are for tests only.
told() {
    awk '
        FNR == 1 { skipping = 0 }
        skipping && /^}|^[a-z(].*;$/ { skipping = 0; next }
        skipping { next }
        FILENAME !~ /^src/ && /^#\[cfg\(test\)\]$/ { skipping = 1; next }
        { print FILENAME ":" FNR ":" $0 }' "$@"
}

# named DIR: lines that name a machine outside its own folders.
named() {
    local dir=$1 machine
    [[ -n $(machines_of "$dir") ]] || echo "src/machine/mod.rs: it lists no machine"
    for machine in $(machines_of "$dir"); do
        if [[ -z ${words[$machine]:-} ]]; then
            echo "src/machine/mod.rs: no words for $machine in tests/walls.sh"
            continue
        fi
        # What commands are tested with are machines; what the core's shared parts are tested with are not.
        # shellcheck disable=SC2046  # names without blanks
        (cd "$dir" && told $(sources . | grep -vE "^(src/machine/$machine/|${own[$machine]:-//})|$lists|^(nodes|bench)/(.*/|.*_)?tests\.rs$")) \
            | grep -E "^[^:]*:[0-9]*:.*(${words[$machine]})" | cut -c1-160
    done
}

# imports_of DIR FOLDER ROOT PREFIX: what product code below DIR/ROOT/FOLDER imports of its neighbours there.
imports_of() {
    local dir=$1 folder=$2 root=$3 prefix=$4
    # shellcheck disable=SC2046  # names without blanks
    code /dev/null $(find "$dir/$root/$folder.rs" "$dir/$root/$folder" -name '*.rs' ! -name tests.rs ! -name '*_tests.rs' ! -path '*/tests/*' 2>/dev/null) \
        | tr '\n' ' ' | grep -oE "$prefix(::\{[^;]*;|::[a-z_]+)" | grep -oE "$prefix::[a-z_]+|[{,] *[a-z_]+(::|,|\})" \
        | grep -oE '[a-z_]+(::)?[,}]?$' | tr -d ':,}' | sort -u | grep -vx "$folder" || true
}

# folders DIR ROOT: the modules there.
folders() { (cd "$1/$2" && find . -mindepth 1 -maxdepth 1 \( -type d -o -name '*.rs' \) | sed 's|^\./||; s|\.rs$||' | grep -vE '^(mod|lib|main|tests|.*_tests)$' | sort -u); }

# edges DIR ROOT PREFIX: "FOLDER IMPORTED" lines.
edges() {
    local dir=$1 root=$2 prefix=$3 folder all imported
    all=$(folders "$dir" "$root")
    for folder in $all; do
        for imported in $(imports_of "$dir" "$folder" "$root" "$prefix"); do
            ! grep -qx "$imported" <<<"$all" || echo "$folder $imported"
        done
    done
}

# circle EDGES: whether they have one; tsort names it.
circle() { ! tsort <<<"$1" 2>&1 >/dev/null | sed 's/^tsort: //' | grep .; }

# check DIR: what is wrong there, a line each.
check() {
    local dir=$1 machine found home
    named "$dir"
    for machine in $(machines_of "$dir"); do
        home=src/machine/$machine
        [[ -d $dir/$home ]] || home=${own[$machine]%/}
        found=$(edges "$dir" "$home" "crate::machine::$machine")
        circle "$found" >/dev/null || echo "src/machine/$machine: a circle: $(circle "$found" | tr '\n' ' ')"
        find "$dir/$home" -path '*/route/*.rs' ! -name 'tests.rs' ! -name '*_tests.rs' ! -name 'harness.rs' | while read -r file; do
            code "$file" | grep -oE 'crate::[a-z_]+(::[a-z_]+)*' | grep -vE "^crate::(kit|rng|machine::$machine::route)\b" | sed "s|^|${file#"$dir"/}: a routing decision imports |"
        done
    done
    found=$(edges "$dir" src crate)
    circle "$found" >/dev/null || echo "src: a circle: $(circle "$found" | tr '\n' ' ')"
    grep -E '^[a-z_]+ machine$' <<<"$found" | sed 's/^\(.*\) machine$/src\/\1 imports machines/' || true
    # Paths that the rules above do not see.
    (cd "$dir" && find src tests/toy -name '*.rs' ! -path '*/tests/*' ! -name 'tests.rs' ! -name '*_tests.rs' -exec grep -HnE \
        '^ *(pub(\([a-z]+\))? )?use (crate::\{|(super::)+(machine|router|link|nic|topology|cycle|sim|net|chip|kit)::.* as )|(super::)+machine\b' {} +) | sed 's/$/ (write crate::FOLDER::...)/'
    find "$dir"/src/machine/*/route -name '*.rs' ! -name 'tests.rs' ! -name 'harness.rs' -exec grep -HnE 'super::super::' {} + | sed "s|^$dir/||; s/$/ (write crate::FOLDER::...)/"
    found=$(edges "$dir" framing/src crate)
    grep -E '^carrier |^yarc aries|^aries yarc' <<<"$found" | sed 's/^/framing: /' || true
    diff <(table "$dir") <(told_table "$dir") | sed -n 's/^< /src\/lib.rs should say: /p; s/^> /src\/lib.rs says: /p'
}

# What the folders of the core import, and what src/lib.rs says that they do.
table() {
    local folder imported
    for folder in $(folders "$1" src | grep -vx machine); do
        imported=$(edges_of "$1" "$folder")
        printf '%s: %s\n' "$folder" "${imported:-nothing}"
    done
}
edges_of() { imports_of "$1" "$2" src crate | grep -xFf <(folders "$1" src) | paste -sd' ' || true; }
told_table() {
    sed -nE 's/^\/\/! \| \[`([a-z_]+)`\] \|.*\| ([a-z_ ]+) \|$/\1: \2/p' "$1/src/lib.rs" | grep -v '^machine:' | sort
}

case ${1:-} in
    '') ;;
    --imports) table .; exit 0 ;;
    *) phw_bad_call "unknown option $1 (--imports prints the column of src/lib.rs)" ;;
esac

failed=0
wrong=$(check .)
if [[ -n $wrong ]]; then
    head -n 60 <<<"# ${wrong//$'\n'/$'\n'# }"
    echo "not ok - the walls between machines and what they share: $(wc -l <<<"$wrong") breaches"
    failed=1
else
    echo "ok - what machines share knows none of them, and folders make no circle"
fi

# Each canary adds a line to a file of a copy, before its first import or (@) at its end: FILE, line, and what the check has
# to say.
copy=$(mktemp -d)
trap 'rm -rf -- "$copy"' EXIT
canary() {
    local file=$1 line=$2 expected=$3 found
    rm -rf -- "${copy:?}"/*
    (cd "$PHW_ROOT" && find "${folders_searched[@]}" -name '*.rs' -exec cp --parents -t "$copy" {} +)
    case $line in
        '@ '*) printf '%s\n' "${line#@ }" >>"$copy/$file" ;;
        *) sed -i "1,/^use /{/^use /i\\
$line
}" "$copy/$file" ;;
    esac
    found=$(comm -13 <(sort <<<"$wrong") <(check "$copy" | sort))
    if grep -qE "$expected" <<<"$found"; then
        echo "ok - a wall broken in $file is noticed: $expected"
    else
        echo "not ok - a wall broken in $file is not noticed: $line"
        failed=1
    fi
}
canary src/link/session.rs 'use crate::machine::aries::link::SetProfile;' 'src/link/session.rs:[0-9]+:.*aries'
canary src/chip/node.rs '// As in a YARC.' 'src/chip/node.rs:[0-9]+:.*YARC'
canary src/nic/checker.rs 'use crate::machine::MACHINES;' 'src/nic imports machines'
canary src/machine/aries/link/lcb.rs 'use crate::machine::blackwidow::link::Lcb as Other;' 'src/machine/aries/link/lcb.rs:[0-9]+:.*blackwidow'
canary src/machine/aries/route/decision.rs 'use crate::machine::aries::router::Core;' 'a routing decision imports crate::machine::aries::router'
canary src/link/session.rs 'use crate::sim::World;' 'src: a circle'
canary src/machine/aries/link/lcb.rs 'use crate::machine::aries::router::Core;' 'src/machine/aries: a circle'
canary nodes/tools/src/cli/sim/mod.rs '// Of dragonflies.' 'nodes/tools/src/cli/sim/mod.rs:[0-9]+:.*dragonflies'
canary src/nic/checker.rs 'use super::super::machine::MACHINES;' 'src/nic/checker.rs:[0-9]+:.*machine.*write crate'
canary src/machine/aries/route/decision.rs 'use super::super::router::Core;' 'route/decision.rs:[0-9]+:.*write crate'
canary src/machine/aries/route/decision.rs 'use crate::{kit as k, machine::aries::router::Core};' 'route/decision.rs:[0-9]+:.*write crate'
canary src/sim/wire.rs '@ use crate::machine::MACHINES;' 'src/sim imports machines'
canary bench/src/suite/point.rs 'const MAX_ARIES_BYTES: u32 = 64;' 'bench/src/suite/point.rs:[0-9]+:.*ARIES'
canary framing/src/carrier/frame.rs 'use crate::yarc::phit::Phit;' 'framing: carrier yarc'
canary tests/toy/nic.rs 'use crate::machine::aries::nic::AriesNic;' 'tests/toy/nic.rs:[0-9]+:.*aries'
canary src/rng.rs 'use crate::time::Time;' 'src/lib.rs should say: rng: time'
exit "$failed"
