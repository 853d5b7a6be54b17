#!/usr/bin/env bash
# Expected conveniences of commands: the lab scripts under one name, completions that shells can read, manual pages that
# man can read, versions with their commit, colours only on terminals, networks in other tools' formats.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces
commands=(phitwire phitwire-msgrate phitwire-bench)
PATH=$PATH:$PHITWIRE_BIN_DIR

for command in "${commands[@]}"; do
    check "$command --version has the version" grep -qE "^$command [0-9]+\.[0-9]+\.[0-9]+( \([0-9a-f]{7,}\))?$" <("$command" --version)
done
if commit=$(git -C "$PHW_ROOT" rev-parse --short=10 HEAD 2>/dev/null); then
    check "and some commit of these sources" bash -c 'phitwire --version | grep -qE "\([0-9a-f]{10}\)" || test ! -e "$1/.git"' bash "$PHW_ROOT"
else
    skip "versions have their commit" "the sources are not a checkout (found: ${commit:-nothing})"
fi

pages() { case $1 in phitwire) phitwire "$2" ${3+"$3"} ;; *) "$1" "--$2" ${3+"$3"} ;; esac; }
for command in "${commands[@]}"; do
    pages "$command" completions bash >"$T_SCRATCH/completions"
    check "bash reads the completions of $command" bash -c 'source "$1" && complete -p "$2"' bash "$T_SCRATCH/completions" "$command"
    pages "$command" man >"$T_SCRATCH/$command.1"
    check "the manual of $command has its name" grep -qF -- "${command//-/\\-}" "$T_SCRATCH/$command.1"
done
for shell in zsh fish; do
    if ! command -v "$shell" >/dev/null; then
        skip "$shell reads the completions" "no $shell"
        continue
    fi
    phitwire completions "$shell" >"$T_SCRATCH/completions"
    check "$shell reads the completions" "$shell" -n "$T_SCRATCH/completions"
done
check "there is a page for each command" bash -c 'phitwire man --directory "$1" && test -s "$1/phitwire-topology-show.1" -a -s "$1/phitwire-sim.1"' \
    bash "$T_SCRATCH/man"
check_fails "an unknown shell is rejected" 'bash, elvish, fish' phitwire-bench --completions tcl

# The scripts, under one name.
export PHITWIRE_SCRIPTS=$PHW_SCRIPTS
t_lab manners
check "phitwire lab up" phitwire lab up quickstart --lab "$LAB"
check "phitwire lab status" phitwire lab status --lab "$LAB"
check "phitwire lab node" phitwire lab node --lab "$LAB" restart r1-1
check "phitwire lab up --help is the script's" grep -q '^up.sh TOPOLOGY' <(phitwire lab up --help)
status=0
phitwire lab node --lab "$LAB" sing r1-1 >/dev/null 2>&1 || status=$?
check "its status is the script's (was $status)" test "$status" = 2
check_fails "missing scripts are reported with a remedy" 'netns-scripts of the phitwire sources' \
    env PHITWIRE_SCRIPTS=/nonexistent phitwire lab status

# Animations and colours only on terminals.
plain() { "$@" 2>&1 | grep -q $'\x1b' && return 1 || return 0; }
check "no colours in a pipe" plain phitwire topology check /nonexistent.toml
check "nor with NO_COLOR" plain env NO_COLOR=1 script -qec 'phitwire manage reroute --lab nobody' /dev/null
check "phitwire lab down" phitwire lab down --lab "$LAB"
check "and nothing is left" nothing_left "$LAB"

# Formats of other tools.
for topology in quickstart aries-3x4 t3e-2x2x2; do
    file=$PHW_SCRIPTS/topologies/$topology.toml
    phitwire topology export "$file" --format graphml >"$T_SCRATCH/net.graphml" 2>"$T_SCRATCH/notes"
    check "$topology comes back from GraphML unchanged" \
        diff "$file" <(phitwire topology import "$T_SCRATCH/net.graphml" --format graphml)
    check "$topology as JSON" jq -e '.format == "phitwire-topology" and (.links | length) > 0' \
        <(phitwire topology export "$file" --format json)
    check "$topology for containerlab" grep -q 'endpoints: \[' <(phitwire topology export "$file" --format containerlab 2>/dev/null)
done
phitwire topology export "$PHW_SCRIPTS/topologies/aries-3x4.toml" --format booksim-anynet >"$T_SCRATCH/net.anynet" 2>/dev/null
check "an anynet does not say which network it is, and it is found" \
    diff <(phitwire topology generate dragonfly --groups 3 --chassis 2 --blades 2 --global-links 2) <(phitwire topology import "$T_SCRATCH/net.anynet" --format booksim-anynet)
sed -i 's/ router 1\b/ router 9/' "$T_SCRATCH/net.anynet"
check_fails "or matches no known network" '12 routers and 12 NICs' \
    phitwire topology import "$T_SCRATCH/net.anynet" --format booksim-anynet
phitwire topology generate t3e --size 3x3x3 >"$T_SCRATCH/torus.toml"
phitwire topology export "$T_SCRATCH/torus.toml" --format booksim-anynet >"$T_SCRATCH/net.anynet" 2>/dev/null
import() { phitwire topology import "$T_SCRATCH/net.anynet" --format booksim-anynet t3e --size "$1"; }
check "it is compared with what it is said to be" diff "$T_SCRATCH/torus.toml" <(import 3x3x3)
check_fails "and rejected if it differs" 'does not match: the file has 27 routers' import 3x3x4
sed -i 's/ router 1\b//' "$T_SCRATCH/net.anynet"
check_fails "as by a single link" 'between r0 and r1' import 3x3x3
check "which can be written as broken" grep -Fx '  "(0,0,0)+X",' <(phitwire topology import "$T_SCRATCH/net.anynet" --format booksim-anynet --missing t3e --size 3x3x3)
sed -i '2s/router/ruoter/' "$T_SCRATCH/net.anynet"
check_fails "mistakes have their place" ':2:1\]' import 3x3x3
