#!/usr/bin/env bash
# Builds `bytes`, and prints what a day costs a client for 10, 1 000 and 10 000 hosts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
swift=${SWIFT:-swift}

build=("$swift" build -c release --explicit-target-dependency-import-check error --product bytes)
"${build[@]}"
keys=$(mktemp -d)
trap 'rm -rf "$keys"' EXIT
openssl genrsa -out "$keys/prv.pem" 4096 2>/dev/null
"$("${build[@]}" --show-bin-path)/bytes" "$keys"
