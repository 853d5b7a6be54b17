#!/usr/bin/env bash
# netem-all.sh: runs each machine under real `tc netem`, with a part of the list of its own test, one after another,
# inside netns-scripts/with-netem.sh.
set -u
here=$(dirname -- "${BASH_SOURCE[0]}") status=0
for run in "netem.sh ethernet" "netem-dragonfly.sh udp" "netem-t3e.sh ethernet"; do
    # shellcheck disable=SC2086  # a file and its argument
    "$here"/$run || status=$?
done
exit "$status"
