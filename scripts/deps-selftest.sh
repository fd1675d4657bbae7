#!/usr/bin/env bash
# Proves every branch of deps.sh on machines that are not this one: each case runs it
# with a PATH that holds stand-ins for dpkg-query, apt-get, sudo, id, uname and swift.
# They answer from files and write what they were asked into a log.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

stub() { # name, script
  printf '#!/bin/bash\n%s\n' "$2" >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}

# A machine: Debian, swift 6.3, root, nothing installed, a mirror that works.
machine() {
  rm -rf "${work:?}"/*
  mkdir -p "$work/bin" "$work/state" "$work/system"
  local tool
  for tool in awk sed grep head cat mkdir rm sh chmod env flock dirname sleep true bash; do
    ln -s "$(type -P "$tool")" "$work/bin/$tool"
  done
  : >"$work/log"
  : >"$work/state/installed"
  echo 0 >"$work/state/uid"
  echo 0 >"$work/state/failing-updates"
  echo 'Swift version 6.3.1 (swift-6.3.1-RELEASE)' >"$work/state/swift"
  printf '%s\n' '# a list' '#:build' 'libssl-dev  # TLS' 'libcurl4-openssl-dev' '' '#:test' \
    'nginx  # server' >"$work/packages.txt"
  printf 'proxy==1\n' >"$work/requirements.txt"

  # shellcheck disable=SC2016  # expanded by the stand-ins
  {
    stub uname 'cat "$STATE/uname" 2>/dev/null || echo Linux'
    stub id 'cat "$STATE/uid"'
    stub swift '[ -s "$STATE/swift" ] || { echo "no libncurses"; exit 127; }; cat "$STATE/swift"'
    stub dpkg-query 'echo "dpkg-query" >>"$LOG"; status=0
      for name in "${@:3}"; do
        if grep -qxF "$name" "$STATE/installed"; then echo "installed $name"
        elif grep -qxF "$name" "$STATE/removed" 2>/dev/null; then echo "config-files $name"
        else echo "no packages found matching $name" >&2; status=1; fi
      done; exit $status'
    stub apt-get 'echo "apt-get $* [$DEBIAN_FRONTEND]" >>"$LOG"
      [ "$(id -u)" = 0 ] || [ -n "$AS_SUDO" ] || { echo "are you root?" >&2; exit 100; }
      case " $* " in
        *" update "*)
          left=$(cat "$STATE/failing-updates"); [ "$left" = 0 ] && exit 0
          echo $((left - 1)) >"$STATE/failing-updates"; exit 100 ;;
        *" install "*)
          [ -e "$STATE/broken" ] && exit 100
          [ -e "$DEPS_POLICY" ] && echo "policy in place" >>"$LOG"
          for word in "$@"; do case $word in lib*|nginx) echo "$word" >>"$STATE/installed" ;; esac; done ;;
      esac'
    stub update-rc.d 'echo "update-rc.d $*" >>"$LOG"'
    stub python3 'echo "python3 $*" >>"$LOG"
      [ "$1" = --version ] && { echo "Python 3.11.2"; exit 0; }
      mkdir -p "$3/bin"
      printf "#!/bin/bash\necho pip \"\$*\" >>\"\$LOG\"; [ ! -e \"\$STATE/no-pypi\" ]\n" >"$3/bin/python"
      printf "#!/bin/bash\n" >"$3/bin/mitmdump"
      chmod +x "$3/bin/python" "$3/bin/mitmdump"'
  }
}

sudo_works() {
  # shellcheck disable=SC2016  # expanded by the stand-in
  stub sudo '[ "$1" = -n ] && shift; echo "sudo $*" >>"$LOG"; AS_SUDO=yes exec "$@"'
}

run() { # group -> status, output, log
  set +e
  output=$(PATH="$work/bin" LOG="$work/log" STATE="$work/state" AS_SUDO='' \
    DEPS_PACKAGES="$work/packages.txt" DEPS_REQUIREMENTS="$work/requirements.txt" \
    DEPS_TOOLS="$work/tools" DEPS_POLICY="$work/system/policy-rc.d" DEPS_PAUSE=0 \
    DEPS_PYTHON="$work/bin/python3" SWIFT=swift "$work/bin/bash" "$here/deps.sh" "$1" 2>&1)
  status=$?
  set -e
  log=$(cat "$work/log")
}

case_() { name=$1; machine; }

expect() { # what, command...
  local what=$1
  shift
  "$@" && return
  failures=$((failures + 1))
  printf 'deps-selftest: %s: expected %s\nstatus %s\noutput: %s\nlog: %s\n\n' \
    "$name" "$what" "$status" "$output" "$log"
}

exits() { [ "$status" = "$1" ]; }
says() { [[ $output == *"$1"* ]]; }
asked() { [[ $log == *"$1"* ]]; }
never() { ! "$@"; }
times() { [ "$(grep -c -- "$1" <<<"$log")" = "$2" ]; }

case_ "nothing is missing"
printf 'libssl-dev\nlibcurl4-openssl-dev\n' >"$work/state/installed"
run build
expect "success" exits 0
expect "one line" [ "$output" = "deps: all 2 packages are installed" ]
expect "no apt-get" never asked apt-get
expect "one question to dpkg" times dpkg-query 1

case_ "missing, and root"
run build
expect "success" exits 0
expect "one update" times " update " 1
expect "an installation without recommended packages or questions" \
  asked "install -y -qq --no-install-recommends libssl-dev libcurl4-openssl-dev [noninteractive]"
expect "nothing of the tests" never asked nginx
run build
expect "no second installation" times " install " 1

case_ "one is missing, one was removed"
printf 'libcurl4-openssl-dev\n' >"$work/state/installed"
printf 'libssl-dev\n' >"$work/state/removed"
run build
expect "success" exits 0
expect "only that one" asked "--no-install-recommends libssl-dev ["

case_ "missing, not root, no sudo"
echo 1000 >"$work/state/uid"
run build
expect "failure" exits 1
expect "the exact command" \
  says "apt-get update && apt-get install -y --no-install-recommends libssl-dev libcurl4-openssl-dev"
expect "no apt-get" never asked apt-get

case_ "missing, not root, sudo wants a password"
echo 1000 >"$work/state/uid"
stub sudo 'exit 1'
run build
expect "failure" exits 1
expect "the exact command" says "apt-get update && apt-get install"
expect "no apt-get" never asked apt-get

case_ "missing, not root, sudo works"
echo 1000 >"$work/state/uid"
sudo_works
run build
expect "success" exits 0
expect "apt-get through sudo" asked "sudo env DEBIAN_FRONTEND=noninteractive apt-get"

case_ "not root, but nothing is missing"
echo 1000 >"$work/state/uid"
printf 'libssl-dev\nlibcurl4-openssl-dev\n' >"$work/state/installed"
run build
expect "success" exits 0

case_ "the gnutls flavour of libcurl is installed"
echo libcurl4-gnutls-dev >"$work/state/installed"
run build
expect "failure" exits 1
expect "the conflict" says "libcurl4-gnutls-dev is installed"
expect "the way out" says "hint: to replace it"
expect "no apt-get" never asked apt-get

case_ "the mirror stumbles twice"
echo 2 >"$work/state/failing-updates"
run build
expect "success" exits 0
expect "three updates" times " update " 3
expect "one installation" times " install " 1

case_ "the mirror is down"
echo 9 >"$work/state/failing-updates"
: >"$work/state/broken"
run build
expect "failure" exits 1
expect "three updates" times " update " 3
expect "the names" says "could not install: libssl-dev libcurl4-openssl-dev"

case_ "no swift"
rm "$work/bin/swift"
run build
expect "failure" exits 1
expect "the reason" says "no swift in PATH"
expect "nothing installed" never asked apt-get

case_ "swift is too old"
echo 'Apple Swift version 6.1.2 (swiftlang)' >"$work/state/swift"
run build
expect "failure" exits 1
expect "both versions" says "swift 6.1 is too old; version 6.2"

case_ "swift is of an older series with a larger minor number"
echo 'Swift version 5.10.1 (swift-5.10.1-RELEASE)' >"$work/state/swift"
run build
expect "failure" exits 1

for version in 6.2 6.10 7.0-dev; do
  case_ "swift $version is new enough"
  echo "Swift version $version (LLVM)" >"$work/state/swift"
  run build
  expect "success" exits 0
done

case_ "swift does not start"
: >"$work/state/swift"
run build
expect "failure" exits 1
expect "its own words" says "swift does not start: no libncurses"

case_ "macOS"
echo Darwin >"$work/state/uname"
run build
expect "failure" exits 1
expect "the reason" says "this is macOS"

case_ "another Linux"
rm "$work/bin/dpkg-query" "$work/bin/apt-get"
run build
expect "failure" exits 1
expect "the reason" says "not a Debian system"

case_ "the tests' needs"
run test
expect "success" exits 0
expect "nginx" asked "libcurl4-openssl-dev nginx ["
expect "no service started by the installation" asked "policy in place"
expect "the policy taken away again" [ ! -e "$work/system/policy-rc.d" ]
expect "no service at the next boot" asked "update-rc.d nginx disable"
expect "the proxy, from the list" asked "-r $work/requirements.txt"
run test
expect "no second environment" times " -m venv " 1
printf 'proxy==2\n' >"$work/requirements.txt"
run test
expect "a new environment for a new list" times " -m venv " 2

case_ "a policy that was there before"
printf 'theirs' >"$work/system/policy-rc.d"
run test
expect "success" exits 0
expect "their policy untouched" [ "$(cat "$work/system/policy-rc.d")" = theirs ]

case_ "the installation of nginx fails"
: >"$work/state/broken"
run test
expect "failure" exits 1
expect "the policy taken away again" [ ! -e "$work/system/policy-rc.d" ]

case_ "the Python tools cannot be had"
: >"$work/state/no-pypi"
run test
expect "failure" exits 1
expect "the reason" says "pip could not install"
rm "$work/state/no-pypi"
run test
expect "success at the next try" exits 0
expect "a new environment, not the half-built one" times " -m venv " 2

case_ "a list that cannot be read"
printf '#:build\nlibyaml-dev\nlibssl-dev libcurl4-openssl-dev\n' >"$work/packages.txt"
run build
expect "failure" exits 1
expect "the line" says "unreadable: libssl-dev libcurl4-openssl-dev"
expect "nothing installed" never asked apt-get

case_ "an empty list"
: >"$work/packages.txt"
run build
expect "failure" exits 1
expect "the reason" says "no packages in"

case_ "an unknown group"
run everything
expect "failure" exits 1

if [ "$failures" != 0 ]; then
  printf 'deps-selftest: %d expectations failed\n' "$failures"
  exit 1
fi
