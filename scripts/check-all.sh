#!/usr/bin/env bash
# Runs every check that compiles nothing: first each one's self-test, because a check
# that cannot fail proves nothing, then the check. Runs them all, fails if one failed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
swift=${SWIFT:-swift}
export PYTHONDONTWRITEBYTECODE=1
failed=()

run() { # name, command...
  local name=$1
  shift
  if "$@"; then
    printf 'check: %s: ok\n' "$name"
  else
    printf 'check: %s: FAILED\n' "$name"
    failed+=("$name")
  fi
}

for check in platform-door imports folders constructs errors own-words manifest version architecture threat-model app-project \
  apple-apps retired mutants; do
  run "$check self-test" /usr/bin/env python3 "scripts/checks/$check.py" --self-test
  run "$check" /usr/bin/env python3 "scripts/checks/$check.py"
done
run "mutants runner self-test" /usr/bin/env python3 scripts/mutants.py --self-test
run "deps self-test" scripts/deps-selftest.sh
run "first day self-test" /usr/bin/env python3 scripts/apple/first-day-selftest.py
# The C shims, under the compiler they are built with: the toolchain's own.
resources=$("$swift" -print-target-info | sed -n 's/.*"runtimeResourcePath": "\(.*\)".*/\1/p')
run "C shims" "$resources/../../bin/clang" -std=gnu17 -fsyntax-only -Wall -Wextra -Werror \
  -ISources/CSslPinningShims/include Sources/CSslPinningShims/*.c
if command -v shellcheck >/dev/null; then
  run "shell scripts" shellcheck scripts/*.sh scripts/apple/*.sh Benchmarks/*.sh .ci/run packaging/p* packaging/announce-renewed
else
  printf 'check: shell scripts: skipped, shellcheck is not installed\n'
fi
if command -v promtool >/dev/null; then
  run "alert rules self-test" /usr/bin/env python3 scripts/checks/alerts.py --self-test
  run "alert rules" /usr/bin/env python3 scripts/checks/alerts.py
else
  printf 'check: alert rules: skipped, promtool is not installed\n'
fi
run "format" "$swift" format lint --strict -r Package.swift Sources Tests Server App Benchmarks \
  scripts/linking scripts/consumer scripts/apple/probe

if [ ${#failed[@]} -gt 0 ]; then
  printf 'check: %d failed: %s\n' ${#failed[@]} "${failed[*]}"
  exit 1
fi
