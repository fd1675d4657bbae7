#!/usr/bin/env bash
# The installed program links nothing of the lab: no proxy that intercepts, no forger of certificates.
# The lab's own program is the control: there the same search has to find them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=${1:-.build/debug}
# A Swift symbol carries the name of its module, its length in front.
linked() { nm "$folder/$1" 2>/dev/null | grep -c '8FaultLab' || true; }

if [ "$(linked ssl-pinning-lab)" -eq 0 ]; then
  echo "check: installed program: the control finds nothing; hint: swift build" >&2
  exit 1
fi
if [ "$(linked ssl-pinning)" -ne 0 ]; then
  echo "check: installed program: ssl-pinning links FaultLab" >&2
  exit 1
fi
echo "check: installed program: ok"
