#!/usr/bin/env bash
# container.sh      builds the image of netns-scripts/Containerfile, and runs a lab in it
#
# With --long only, because it installs a Debian: the base is made by debootstrap, so that no registry is needed.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_long || { skip "the image runs a lab" "installs a Debian, which takes minutes; run by --long"; exit 0; }
phw_is_machine_root || { skip "the image runs a lab" "needs root to make its base"; exit 0; }
phw_need buildah:buildah debootstrap:debootstrap

export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
build=(buildah --root "$T_SCRATCH/images" --runroot "$T_SCRATCH/running")

# base: an image with the Debian of this machine, whose C library the commands use.
base() {
    local container
    debootstrap --variant=minbase "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" "$T_SCRATCH/debian" \
        && container=$("${build[@]}" from scratch) \
        && "${build[@]}" copy "$container" "$T_SCRATCH/debian" / \
        && "${build[@]}" commit "$container" base
}

# The recipe copies from the top of the sources, where its user has built the commands.
image() {
    mkdir -p "$T_SCRATCH/sources/target/release"
    cp -r "$PHW_SCRIPTS" "$T_SCRATCH/sources/netns-scripts"
    cp "$PHITWIRE_BIN_DIR"/phitwire{,-bench,-msgrate} "$T_SCRATCH/sources/target/release/"
    "${build[@]}" build --build-arg BASE=localhost/base -t phitwire:latest \
        -f "$T_SCRATCH/sources/netns-scripts/Containerfile" "$T_SCRATCH/sources"
}

inside() { "${build[@]}" run "$container" -- "$@"; }

check "a Debian to build on" base
check "the image is built" image
check "it has the name that exported topologies expect" bash -c \
    '"$1" topology export pair --format containerlab | grep -F "image: phitwire:latest"' bash "$PHITWIRE_BIN_DIR/phitwire"
container=$("${build[@]}" from phitwire:latest)
# The processes of a container end with the command that it runs.
clean='^lost 0 duplicated 0 corrupted 0 misordered 0$'
check "a lab runs in it: every message arrives once, and it goes down" inside bash -euo pipefail -c \
    "up.sh quickstart --lab inside --loopback; phitwire-msgrate --lab inside --seconds 0.5 | grep -E '$clean'; down.sh --lab inside"
"${build[@]}" rm --all >/dev/null
