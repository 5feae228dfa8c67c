#!/usr/bin/env bash
# The first minutes on a lent GPU machine without a network:  bash bench/first_ten.sh OUT SECONDS [STEP...]
#
# The most valuable figures come first, and nothing stops what follows: each step is a process group of its own that is killed
# at its cap, and is skipped where too few of the SECONDS are left. Named STEPs run alone; `ncu`, `memcheck` and `racecheck`
# run only when they are named. Prepare the checkout elsewhere with `make gpu-kit`, and carry build/gpu-kit, build/cache,
# build/golden and build/commit with it. The machine needs Python 3.12 (PYTHON, default python3), NumPy and a driver.
#
# OUT gets, as it comes,
#   log.txt        all that is printed
#   summary.txt    a line a step: its seconds and its exit code
#   results.jsonl  a line a case of the smoke and a line a rival, for `python -m bench gpu --tell OUT`
#   tests.xml      what pytest found, until its cap
#   ncu-WORK.txt   what ncu printed
# The exit code is 1 where a step failed. SLOWER=8 makes all caps eight times as long, QUICK=1 takes small sizes and few tests.
set -uo pipefail

[ $# -ge 2 ] || { echo 'usage: bash bench/first_ten.sh OUT SECONDS [STEP...]' >&2; exit 2; }
mkdir -p "$1" && out=$(cd "$1" && pwd) || exit 2
limit=$2 began=$SECONDS only=" ${*:3} " slower=${SLOWER:-1} failed=0 group= SIGNAL= QUICK=${QUICK:-}
cd "$(dirname "$0")/.." || exit 2
PYTHON=${PYTHON:-python3} temporary=$(mktemp -d)
export PYTHON SITE=$temporary/site FIRST=1 PYTHONUNBUFFERED=1 PYTHONPATH=$PWD:$temporary/site
export PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin HYBRID_GOLDEN=$PWD/build/golden
export HYBRID_COMMIT=${HYBRID_COMMIT:-$(cat build/commit 2>/dev/null || echo unknown)}
# A copy that belongs to this user: kernels are loaded from no folder that others can write.
export XDG_CACHE_HOME=$temporary/cache
mkdir -m 700 "$XDG_CACHE_HOME" && cp -r build/cache/. "$XDG_CACHE_HOME" 2>/dev/null
[ ! -f build/cache/cubins.tar.gz ] || tar -xzf build/cache/cubins.tar.gz --no-same-owner -C "$XDG_CACHE_HOME"
chmod -R go-w "$XDG_CACHE_HOME"
exec > >(tee -a "$out/log.txt") 2>&1
log=$!

finish() {
    [ -z "$group" ] || kill -KILL -- "-$group" 2>/dev/null
    rm -rf "$temporary"
    printf '\nSummary, %d s (%s)\n' $((SECONDS - began)) "$out/summary.txt"
    cat "$out/summary.txt" 2>/dev/null
    exec >&- 2>&-
    wait "$log"
}
trap finish EXIT
trap 'exit 143' TERM INT

step() {  # NAME CAP LEAST COMMAND...; SIGNAL: what ends it at its cap, 9 s before it is killed (else TERM, 3 s)
    local name=$1 cap=$(($2 * $slower)) least=$3 left=$((limit - SECONDS + began)) from=$SECONDS code
    shift 3
    [[ $only = *[a-z]* && $only != *" $name "* ]] && return
    [[ $only != *[a-z]* && " ncu memcheck racecheck " = *" ${name%%-*} "* ]] && return
    if ((left < least)); then
        printf '%-10s skipped, %d s left\n' "$name" "$left" | tee -a "$out/summary.txt"
        return
    fi
    printf '\n== %s (%d s left)\n' "$name" "$left"
    # It makes a process group of its own, with its number.
    timeout -s "${SIGNAL:-TERM}" -k $((${#SIGNAL} ? 9 : 3)) $((left < cap ? left : cap)) "$@" &
    group=$!
    wait "$group"
    code=$?
    kill -KILL -- "-$group" 2>/dev/null  # what the step has left running
    group=
    ((code == 0)) || failed=1
    printf '%-10s %3d s, exit code %d%s\n' "$name" $((SECONDS - from)) $code \
        "$( ((code == 124 || code == 137)) && echo ' (stopped at its cap)')" | tee -a "$out/summary.txt"
}

bench() {  # NAME CAP LEAST: on a busy machine too
    step "$1" "$2" "$3" "$PYTHON" -m bench gpu --json "$out/results.jsonl" --anyway --repeat 5 ${QUICK:+--quick} --only "$1"
}

facts='nvidia-smi -q -d CLOCK,POWER,MEMORY | head -70; nvcc --version | tail -2; "$PYTHON" -V; nproc; uname -r; cat build/commit
"$PYTHON" -m pip list --disable-pip-version-check 2>/dev/null | grep -iE "^(numpy|scipy|numba|torch|triton|cupy|pytest|hypothesis|pycuda)"
true'
install='"$PYTHON" -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target "$SITE" build/gpu-kit/*.whl || exit
"$PYTHON" -c "import sys; from gpu.runtime.available import unavailable; sys.exit(unavailable())" && "$PYTHON" -m bench.gpu.kit compile'

step facts 15 1 bash -c "$facts"
step install 60 1 bash -c "$install"
step smoke 60 1 "$PYTHON" -m tests.smoke --json "$out/results.jsonl"
bench ceilings 35 20
bench units 80 35
bench pvm 110 45
bench tree 65 30
bench softmax 45 25
bench rows 20 15
bench ragged 40 20
bench losses 60 30
bench overlap 70 40
# Kernels first, engines last.
kinds=(units unit_rates pvm pvm_recorded rows sort tree_softmax tree_batch softmax mlp optimiser head
    batch_rows blas driver_calls memory device graphs pvm_shared engine engine_parts)
files=("${kinds[@]/#/tests/gpu/test_}") && files=("${files[@]/%/.py}")
few=(${QUICK:+-k 'test_sort.py or test_batch_rows.py'})  # all are imported, these run
# pytest writes tests.xml at its end or when it is interrupted, which a process in the background has to be made to hear.
SIGNAL=INT step tests 600 40 env --default-signal=INT "$PYTHON" -m pytest -q -n $((${#QUICK} ? 2 : 8)) --dist loadfile -W default \
    -p no:cacheprovider --maxfail 30 --tb=short "--junitxml=$out/tests.xml" "${few[@]}" "${files[@]}"

# Small problems, once each; clocks stay as they are, so the figures are of the same device as those of the bench.
sections=(SpeedOfLight InstructionStats SchedulerStats WarpStateStats MemoryWorkloadAnalysis Occupancy)
for work in units pvm tree softmax; do
    step ncu-$work 25 15 bash -o pipefail -c '"${@:2}" 2>&1 | tee "$1"' -- "$out/ncu-$work.txt" ncu --clock-control none \
        --target-processes all --launch-count 24 "${sections[@]/#/--section=}" "$PYTHON" -m bench.gpu.once ${QUICK:+--quick} $work
done
step memcheck 60 20 compute-sanitizer --tool memcheck --error-exitcode 1 --target-processes all "$PYTHON" -m tests.smoke --limit 60
step racecheck 60 20 compute-sanitizer --tool racecheck --error-exitcode 1 --target-processes all "$PYTHON" -m tests.smoke --limit 60
exit $failed
