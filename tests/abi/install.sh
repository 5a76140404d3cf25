#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: install.sh BUILD_FOLDER PREFIX: installs into a prefix made afresh.
set -eu
rm -rf "$2"
"${CMAKE:-cmake}" --install "$1" --prefix "$2"
