#!/usr/bin/env bash
# What can be scripted of docs/first-day-on-a-mac.md. It has never run on a Mac; its servers and its probe
# run on Linux (first-day-selftest.py).
#
#   first-day.sh --dry-run   print the plan: a line for each of the 24 tests, its step or "by hand"
#   first-day.sh             run every step; needs macOS, Xcode 26, brew's nginx and openssl@3
#   first-day.sh STEP…       run these steps: build, libraries, probe, simulators
#
# Writes .build/first-day: results.tsv (test, what was seen, system), and a log for each command. It judges
# nothing: copy the results into the document's table.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

here=$PWD/scripts/apple
out=$PWD/.build/first-day
results=$out/results.tsv
derived=$out/derived
nginx=''
steps=(build libraries probe simulators)

plan() {
  cat <<'PLAN'
1	build	xcodebuild of SslPinning for every system, then of App: warnings counted
2	libraries	otool -L, the library for Span, privacy manifests, swift-stdlib-tool
3	by hand	numbers beyond 32 bits on an arm64_32 watch
4	probe simulators	a listed host with the right pin
5	probe simulators	a listed host with a wrong pin
6	probe simulators	http on a pinned session; the other schemes and kinds of task by hand
7	by hand	background configurations
8	by hand	a task's own delegate
9	probe simulators	two requests, tickets on, TLS 1.2 and 1.3
10	probe simulators	a wrong pin after a pinned and after a plain session in one process
11	by hand	a change of pins under way
12	by hand	HTTP/2 coalescing
13	by hand	HTTP/3
14	by hand	proxies
15	by hand	own anchors and App Transport Security
16	by hand	a clock that is a year slow
17	by hand	intermediates that are fetched, a revocation server that hangs
18	by hand	an upload that breaks off
19	by hand	a slow reader
20	by hand	a client that is let go
21	by hand	a device asleep
22	by hand	keys and signatures
23	by hand	files
24	by hand	the recipes for WKWebView and Alamofire
PLAN
}

note() { # test, what was seen
  printf '%s\t%s\t%s\n' "$1" "$2" "$(system)" | tee -a "$results"
}

system() { echo "${running:-macOS $(sw_vers -productVersion), Xcode $(xcodebuild -version | sed -n 's/Xcode //p')}"; }

stop() {
  [ -z "$nginx" ] || kill "$nginx" 2>/dev/null
  nginx=''
}
trap stop EXIT

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# A CA, a certificate of `localhost`, and nginx with tickets and without keep-alive. Its log says for each
# path which version of TLS it came by, and whether the TLS session was resumed (r) or not (.).
serve() {
  local work=$out/servers
  rm -rf "$work" && mkdir -p "$work" && cd "$work" || return 1
  {
    openssl req -x509 -newkey rsa:2048 -nodes -days 90 -keyout ca.key -out ca.pem \
      -subj '/CN=first day' -addext 'keyUsage=critical,keyCertSign' &&
      openssl req -newkey rsa:2048 -nodes -keyout key.pem -out request.pem -subj '/CN=localhost' &&
      printf '%s\n' 'subjectAltName=DNS:localhost' 'extendedKeyUsage=serverAuth' \
        'basicConstraints=CA:FALSE' >extensions &&
      openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 90 \
        -extfile extensions -out leaf.pem &&
      openssl x509 -in ca.pem -outform der -out ca.der
  } >openssl.log 2>&1 || return 1
  PROBE_PIN=$(openssl x509 -in leaf.pem -noout -pubkey | openssl pkey -pubin -outform der |
    openssl dgst -sha256 -binary | base64)
  PROBE_ANCHOR=$work/ca.der
  PROBE_TLS12=$(free_port) PROBE_TLS13=$(free_port) PROBE_CLEAR=$(free_port)
  export PROBE_PIN PROBE_ANCHOR PROBE_TLS12 PROBE_TLS13 PROBE_CLEAR
  sed "s/@TLS12@/$PROBE_TLS12/; s/@TLS13@/$PROBE_TLS13/; s/@CLEAR@/$PROBE_CLEAR/" \
    "$here/first-day-nginx.conf" >nginx.conf
  nginx -p "$work" -c nginx.conf -e "$work/error.log" -g 'daemon off;' >nginx.log 2>&1 &
  nginx=$!
  cd - >/dev/null || return 1
  local tries=0
  until curl -s -o /dev/null "http://127.0.0.1:$PROBE_CLEAR/up"; do
    tries=$((tries + 1))
    { kill -0 "$nginx" 2>/dev/null && [ $tries -lt 100 ]; } || return 1
    sleep 0.1
  done
}

# Runs a probe; its lines, and what the server saw under each path, become results.
probe() { # command...
  : >"$out/servers/seen.log"
  "$@" 2>"$out/probe-errors.log" | while IFS=$'\t' read -r number seen; do
    note "$number" "${seen:-no line}"
  done
  local path version resumed
  while read -r path version resumed; do
    path=${path#/}
    note "${path%%-*}" "the server saw $path over ${version:--}, resumed: ${resumed:--}"
  done <"$out/servers/seen.log"
}

xcode() { # log, arguments...
  local log=$out/$1.log
  shift
  xcodebuild -workspace SslPinning.xcworkspace -derivedDataPath "$derived" "$@" \
    CODE_SIGNING_ALLOWED=NO >"$log" 2>&1
  local status=$?
  echo "exit code $status, $(grep -c ' warning: ' "$log") warnings, $(grep -c ' error: ' "$log") errors ($log)"
}

step_build() {
  local destination
  for destination in iOS 'iOS Simulator' macOS 'macOS,variant=Mac Catalyst' tvOS watchOS visionOS; do
    note 1 "SslPinning for $destination: $(xcode "build-${destination// /-}" -scheme SslPinning \
      -destination "generic/platform=$destination" build)"
  done
  note 1 "App: $(xcode build-App -scheme App -destination 'generic/platform=iOS Simulator' build)"
}

step_libraries() {
  local app
  app=$(find "$derived" -name App.app -type d | head -1)
  [ -n "$app" ] || { note 2 'there is no App.app: run the step build first'; return; }
  otool -L "$app/App" >"$out/otool.log" 2>&1
  note 2 "libraries that are not the system's: $(grep -v '/System/\|/usr/lib/' "$out/otool.log" | tr -s '\n\t' '  ')"
  note 2 "Span in the app: $(find "$app" -name '*Span*' | tr '\n' ' ')"
  note 2 "privacy manifests: $(find "$app" -name PrivacyInfo.xcprivacy | tr '\n' ' ')"
  xcrun swift-stdlib-tool --print --scan-executable "$app/App" --platform iphonesimulator \
    >"$out/stdlib-tool.log" 2>&1
  note 2 "swift-stdlib-tool: $(tr '\n' ' ' <"$out/stdlib-tool.log")"
}

package() { # log, arguments...
  local log=$out/$1.log
  shift
  swift build --package-path scripts/apple/probe --scratch-path "$out/probe" "$@" >"$log" 2>&1
}

step_probe() {
  package probe-macOS || { note 4 "the probe does not build ($out/probe-macOS.log)"; return; }
  probe "$out/probe/debug/probe"
}

# The newest and the oldest simulator of each system that is installed. They share the host's loopback.
step_simulators() {
  local kind sdk device name id
  for kind in iOS:iphonesimulator:ios15.0 tvOS:appletvsimulator:tvos15.0 \
    watchOS:watchsimulator:watchos8.0 visionOS:xrsimulator:xros1.0; do
    IFS=: read -r name sdk device <<<"$kind"
    running="$name simulator"
    package "probe-$name" --triple "$(uname -m)-apple-$device-simulator" \
      --sdk "$(xcrun --sdk "$sdk" --show-sdk-path)" ||
      { note 4 "the probe does not build ($out/probe-$name.log)"; continue; }
    xcrun simctl list devices available -j | python3 -c '
import json, sys
kinds = sorted((r, d[0]["udid"]) for r, d in json.load(sys.stdin)["devices"].items()
               if d and f".{sys.argv[1]}-".replace("vision", "x") in r.replace("vision", "x"))
for runtime, device in {k: k for k in kinds[:1] + kinds[-1:]}:
    print(runtime.rsplit(".", 1)[-1], device)' "$name" >"$out/devices-$name"
    while read -r running id; do
      xcrun simctl boot "$id" >"$out/boot.log" 2>&1
      xcrun simctl bootstatus "$id" >>"$out/boot.log" 2>&1
      probe env SIMCTL_CHILD_PROBE_PIN="$PROBE_PIN" SIMCTL_CHILD_PROBE_ANCHOR="$PROBE_ANCHOR" \
        SIMCTL_CHILD_PROBE_TLS12="$PROBE_TLS12" SIMCTL_CHILD_PROBE_TLS13="$PROBE_TLS13" \
        SIMCTL_CHILD_PROBE_CLEAR="$PROBE_CLEAR" \
        xcrun simctl spawn "$id" "$(find "$out/probe" -path "*$sdk*" -name probe -type f | head -1)"
      xcrun simctl shutdown "$id" >>"$out/boot.log" 2>&1
    done <"$out/devices-$name"
  done
  running=''
}

main() {
  case ${1:-} in
  --dry-run) plan; return ;;
  --probe) # the self-test's: servers, and a probe that is built already
    mkdir -p "$out" && : >"$results"
    running=$(uname -s)
    serve && probe "${@:2}"
    return ;;
  -*) echo "usage: ${0##*/} [--dry-run | STEP…]" >&2; return 2 ;;
  esac
  local step known=" ${steps[*]} "
  for step in "$@"; do
    [[ $known == *" $step "* ]] || { echo "there is no step $step; hint: ${steps[*]}" >&2; return 2; }
  done
  [ "$(uname -s)" = Darwin ] || { echo 'this needs a Mac; hint: --dry-run prints the plan' >&2; return 1; }
  mkdir -p "$out" && : >"$results"
  serve || { echo "nginx does not start; hint: brew install nginx openssl@3; see $out/servers" >&2; return 1; }
  [ $# -gt 0 ] || set -- "${steps[@]}"
  for step in "$@"; do "step_$step"; done
  echo "results: $results"
}

main "$@"
