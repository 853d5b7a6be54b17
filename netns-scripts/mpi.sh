#!/usr/bin/env bash
# mpi.sh [--lab NAME] [options] PROGRAM...      runs an MPI program over a lab that is up
#
# Every rank is a program at the door of a NIC of the lab: ranks are dealt round-robin to the NICs that have doors, in
# order of their numbers. MPI reaches them through the libfabric provider of this repository (docs/guide/src/mpi.md).
#
#   --lab NAME                  the lab ($PHITWIRE_LAB, else "lab")
#   -n N                        ranks (as many as there are doors)
#   --with openmpi|mpich|none   MPI launcher: the first of its kind in PATH (that of `mpiexec`). none: no launcher, a
#                               single program with the variables set, at the first door, or at that of $PHITWIRE_RANK
#   --door NODE                 put all ranks at this door
#   --job N                     number or word shared by programs that are to communicate without an MPI launcher
#                               (one per call)
#   --apart                     Open MPI: every rank is on a machine of its own (a UTS namespace), and one-sided operations
#                               use libfabric (btl ofi, osc rdma); otherwise ranks have windows in shared memory
#   --launcher "OPTIONS"        more options for the launcher
#
# The status is the launcher's; 4 if there is no MPI, or no libfabric. Debian's packages openmpi-bin and libfabric1
# suffice; MPICH must come from PyPI (`pip install mpich`), since Debian's has no libfabric.
# shellcheck source=lib.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/lib.sh"

# Open MPI starts its daemon of another machine with this: NAME COMMAND...
if [[ ${1:-} == --as-machine ]]; then
    shift
    # shellcheck disable=SC2016 # the inner shell's
    exec unshare --uts sh -c 'hostname "$0"; exec sh -c "$*"' "$@"
fi

apart=''
lab=$(phw_default_lab) ranks='' with='' door='' job='' more=()
while (( $# )); do
    case $1 in
        --lab|-n|--with|--door|--job|--launcher)
            (( $# > 1 )) || phw_bad_call "$1 needs a value"
            case $1 in
                --lab) lab=$2 ;;
                -n) ranks=$2 ;;
                --with) with=$2 ;;
                --door) door=$2 ;;
                --job) job=$2 ;;
                *) read -ra more <<<"$2" ;;
            esac
            shift ;;
        --apart) apart=yes ;;
        -h|--help) phw_usage; exit 0 ;;
        --) shift; break ;;
        -*) phw_bad_call "unknown option $1 (--help lists them)" ;;
        *) break ;;
    esac
    shift
done
(( $# )) || phw_bad_call "specify a program"
phw_check_lab "$lab"
[[ $with =~ ^(|openmpi|mpich|none)$ ]] || phw_bad_call "--with must be openmpi, mpich or none, not '$with'"
[[ $ranks =~ ^(|[1-9][0-9]{0,3})$ ]] || phw_bad_call "-n must be 1 to 9999, not '$ranks'"
phw_open_lab "$lab"
dir=$(phw_lab_dir "$lab")
doors=("$dir"/*.door)
[[ -e ${doors[0]} ]] || phw_die "no NIC of lab '$lab' has a door; Aries NICs have doors (up.sh --lab $lab aries-3x4)"
[[ -z $door || -e $dir/$door.door ]] || phw_die "$door of lab '$lab' does not have a door"
provider=$PHITWIRE_BIN_DIR/libphitwire_fabric.so
[[ -r $provider ]] || phw_die "$provider does not exist (cargo build --release --workspace)"

# whose LAUNCHER: prints the kind of MPI that it belongs to.
whose() {
    case $("$1" --version 2>/dev/null) in
        *"Open MPI"*|*OpenRTE*|*PRRTE*) echo openmpi ;;
        *HYDRA*) echo mpich ;;
    esac
}

launcher=''
if [[ $with != none ]]; then
    for name in mpiexec mpirun mpiexec.openmpi mpiexec.hydra mpiexec.mpich; do
        found=$(command -v "$name") || continue
        kind=$(whose "$found")
        [[ -n $kind && ( -z $with || $with == "$kind" ) ]] || continue
        launcher=$found with=$kind
        break
    done
    [[ -n $launcher ]] || phw_skip "no MPI ${with:+($with) }installed: sudo apt-get install openmpi-bin libfabric1, or pip install mpich"
fi

# libfabric recognises a provider by the end of its file name.
mkdir -p -- "$dir/fabric"
ln -sfT -- "$provider" "$dir/fabric/libphitwire-fi.so"
export FI_PROVIDER_PATH=$dir/fabric FI_PROVIDER=phitwire PHITWIRE_LAB=$lab PHITWIRE_RUN_DIR
PHITWIRE_RUN_DIR=$(phw_run_dir)
if [[ -z $job && $PHW_LAB_MODE == virtual ]]; then
    # The number of the call: messages contain it, so it must not differ between runs.
    exec {jobs}>>"$dir/.jobs"
    flock "$jobs"
    echo >&"$jobs"
    job=$(wc -l <"$dir/.jobs")
    exec {jobs}>&-
fi
export PHITWIRE_JOB=${job:-$(od -An -N6 -tu8 /dev/urandom | tr -d ' ')}
[[ -z $door ]] || export PHITWIRE_DOOR=$dir/$door.door
: "${ranks:=${#doors[@]}}"

case $with in
    none) exec "$@" ;;
    openmpi)
        program=$(command -v -- "$1") || program=$1
        [[ -n $apart || ! -r $program ]] || ! grep -aqE 'MPI_Win_(allocate|create|lock|fence|start)' -- "$program" \
            || phw_note "$1 has one-sided operations, and Open MPI's windows in shared memory may crash; --apart uses libfabric instead"
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
        # Set by the environment, so that --launcher can override it.
        export OMPI_MCA_osc=${OMPI_MCA_osc:-^ucx}
        pass=()
        # MPI_Wtime then shows virtual time.
        [[ $PHW_LAB_MODE != virtual ]] || pass+=(-x "LD_PRELOAD=$provider")
        for name in FI_PROVIDER_PATH FI_PROVIDER PHITWIRE_LAB PHITWIRE_RUN_DIR PHITWIRE_JOB ${door:+PHITWIRE_DOOR} ${PHITWIRE_PATIENCE:+PHITWIRE_PATIENCE} ${PHITWIRE_REACH:+PHITWIRE_REACH}; do
            pass+=(-x "$name")
        done
        if [[ -n $apart ]]; then
            hosts=$(seq -f 'phw%.0f:1' -s , 0 $(( ranks - 1 )))
            # Open MPI then opens two endpoints per rank, which share the receives of a NIC.
            export PHITWIRE_RANKS=$(( 2 * ranks ))
            pass+=(-x PHITWIRE_RANKS)
            apart=(--mca btl "self,ofi" --mca osc rdma --mca plm_rsh_agent "$(readlink -f -- "${BASH_SOURCE[0]}") --as-machine" --host "$hosts")
        else
            apart=()
        fi
        # There are more ranks than processors, and routers share these: do not bind ranks.
        exec "$launcher" -n "$ranks" --oversubscribe --bind-to none --mca pml cm --mca mtl ofi \
            "${pass[@]}" "${apart[@]}" "${more[@]}" "$@" ;;
    mpich)
        export MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1
        [[ $PHW_LAB_MODE != virtual ]] || more=(-genv LD_PRELOAD "$provider" "${more[@]}")
        exec "$launcher" -launcher fork -n "$ranks" "${more[@]}" "$@" ;;
esac
