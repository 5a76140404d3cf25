# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced by tools/demo and tests/run: makes sure that what a build needs is there, on
# Debian 12, Ubuntu 24.04 and newer.
#
#   . tools/common/setup.sh
#   rmm_require_packages cmake ninja-build zlib1g-dev || exit 1
#
# A package counts as there when dpkg knows it, or when what it is needed for (a command,
# a header) is found another way. What is missing is installed where that is possible
# without asking (root, or sudo without a password); otherwise the one line to run is
# printed and the answer is 1. Nothing is changed when nothing is missing.

# What each package is needed for, where another origin would do as well.
rmm_package_provides() {
    case $1 in
        build-essential) command -v cc && command -v make ;;
        cmake) command -v cmake ;;
        ninja-build) command -v ninja ;;
        pkg-config) command -v pkg-config ;;
        fuse3) command -v fusermount3 ;;
        python3) command -v python3 ;;
        gcc-12) command -v gcc-12 ;;
        gnuplot-nox) command -v gnuplot ;;
        valgrind) command -v valgrind ;;
        clang-format-14) command -v clang-format-14 ;;
        libfuse3-dev) rmm_header_is_there fuse3/fuse_lowlevel.h ;;
        libcmocka-dev) rmm_header_is_there cmocka.h ;;
        busybox-static) command -v busybox ;;
        rsync) command -v rsync ;;
        prometheus) command -v promtool && command -v prometheus ;;
        prometheus-node-exporter) command -v prometheus-node-exporter ;;
        groff-base) command -v groff ;;
        zlib1g-dev) rmm_header_is_there zlib.h ;;
        libjansson-dev) rmm_header_is_there jansson.h ;;
        libncurses-dev) rmm_header_is_there curses.h ;;
        abigail-tools) command -v abidiff ;;
        tmux) command -v tmux ;;
        libunwind8) ldconfig -p | grep -q 'libunwind\.so\.8 ' ;;
        *) return 1 ;;
    esac >/dev/null 2>&1
}

rmm_header_is_there() {
    local folder
    for folder in /usr/include /usr/local/include; do
        [ -e "$folder/$1" ] && return 0
    done
    return 1
}

rmm_package_is_there() {
    local state
    state=$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) || state=
    [ "$state" = installed ] || rmm_package_provides "$1"
}

# The prefix that makes a command root's: "" for root, "sudo -n"; fails without either.
rmm_root_prefix() {
    if [ "$(id -u)" -eq 0 ]; then
        echo ""
    elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        echo "sudo -n"
    else
        return 1
    fi
}

# The lists may be empty (a fresh container) or old: install, else update and once more.
rmm_apt_install() {
    local root=$1
    shift
    # shellcheck disable=SC2086 # $root is empty or two words
    $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$@" >/dev/null 2>&1 ||
        { $root apt-get update -q >/dev/null &&
          $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$@" >/dev/null; }
}

# rmm_require_packages PACKAGE...: 0 when all are there (now).
rmm_require_packages() {
    local package root
    local missing=()
    for package in "$@"; do
        rmm_package_is_there "$package" || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return 0

    if ! command -v apt-get >/dev/null 2>&1; then
        echo "Missing: ${missing[*]} (Debian's names). Install them and run this again." >&2
        return 1
    fi
    if ! root=$(rmm_root_prefix); then
        echo "Missing packages. Run this, then try again:" >&2
        echo "  sudo apt-get update && sudo apt-get install -y ${missing[*]}" >&2
        return 1
    fi
    echo "Installing ${missing[*]}" >&2
    if ! rmm_apt_install "$root" "${missing[@]}"; then
        echo "Could not install ${missing[*]}: see the messages of apt-get above." >&2
        return 1
    fi
}
