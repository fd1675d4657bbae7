#!/usr/bin/env bash
# Builds `scan`, optimised, and measures a round of looks, beside a peer where one is given: see scan.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
swift=${SWIFT:-swift}

build=("$swift" build -c release --explicit-target-dependency-import-check error --product scan)
"${build[@]}"
"$swift" build -c release --explicit-target-dependency-import-check error --product ssl-pinning
PYTHONDONTWRITEBYTECODE=1 exec python3 Benchmarks/scan.py \
  "$("${build[@]}" --show-bin-path)/scan" \
  --server "$("${build[@]}" --show-bin-path)/ssl-pinning" "$@"
