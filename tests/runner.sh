#!/usr/bin/env bash
# runner.sh TEST ARGUMENTS...: runs a test binary of cargo's that is not root's. Those of the nodes make network namespaces,
# and so run in rootless.sh, which is told not to build anything. Cargo begins each in the directory of its package.
scripts="$(dirname -- "${BASH_SOURCE[0]}")/../netns-scripts"
[[ ${PWD##*/} != nodes ]] || exec env PHITWIRE_BIN_DIR=none "$scripts/rootless.sh" "$@"
exec "$@"
