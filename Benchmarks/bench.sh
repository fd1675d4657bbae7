#!/usr/bin/env bash
# Builds what `bench` measures, optimised, and its peers; then runs it: bench/__main__.py says with what.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
swift=${SWIFT:-swift}
venv=$PWD/.build/tools/benchmarks

if [ "$(cat "$venv/stamp" 2>/dev/null)" != "$(cat Benchmarks/requirements.txt)" ]; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --no-input --disable-pip-version-check \
    -r Benchmarks/requirements.txt </dev/null
  cp Benchmarks/requirements.txt "$venv/stamp"
fi

(cd Benchmarks/peers/gopeer && GOTOOLCHAIN=local GOFLAGS=-mod=mod "$venv/bin/go" build -o "$venv/gopeer" .)

strict=(-c release --explicit-target-dependency-import-check error)
sdk=("$swift" build --package-path Benchmarks --scratch-path .build/benchmarks "${strict[@]}")
server=("$swift" build "${strict[@]}")
"${sdk[@]}"
for product in scan bytes ssl-pinning; do "${server[@]}" --product "$product"; done

exec "$venv/bin/python" -B Benchmarks/bench "$@" \
  "$("${sdk[@]}" --show-bin-path)" "$("${server[@]}" --show-bin-path)" "$venv/gopeer"
