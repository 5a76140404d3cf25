#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: install.sh BUILD_FOLDER PREFIX: installs into a prefix made afresh, and looks whether
# install_manifest.txt, by which docs/building.md removes the files, names all of them.
set -eu
rm -rf "$2"
"${CMAKE:-cmake}" --install "$1" --prefix "$2"
find "$2" ! -type d | sort >"$1/installed_files.txt"
sort "$1/install_manifest.txt" | diff - "$1/installed_files.txt" || {
    echo "install.sh: install_manifest.txt does not list what is installed" >&2
    exit 1
}
