#!/usr/bin/env bash
# guide.sh [PAGE...]      builds the guide, checks its links, and runs every command block of its pages
#
# A PAGE is a file below docs/guide/src, such as cookbook/lanes.md; the default is all pages. tests/guide/blocks.py
# explains blocks and how their output is compared. Each page has its own directory, labs and network namespace.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces
(phw_need python3:python3 jq:jq tshark:tshark ping:iputils-ping) || true
export PHITWIRE_NO_INSTALL=1

src=$PHW_ROOT/docs/guide/src tools=$PHW_ROOT/tests/guide book=$T_SCRATCH/book
run_dir=$(phw_run_dir)
export PHITWIRE_RUN_DIR=$run_dir
PATH=$PHITWIRE_BIN_DIR:$PHW_SCRIPTS:$PATH

# ---- The checkers can fail ----------------------------------------------------------------------

# page NAME: runs a page from standard input, like any page; the results go to NAME.said.
page() {
    local status=0
    cat >"$T_SCRATCH/$1.md"
    python3 "$tools/blocks.py" "$T_SCRATCH/$1.md" --dir "$T_SCRATCH/$1" --id "c$$" --timeout 3 >"$T_SCRATCH/$1.said" || status=$?
    return "$status"
}
# refused NAME PATTERN: a page from standard input fails, with a reason that matches.
refused() {
    if page "$1"; then echo "the page passes"; return 1; fi
    grep -qE -- "^not ok - .*$2" "$T_SCRATCH/$1.said" || { cat "$T_SCRATCH/$1.said"; return 1; }
}
fence='```'
check "a page passes whose numbers alone are others" page right <<E2
${fence}console
\$ printf 'sent 12 in 3.5 ms\\nskipped\\nend 0x1f of nic7\\n'
sent 420,113 in 800 us
...
end 0xabc of nic3
\$ x=here
\$ echo "\$x"
here
${fence}
<!-- only here -->
${fence}console,norun
\$ false
${fence}
E2
check "and says what it has not run" grep -q '^# not run - .*: only here' "$T_SCRATCH/right.said"
check "a wrong word is reported" refused word 'should be like `sent 1 of 2`' <<<"${fence}console
\$ echo sent 1 or 2
sent 1 of 2
$fence"
check "so is a line that is missing" refused less 'should be like `two`' <<<"${fence}console
\$ echo one
one
two
$fence"
check "and one too many" refused more 'nothing more' <<<"${fence}console
\$ printf 'one\\ntwo\\n'
one
$fence"
check "an unknown command" refused missing 'no such command' <<<"${fence}console
\$ no-such-command-at-all
...
$fence"
check "one that fails silently" refused fails 'status 1' <<<"${fence}console
\$ false
$fence"
check "one that does not end" refused long 'takes longer' <<<"${fence}console
\$ sleep 30
$fence"
check "one that is not run for no reason" refused unreasoned 'has to say why' <<<"${fence}console,norun
\$ true
$fence"
check "a lab that is left up" refused left 'does not take it down' <<<"${fence}console,output=none
\$ up.sh aries-pair --lab demo
$fence"
mkdir "$T_SCRATCH/broken"
printf '<a id="here" href="#there">x</a> <a href="gone.html">y</a>\n' >"$T_SCRATCH/broken/index.html"
check_fails "a dangling link is reported" 'gone.html: there is no such file' python3 "$tools/links.py" "$T_SCRATCH/broken"
check_fails "so is one to no place" '#there: there is no such place' python3 "$tools/links.py" "$T_SCRATCH/broken"

# ---- The book -----------------------------------------------------------------------------------

# Lines of the guide and READMEs have at most 120 columns.
wide() {
    python3 - "$@" <<'END'
import sys
wide = [(name, number, len(line.rstrip("\n")))
        for name in sys.argv[1:] for number, line in enumerate(open(name, encoding="utf-8"), 1) if len(line.rstrip("\n")) > 120]
for name, number, columns in wide:
    print(f"{name}:{number}: {columns} columns")
sys.exit(bool(wide))
END
}
mapfile -t texts < <(cd "$PHW_ROOT" && find docs README.md -name '*.md' ! -path '*/reference/*' | sort)
printf '%0121d\n' 0 >"$T_SCRATCH/wide.md"
check_fails "a line of 121 columns is reported" '121 columns' wide "$T_SCRATCH/wide.md"
check "no line of the README and the guide is longer than 120 columns" wide "${texts[@]/#/$PHW_ROOT/}"

# The reference is made by the build.
mkdir "$T_SCRATCH/clone"
cp -r -- "$PHW_ROOT"/{README.md,docs} "$T_SCRATCH/clone"
rm -rf -- "$T_SCRATCH/clone/docs/guide/src/reference"
mapfile -t sources < <(find "$T_SCRATCH/clone" -name '*.md')
check "all links of a fresh clone lead somewhere" python3 "$tools/links.py" "${sources[@]}"

status=0
"$PHW_ROOT/docs/guide/build.sh" --output "$book" >"$T_SCRATCH/build.log" 2>&1 || status=$?
case $status in
    0) ok "the guide is built"
       mapfile -t sources < <(find "$src/reference" -name '*.md')
       check "all links of the reference lead somewhere" python3 "$tools/links.py" "${sources[@]}"
       check "the reference is in the contents of the book" grep -q 'reference/counters.html' "$book/introduction.html"
       check "all links of the book lead somewhere" python3 "$tools/links.py" "$book" ;;
    *) not_ok "the guide is built" "status $status"
       tail -n 20 "$T_SCRATCH/build.log" | detail ;;
esac
check "every page is in its summary" diff <(cd "$src" && find . -name '*.md' ! -name SUMMARY.md | sed 's|^\./||' | sort) \
    <(sed -nE 's/.*\]\(([^)]*\.md)\).*/\1/p' "$src/SUMMARY.md" | sort)
big=$(find "$src" \( -name '*.svg' -o -name '*.png' \) -size +200k)
check "no picture is larger than 200 kB" test -z "$big"

# All names that a lab reports are in the reference.
counters() {
    "$PHITWIRE_BIN_DIR/phitwire" ctl --lab "$LAB" all stats --zero --json >"$T_SCRATCH/stats.json" || return
    jq -r '.[] | keys[]' "$T_SCRATCH/stats.json" | sed -E 's/^port[0-9]+\.//' | sort -u >"$T_SCRATCH/reported"
    sed -nE 's/^\| `([^`]*)` \|.*/\1/p' "$src/reference/counters.md" | sort -u >"$T_SCRATCH/listed"
    comm -23 "$T_SCRATCH/reported" "$T_SCRATCH/listed" >"$T_SCRATCH/unlisted"
    cat "$T_SCRATCH/unlisted"
    test "$(wc -l <"$T_SCRATCH/reported")" -ge 100 -a ! -s "$T_SCRATCH/unlisted"
}
for topology in pair aries-pair t3e-2x2x2; do
    t_up ref "$topology"
    check "every counter of $topology is in the reference" counters
    "$PHW_SCRIPTS/down.sh" --lab "$LAB" >/dev/null 2>&1
done

# ---- The pages ----------------------------------------------------------------------------------

# run_page PAGE ID: runs a page in a separate namespace, so that its ports are free.
run_page() {
    local dir=$T_SCRATCH/pages/${1//\//.}
    # shellcheck disable=SC2016  # expanded there
    exec unshare --net -- bash -c 'ip link set lo up; exec "$@"' in-netns \
        python3 "$tools/blocks.py" "$src/$1" --dir "$dir" --id "$2" --name "$1" >"$dir.said" 2>&1
}
# Blocks find the sources' directories, as for a reader at the top of the sources.
prepare() {
    local dir=$T_SCRATCH/pages/${1//\//.} folder
    mkdir -p "$dir/page"
    for folder in netns-scripts docs tests examples; do ln -s "$PHW_ROOT/$folder" "$dir/page/$folder"; done
}
pages=("$@")
if (( ! $# )); then
    mapfile -t pages < <(cd "$src" && grep -lE '^ *```console' -r --include='*.md' . | sed 's|^\./||' | sort)
fi
width=3 number=0
# A run that is still going when this test is interrupted takes its labs down.
trap 'status=$?; kill $(jobs -p) 2>/dev/null || true; wait || true; (exit "$status") && t_finish || t_finish' EXIT
for page in "${pages[@]}"; do
    [[ -f $src/$page ]] || { not_ok "$page" "no such page"; continue; }
    prepare "$page"
    while (( $(jobs -rp | wc -l) >= width )); do wait -n || true; done
    (( ++number ))
    run_page "$page" "$$p$number" &
done
wait || true
commands=0 unrun=0
for page in "${pages[@]}"; do
    said=$T_SCRATCH/pages/${page//\//.}.said
    [[ -s $said ]] || { not_ok "$page" "no output"; continue; }
    cat -- "$said"
    ! grep -q '^not ok' "$said" || T_FAILED=1
    grep -qvE '^(ok|not ok|#)' "$said" && { not_ok "$page" "the runner itself failed"; }
    commands=$(( commands + $(grep -c '^ok' "$said" || true) )) unrun=$(( unrun + $(grep -c '^# not run' "$said" || true) ))
done
ok "$commands commands of ${#pages[@]} pages ran; $unrun blocks are not run, each with its reason"
