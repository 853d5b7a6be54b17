#!/usr/bin/env bash
# docs/guide/build.sh [--output DIR] [--reference-only]      builds the guide: HTML in DIR (target/guide)
#
# The chapters of docs/guide/src/reference are made from the program first (nodes/tools/examples/reference): its commands,
# counters, registers, files, exit statuses. The same program makes the book: pages with a search, and print.html. Blocks of
# commands are not run: tests/netns/guide.sh does that. Status 0, 1 failed, 2 called wrongly.
# shellcheck source=../../netns-scripts/lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../../netns-scripts/lib.sh"

output='' only=''
while (( $# )); do
    case $1 in
        --output) [[ -n ${2:-} ]] || phw_bad_call "--output takes a directory"; output=$2; shift ;;
        --reference-only) only=$1 ;;
        -h|--help) phw_usage; exit 0 ;;
        *) phw_bad_call "unknown option $1 (--help lists them)" ;;
    esac
    shift
done
target=${CARGO_TARGET_DIR:-$PHW_ROOT/target}
[[ $target == /* ]] || target=$PHW_ROOT/$target
output=${output:-$target/guide}
[[ $output == /* ]] || output=$PWD/$output

# The example stands beside the binaries that it asks. It is brought up to date with them, unless somebody has named them.
is_named=${PHITWIRE_BIN_DIR:+yes}
phw_binaries
reference=$PHITWIRE_BIN_DIR/examples/reference
if [[ -z $is_named || ! -x $reference ]]; then
    phw_need_cargo
    phw_note "building the maker of the reference"
    (cd "$PHW_ROOT" && phw_cargo build --release --package phitwire-tools --example reference --locked </dev/null >&2) \
        || phw_die "the maker of the reference cannot be built"
    reference=$target/release/examples/reference
fi
book=(--book "$output")
[[ -z $only ]] || book=()
"$reference" --root "$PHW_ROOT" --binaries "$PHITWIRE_BIN_DIR" --output "$PHW_ROOT/docs/guide/src/reference" "${book[@]}"
[[ -n $only ]] || printf '%s\n' "$output/index.html"
