#!/usr/bin/env bash
# docs/guide/build.sh [--output DIR] [--reference-only | --mdbook-only]      builds the guide: HTML in DIR (target/guide)
#
# The chapters of docs/guide/src/reference are made from the program first (nodes/tools/examples/reference): its commands,
# counters, registers, files, exit statuses. mdbook is taken from PATH if it is of version 0.5, else it is built once,
# into target/tools; --mdbook-only does no more than that. Status 0, 1 failed, 2 called wrongly, 4 where mdbook cannot be had.
# shellcheck source=../../netns-scripts/lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../../netns-scripts/lib.sh"

MDBOOK_VERSION=0.5.4
output='' only=''
while (( $# )); do
    case $1 in
        --output) [[ -n ${2:-} ]] || phw_bad_call "--output takes a directory"; output=$2; shift ;;
        --reference-only|--mdbook-only) only=$1 ;;
        -h|--help) phw_usage; exit 0 ;;
        *) phw_bad_call "unknown option $1 (--help lists them)" ;;
    esac
    shift
done
target=${CARGO_TARGET_DIR:-$PHW_ROOT/target}
[[ $target == /* ]] || target=$PHW_ROOT/$target
output=${output:-$target/guide}
[[ $output == /* ]] || output=$PWD/$output

MDBOOK=''
# find_mdbook: one whose books look like these, from PATH or of our own.
find_mdbook() {
    is_right() { [[ $("$1" --version 2>/dev/null) =~ ^mdbook\ v?0\.5\. ]]; }
    MDBOOK=$target/tools/bin/mdbook
    if is_right mdbook; then
        MDBOOK=mdbook
    elif ! is_right "$MDBOOK"; then
        phw_need_cargo
        phw_need cc:gcc+libc6-dev
        phw_note "building mdbook $MDBOOK_VERSION, once"
        # Not optimised: that builds in a third of the time, and a guide takes a second or two either way.
        CARGO_PROFILE_DEV_DEBUG=false phw_cargo install mdbook --no-default-features --locked --version "=$MDBOOK_VERSION" --debug \
            --root "$target/tools" --target-dir "$target/tools/build" </dev/null >&2 \
            || phw_skip "cargo cannot build mdbook $MDBOOK_VERSION here"
        rm -rf -- "$target/tools/build"
    fi
}
if [[ $only == --mdbook-only ]]; then
    find_mdbook
    exit 0
fi

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
"$reference" --root "$PHW_ROOT" --binaries "$PHITWIRE_BIN_DIR" --output "$PHW_ROOT/docs/guide/src/reference"
[[ $only != --reference-only ]] || exit 0

find_mdbook
"$MDBOOK" build --dest-dir "$output" "$PHW_ROOT/docs/guide" >&2 || phw_die "mdbook failed"
printf '%s\n' "$output/index.html"
