#!/usr/bin/env bash
# Installs what is missing, and nothing that is there.
#
#   scripts/deps.sh build    what building and running need
#   scripts/deps.sh test     that, and what the tests need
#   scripts/deps.sh bench    what building and measuring need
#
# Packages come from scripts/packages.txt, Python tools from scripts/requirements.txt.
# When nothing is missing no package manager is called. Without root and without
# password-free sudo nothing is changed: the command to run is printed, exit status 1.
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
list=${DEPS_PACKAGES:-$here/packages.txt}
requirements=${DEPS_REQUIREMENTS:-$here/requirements.txt}
tools=${DEPS_TOOLS:-$here/../.build/tools}
swift=${SWIFT:-swift}
minimum_major=6
minimum_minor=2

fail() { # message, hint...
  printf 'deps: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf 'hint: %s\n' "$line" >&2; done
  exit 1
}

require_debian() {
  if [ "$(uname -s)" = Darwin ]; then
    fail "this is macOS; the tools, the demo and their tests run on Debian 12" \
      "an app needs no system package here: add the library product SslPinning to it"
  fi
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    fail "this is not a Debian system (no dpkg-query or apt-get)" \
      "install what $list names by the means of your system, then run swift build"
  fi
}

require_swift() {
  command -v "$swift" >/dev/null ||
    fail "no swift in PATH; version $minimum_major.$minimum_minor or newer is needed" \
      "unpack a toolchain from swift.org and put its usr/bin into PATH"
}

# After the packages: on a bare machine the toolchain cannot start without them.
check_swift_version() {
  local answer version
  answer=$("$swift" --version 2>&1) || fail "swift does not start: $answer"
  version=$(sed -n 's/.*Swift version \([0-9][0-9]*\.[0-9][0-9]*\).*/\1/p' <<<"$answer" | head -n 1)
  [ -n "$version" ] || fail "cannot read the version of swift: $answer"
  local major=${version%%.*} minor=${version#*.}
  if ((major < minimum_major || (major == minimum_major && minor < minimum_minor))); then
    fail "swift $version is too old; version $minimum_major.$minimum_minor or newer is needed" \
      "unpack a newer toolchain from swift.org and put its usr/bin first in PATH"
  fi
}

# The packages of one group; fails on a line it cannot read rather than skip it.
group() {
  awk -v want="$1" '
    /^#:/ { section = substr($0, 3); next }
    { sub(/#.*/, "") }
    NF == 0 { next }
    NF > 1 || section == "" { print "unreadable: " $0 > "/dev/stderr"; bad = 1; next }
    section == want { print $1 }
    END { exit bad }' "$list" || fail "cannot read $list"
}

installed() { # package... -> those of them that are installed
  # dpkg-query fails when it does not know one of the names; its answer still counts.
  { dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true; } |
    sed -n 's/^installed //p'
}

missing_of() { # package... -> those of them that are missing
  local there name
  there=$(installed "$@")
  for name in "$@"; do
    grep -qxF -- "$name" <<<"$there" || printf '%s\n' "$name"
  done
}

# The two other flavours of libcurl's headers exclude ours. Replacing a package
# that somebody chose is theirs to decide.
refuse_other_curl() { # missing package...
  local other
  [[ " $* " == *" libcurl4-openssl-dev "* ]] || return 0
  other=$(installed libcurl4-gnutls-dev libcurl4-nss-dev | head -n 1)
  [ -z "$other" ] || fail \
    "$other is installed; pinning needs the OpenSSL flavour, libcurl4-openssl-dev, and Debian allows one of them" \
    "to replace it run (as root): apt-get install --no-install-recommends libcurl4-openssl-dev"
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

may_become_root() {
  [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }
}

apt() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get \
    -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 "$@" </dev/null
}

# A mirror that stumbles gets three tries. A stale list need not be fatal: whether
# the packages can be had is for the installation to say.
update_lists() {
  local try
  for try in 1 2 3; do
    apt -o APT::Update::Error-Mode=any update -qq && return 0
    [ "$try" = 3 ] || sleep "$((try * ${DEPS_PAUSE:-3}))"
  done
  printf 'deps: apt-get update failed three times; trying with the lists at hand\n' >&2
}

# Debian starts a service when it installs one. The tests start an nginx of their
# own, so ours must neither start now nor at the next boot.
install_quietly() { # package...
  local policy=${DEPS_POLICY:-/usr/sbin/policy-rc.d} placed=no status=0
  if [[ " $* " == *" nginx "* ]] && [ ! -e "$policy" ]; then
    # shellcheck disable=SC2016  # expanded by the inner shell
    as_root sh -c 'printf "#!/bin/sh\nexit 101\n" >"$1" && chmod 755 "$1"' sh "$policy"
    placed=yes
    # shellcheck disable=SC2064  # the path of now
    trap "as_root rm -f '$policy'" EXIT
  fi
  # Only the errors: a page of "Unpacking" hides what comes after it.
  apt -o Dpkg::Use-Pty=0 install -y -qq --no-install-recommends "$@" >/dev/null || status=$?
  if [ "$placed" = yes ]; then
    as_root rm -f "$policy"
    trap - EXIT
    [ "$status" != 0 ] || as_root update-rc.d nginx disable >/dev/null 2>&1 || true
  fi
  return "$status"
}

ensure_packages() { # package...
  local missing
  mapfile -t missing < <(missing_of "$@")
  if [ ${#missing[@]} = 0 ]; then
    printf 'deps: all %d packages are installed\n' "$#"
    return
  fi
  refuse_other_curl "${missing[@]}"
  if ! may_become_root; then
    printf 'deps: missing packages, and this is not root: %s\n' "${missing[*]}" >&2
    printf 'hint: run this as root, then try again:\n' >&2
    printf '  apt-get update && apt-get install -y --no-install-recommends %s\n' "${missing[*]}" >&2
    exit 1
  fi
  printf 'deps: installing %s\n' "${missing[*]}"
  update_lists
  install_quietly "${missing[@]}" || fail "apt-get could not install: ${missing[*]}"
  mapfile -t missing < <(missing_of "$@")
  [ ${#missing[@]} = 0 ] || fail "still missing after the installation: ${missing[*]}"
}

# All that is needed is pinned there, and nothing else is installed (--no-deps).
# A virtual environment is tied to its path and its interpreter: both are in the
# stamp, which is written last, so a half-built one is built again.
ensure_mitmproxy() {
  local venv python stamp wanted
  mkdir -p "$tools"
  venv=$(cd "$tools" && pwd)/mitmproxy
  python=${DEPS_PYTHON:-/usr/bin/python3}
  stamp=$venv/stamp
  wanted=$(printf '%s\n' "$venv" "$("$python" --version)" && cat "$requirements")
  exec 9>"$tools/lock" && flock 9
  if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    printf 'deps: mitmproxy is installed\n'
  else
    printf 'deps: installing mitmproxy into %s\n' "$venv"
    rm -rf "$venv"
    "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --no-input --disable-pip-version-check \
      --retries 5 --no-deps -r "$requirements" </dev/null ||
      fail "pip could not install $requirements" "the tests' man in the middle needs it; check the network"
    "$venv/bin/mitmdump" --version >/dev/null || fail "mitmdump does not start"
    printf '%s\n' "$wanted" >"$stamp"
  fi
  exec 9>&-
}

main() {
  local names packages
  case ${1:-} in
    build) names=$(group build) ;;
    test) names=$(group build && group test) ;;
    bench) names=$(group build && group bench) ;;
    *) fail "usage: deps.sh build|test|bench" ;;
  esac
  [ -n "$names" ] || fail "no packages in $list"
  mapfile -t packages <<<"$names"
  require_debian
  require_swift
  ensure_packages "${packages[@]}"
  check_swift_version
  [ "$1" != test ] || ensure_mitmproxy
}

main "$@"
