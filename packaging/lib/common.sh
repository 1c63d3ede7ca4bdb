# shellcheck shell=bash
# What packaging/quickstart and tests/run share. Sourced; the caller has set -euo pipefail and `root`.

: "${root:?set root to the top of the source tree before sourcing common.sh}"

say() { printf '==> %s\n' "$*"; }
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# packages_of GROUP...: a line for each package of these groups: its name, and the command it is for if
# packages.txt names one.
packages_of() {
  awk -v groups=" $* " '$1 !~ /^#/ && NF >= 2 && index(groups, " " $1 " ") { print $2, $3 }' \
    "$root/packaging/lib/packages.txt"
}

# missing_packages GROUP...: those of them that are not installed, and whose command is not there either.
missing_packages() {
  local package for_command
  packages_of "$@" | while read -r package for_command; do
    if [ -n "$for_command" ] && command -v "$for_command" >/dev/null; then
      continue
    fi
    # shellcheck disable=SC2016  # the format is dpkg's, not the shell's
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
      echo "$package"
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "needs root to install packages; as root, run: $*"
  fi
}

# install_packages GROUP...: does nothing, and needs neither root nor network, once all are there.
install_packages() {
  command -v dpkg-query >/dev/null ||
    die "this is made for Debian 12; elsewhere, install the likes of $root/packaging/lib/packages.txt"
  local -a missing
  mapfile -t missing < <(missing_packages "$@")
  if [ ${#missing[@]} = 0 ]; then
    return
  fi
  say "installing ${#missing[@]} packages: ${missing[*]}"
  local -a apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
  as_root "${apt[@]}" update || say "apt-get update failed; trying with the lists that are here"
  as_root "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null ||
    die "apt-get could not install: ${missing[*]}"
}

# build_preset PRESET [CMAKE_OPTION...]: configures and builds into build/PRESET; all, or what `targets` lists.
build_preset() {
  local preset=$1
  shift
  (
    cd "$root" || exit
    export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
    cmake --preset "$preset" "$@" >"build/$preset.configure.log" 2>&1 || {
      cat "build/$preset.configure.log" >&2
      exit 1
    }
    cmake --build --preset "$preset" ${targets:+--target "$targets"}
  )
}

# free_port [WANTED]: WANTED if nothing listens there, else a loopback port that is free now.
free_port() {
  python3 - "${1:-0}" <<'PYTHON'
import socket, sys

for port in (int(sys.argv[1]), 0):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        print(probe.getsockname()[1])
        break
PYTHON
}
