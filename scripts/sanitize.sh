#!/usr/bin/env bash
# Runs the tests under a sanitizer, each with a build of its own. A finding fails the run.
#
#   scripts/sanitize.sh thread|address [FILTER]
set -euo pipefail
cd "$(dirname "$0")/.."

kind=${1:?thread or address}
filter=${2:-}
swift=${SWIFT:-swift}
here=$PWD/scripts/sanitizers
log=.build/sanitize-$kind.log

case $kind in
thread)
  export TSAN_OPTIONS="halt_on_error=0 exitcode=66 suppressions=$here/thread.txt"
  ;;
address)
  # Leaks are looked for too; what the Swift runtime and libraries keep for good is listed.
  export ASAN_OPTIONS="detect_leaks=1 exitcode=66"
  export LSAN_OPTIONS="suppressions=$here/leaks.txt print_suppressions=0"
  ;;
*)
  printf 'sanitize: %s is no sanitizer; hint: thread or address\n' "$kind" >&2
  exit 2
  ;;
esac

common=(--sanitize="$kind" --scratch-path ".build/$kind" --explicit-target-dependency-import-check error)
"$swift" build "${common[@]}" --build-tests
run=("${common[@]}" --skip-build --disable-xctest --experimental-maximum-parallelization-width 4)
# Not `|| true` behind it: that would be the pipeline whose status is asked for.
set +e
"$swift" test "${run[@]}" ${filter:+--filter "$filter"} 2>&1 | tee "$log" | grep -E '✘|Test run|Sanitizer'
status=${PIPESTATUS[0]}
set -e
if grep -qE '(Thread|Address|Leak)Sanitizer' "$log"; then
  grep -nE -A14 '(Thread|Address|Leak)Sanitizer' "$log" | head -200
  printf 'sanitize: %s: findings, in %s\n' "$kind" "$log"
  exit 1
fi
[ "$status" = 0 ] || { printf 'sanitize: %s: tests failed\n' "$kind"; exit 1; }

# Once more with whole stacks, for what libcurl holds on our behalf (leaks.txt says why).
if [ "$kind" = address ] && [ -z "$filter" ]; then
  narrow=.build/leaks-narrow.txt
  grep -v '^leak:libcurl' "$here/leaks.txt" >"$narrow"
  export ASAN_OPTIONS="$ASAN_OPTIONS fast_unwind_on_malloc=0 malloc_context_size=14"
  export LSAN_OPTIONS="suppressions=$PWD/$narrow print_suppressions=0"
  "$swift" test "${run[@]}" --filter 'FastClientTests/(served|mismatch|response)|PinnedSessionTests' \
    >"$log.narrow" 2>&1 || {
    grep -nE -A14 '(Address|Leak)Sanitizer' "$log.narrow" | head -100
    printf 'sanitize: %s: findings, in %s\n' "$kind" "$log.narrow"
    exit 1
  }
fi
printf 'sanitize: %s: no findings\n' "$kind"
