#!/usr/bin/env bash
# get.sh DIR [mpich|mpi4py]...      fetches the MPI test suites that tests/netns/mpi-suites.sh runs, and builds them where needed
#
#   DIR/venv        PyPI's current MPICH and mpi4py, in a virtual environment
#   DIR/mpich       MPICH's test/mpi (Debian's source package of mpich), built with that MPICH
#   DIR/mpi4py      mpi4py's tests and demos, in the version of DIR/venv
#   DIR/mpi4py-3    the same in version 3.1.4, that of Debian's python3-mpi4py (Open MPI)
#
# Takes ten minutes on two processors. None of these files belongs to this repository.
# shellcheck source=../../netns-scripts/lib.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../../netns-scripts/lib.sh"
[[ ${1:-} != -h && ${1:-} != --help ]] || { phw_usage; exit 0; }
(( $# )) || phw_bad_call "where to? (--help)"
mkdir -p -- "$1"
dir=$(readlink -f -- "$1")
shift
(( $# )) || set -- mpi4py mpich

venv() {
    [[ -x $dir/venv/bin/mpicc ]] || { python3 -m venv "$dir/venv" && "$dir/venv/bin/pip" -q install mpich mpi4py; }
}

# source VERSION WHERE: unpacks mpi4py's source package.
source_of() {
    [[ ! -d $dir/$2 ]] || return 0
    local fresh
    fresh=$(mktemp -d -p "$dir")
    "$dir/venv/bin/pip" -q download --no-binary :all: --no-deps -d "$fresh" "mpi4py==$1"
    tar -C "$fresh" -xf "$fresh"/mpi4py-"$1".tar.gz
    mv -- "$fresh/mpi4py-$1" "$dir/$2"
    rm -rf -- "$fresh"
}

get_mpi4py() {
    venv
    source_of "$("$dir/venv/bin/python" -c 'import mpi4py; print(mpi4py.__version__)')" mpi4py
    source_of 3.1.4 mpi4py-3
}

# Use Debian's source packages with separate package lists, so that the machine's own stay unchanged.
debian_source() {
    local apt=$dir/apt
    mkdir -p -- "$apt/lists/partial" "$apt/cache/archives/partial"
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main" >"$apt/sources.list"
    local options=(-o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$apt/lists"
        -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User="$(id -un)")
    (cd "$dir" && apt-get -q "${options[@]}" update && apt-get -q "${options[@]}" source --download-only mpich && tar xf mpich_*.orig.tar.xz)
}

get_mpich() {
    venv
    [[ ! -e $dir/mpich/datatype/contents ]] || return 0
    compgen -G "$dir/mpich-*/test/mpi/configure" >/dev/null || debian_source
    mkdir -p -- "$dir/mpich"
    (
        cd "$dir/mpich" || exit 1
        sources=(../mpich-*/test/mpi)
        "${sources[0]}/configure" --quiet --with-mpi="$dir/venv" --disable-cxx --disable-fortran --disable-spawn CFLAGS=-O1 \
            && make -C util -j2 && make -C dtpools -j2 || exit 1
        # Programs that do not compile with such a new MPI are reported by the runner.
        for list in pt2pt rma coll datatype; do make -C "$list" -k -j2 || true; done
    ) >"$dir/mpich.log" 2>&1 || phw_die "MPICH's tests do not build: $dir/mpich.log"
}

for part; do
    case $part in
        mpich|mpi4py) "get_$part" ;;
        *) phw_bad_call "unknown suite $part (--help lists them)" ;;
    esac
done
