#!/usr/bin/env bash
# A machine outside this repository: a copy of tests/toy, in its own workspace, goes through the commands and a lab.
# Only with --long: it builds that copy.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_long || skip_all "builds a separate crate (tests/run.sh --long)"
phw_need_cargo

lines=$(find "$PHW_ROOT/tests/toy/src" -name '*.rs' ! -name 'tests.rs' -exec cat {} + | wc -l)
check "the machine has less than 600 lines: $lines" test "$lines" -lt 600

copy=$T_SCRATCH/ring
mkdir -p "$copy"
cp -r -- "$PHW_ROOT/tests/toy/src" "$PHW_ROOT/Cargo.lock" "$copy"
# As a user with phitwire elsewhere would write it.
cat >"$copy/Cargo.toml" <<END
[package]
name = "phitwire-toy"
version = "0.1.0"
edition = "2024"

[workspace]

[dependencies]
phitwire = { path = "$PHW_ROOT" }
phitwire-bench = { path = "$PHW_ROOT/bench" }
phitwire-framing = { path = "$PHW_ROOT/framing" }
phitwire-machines = { path = "$PHW_ROOT/machines" }
phitwire-tools = { path = "$PHW_ROOT/nodes/tools" }

[profile.dev]
opt-level = 1
debug = false
END
chmod -R a+rwX "$T_SCRATCH"
build() { (cd "$copy" && CARGO_TARGET_DIR=$copy/target phw_cargo build --bins --offline); }
check "it is built outside the repository" build
mkdir -- "$T_SCRATCH/bin"
ln -s "$copy/target/debug/phitwire-toy" "$T_SCRATCH/bin/phitwire"
# The measuring command under its own name finds phitwire next to it.
cp -- "$PHITWIRE_BIN_DIR/phitwire-msgrate" "$T_SCRATCH/bin"
check_fails "the command of the repository does not know it" "neither a file nor the name" \
    "$PHITWIRE_BIN_DIR/phitwire" sim ring-4
export PHITWIRE_BIN_DIR=$T_SCRATCH/bin

ring=$T_SCRATCH/four.toml
generate() { "$PHITWIRE_BIN_DIR/phitwire" topology generate ring --routers 4 --name four >"$ring"; }
check "its network is generated" generate
check "checked" "$PHITWIRE_BIN_DIR/phitwire" topology check "$ring"
check "shown" "$PHITWIRE_BIN_DIR/phitwire" topology show "$ring"
check "simulated" "$PHITWIRE_BIN_DIR/phitwire" sim "$ring" --load 0.1 --measure 2000
check "soaked" "$PHITWIRE_BIN_DIR/phitwire" soak --family ring --seeds 1..20
t_up ring "$ring"
rate_case "and its routers and network interfaces carry messages as processes" 500 --size 8 --seconds 0.5
