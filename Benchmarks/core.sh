#!/usr/bin/env bash
# Builds `core`, optimised, and measures it beside its peers: see core.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
swift=${SWIFT:-swift}
venv=$PWD/.build/tools/benchmarks

build=("$swift" build --package-path Benchmarks --scratch-path .build/benchmarks -c release
  --explicit-target-dependency-import-check error --product core)
"${build[@]}"

if [ "$(cat "$venv/stamp" 2>/dev/null)" != "$(cat Benchmarks/requirements.txt)" ]; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --no-input --disable-pip-version-check \
    -r Benchmarks/requirements.txt </dev/null
  cp Benchmarks/requirements.txt "$venv/stamp"
fi

PYTHONDONTWRITEBYTECODE=1 exec "$venv/bin/python" Benchmarks/core.py \
  "$("${build[@]}" --show-bin-path)/core" "$@"
