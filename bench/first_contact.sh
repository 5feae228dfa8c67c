#!/usr/bin/env bash
# The first minutes on a GPU machine without a network:  bash bench/first_contact.sh OUT [STEP...]
#
# Run it in a checkout that has build/gpu-kit, which `make gpu-kit` makes elsewhere. Python (PYTHON, default python3) has to be of
# the kit's version, with NumPy, SciPy and Numba, and PyTorch to compare with; nvcc has to be there. Nothing is installed into it.
#
# Steps run in the order below, the most valuable first, each stopped at its own limit of seconds; one that fails stops no other.
# Named STEPs run alone: those that a first call had no time for, in a second. OUT gets, as it comes,
#   log.txt        all that is printed
#   summary.txt    a line a step: ran, FAILED, or missing what it needs
#   results.jsonl  every sample, for `python -m bench report`; ceilings that are in it are not measured again
# The exit code is 1 where a step failed. QUICK=1 takes small sizes, SLOWER=8 makes limits eight times as long.
set -uo pipefail

[ $# -ge 1 ] || { echo 'usage: bash bench/first_contact.sh OUT [STEP...]' >&2; exit 2; }
mkdir -p "$1" && out=$(cd "$1" && pwd) || exit 2
only=" ${*:2} "
cd "$(dirname "$0")/.." || exit 2
export kit=$PWD/build/gpu-kit environment=$PWD/build/first-contact
export py=$environment/bin/python PYTHON=${PYTHON:-python3}
export PYTHONUNBUFFERED=1 PYTHONPATH=$PWD PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
exec > >(tee -a "$out/log.txt") 2>&1
log=$! failed=0 child=

report() {
    printf '\nSummary (%s)\n' "$out/summary.txt"
    cat "$out/summary.txt"
    grep -hE '^  .*; bar ' "$out/log.txt" | sort -u
    exec >&- 2>&-
    wait "$log"
}
trap report EXIT
trap 'kill "$child"; exit 143' TERM INT

has() {  # a program, module:NAME of Python, or -: nothing
    case $1 in
    -) ;;
    module:*) "$py" -c 'import importlib.util as i, sys; sys.exit(i.find_spec(sys.argv[1]) is None)' "${1#module:}" ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

step() {  # NAME SECONDS NEEDS COMMAND...
    local name=$1 limit=$(($2 * ${SLOWER:-1})) needs=$3 began=$SECONDS code went=FAILED how=
    shift 3
    [[ $only = *[a-z]* && $only != *" $name "* ]] && return
    printf '\n== %s\n' "$name"
    if ! has "$needs"; then
        printf 'missing  %-11s %s\n' "$name" "$needs" | tee -a "$out/summary.txt"
        return
    fi
    timeout -k 10 "$limit" "$@" &
    child=$!
    wait "$child"
    code=$?
    case $code in
    0) went=ran ;;
    124 | 137) how=", stopped at its limit of $limit s" failed=1 ;;
    *) how=", exit code $code" failed=1 ;;
    esac
    printf '%-8s %-11s %s s%s\n' $went "$name" $((SECONDS - began)) "$how" | tee -a "$out/summary.txt"
}

# An environment of its own that sees what PYTHON sees, and takes what is missing there from the kit; pip comes from the kit too.
install_kit() {
    "$PYTHON" -m venv --without-pip --clear "$environment" || return
    "$PYTHON" -c 'import sys; print(*sys.path[1:], sep="\n")' >"$(echo "$environment"/lib/python*/site-packages)/machine.pth"
    local pip=("$py" "$(echo "$kit"/pip-*.whl)/pip" install --no-index --disable-pip-version-check --quiet)
    "${pip[@]}" --no-deps "$kit"/cut_cross_entropy-*.whl
    "${pip[@]}" --find-links "$kit" --requirement "$kit/requirements.txt" && return
    echo 'pip says above what neither this Python nor the kit has; the kit is installed nevertheless'
    "${pip[@]}" --no-deps "$kit"/*.whl
    return 1
}
export -f install_kit

device='
import sys
from gpu.available import unavailable
print(sys.version)
sys.exit(unavailable())'

bench() {  # NAME SECONDS NEEDS: a part of `python -m bench gpu`; on a busy machine too, for it may be lent for minutes only
    step "$1" "$2" "$3" "$py" -m bench gpu --json "$out/results.jsonl" --anyway --repeat "$repeat" ${QUICK:+--quick} --only "$1"
}
repeat=${QUICK:-5}

step install 120 "$PYTHON" bash -c install_kit
step device 60 - "$py" -c "$device"
bench compile 150 -
bench tests 270 -
bench ceilings 60 -
bench units 180 -
bench tree 150 -
bench pvm 150 -
bench softmax 90 -
bench rows 60 -
for tool in memcheck racecheck initcheck synccheck; do
    step $tool 90 compute-sanitizer compute-sanitizer --tool $tool --error-exitcode 1 "$py" -m bench.gpu_once --quick
done
# Clocks stay as they are, so the figures are of the same device as those of the bench
sections=(--section SpeedOfLight --section WarpStateStats --section MemoryWorkloadAnalysis --section Occupancy)
for work in units tree pvm softmax; do
    step ncu-$work 90 ncu ncu --clock-control none --launch-count 12 "${sections[@]}" "$py" -m bench.gpu_once "$work"
done
bench rivals 300 module:torch
bench overlap 120 -
bench ragged 120 -
bench hogwild 90 -
bench sweep 300 -
exit $failed
