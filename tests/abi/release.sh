#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: release.sh SOURCE
# packaging/release --source, in a repository of the files that it looks at: two clones in different
# places, with another umask, give the same sources, checksums and signature; a tree with changes, a file
# with another version and other bad input give one line and leave nothing. No packages: they would take
# minutes, and abi.packages makes the same.
set -euo pipefail
. "$(dirname "$0")/common.sh"
source=$1
for tool in git gpg; do
    command -v $tool >/dev/null || { echo "skipped: no $tool here"; exit 77; }
done
export GNUPGHOME=$work/gnupg GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_{AUTHOR,COMMITTER}_{NAME=rmm-c,EMAIL=rmm-c@rmm-c.invalid}
mkdir -m 700 "$GNUPGHOME"
agent=''
finish() {
    [ -z "$agent" ] || { kill "$agent" && wait_for_end "$agent"; }
    gpgconf --remove-socketdir >/dev/null 2>&1 || true # of a user who is logged in: /run/user
    rm -rf "$work"
}
trap finish EXIT
gpg --batch --quiet --passphrase '' --quick-gen-key one@rmm-c.invalid rsa2048 sign never 2>"$work/log" || { cat "$work/log"; die "no key"; }
agent=$(gpg-connect-agent 'getinfo pid' /bye | sed -n 's/^D //p')

# The files of this tree, as those of a version that is ready.
tree=$work/tree
mkdir "$tree"
(cd "$source" && cp --parents -r CMakeLists.txt CHANGELOG.md README.md LICENSE include/rmm/version.h \
    docs/packages.md docs/kubernetes.md packaging "$tree")
current=$(sed -nE 's/^project\(rmm-c VERSION ([^ ]+).*/\1/p' "$source/CMakeLists.txt")
cd "$tree"
sed -i "s/${current//./\\.}/9.8.7/g" CMakeLists.txt README.md include/rmm/version.h docs/*.md packaging/debian/changelog
sed -i -E 's/^(#define RMM_C_VERSION_MAJOR) .*/\1 9/; s/^(#define RMM_C_VERSION_MINOR) .*/\1 8/; s/^(#define RMM_C_VERSION_PATCH) .*/\1 7/' include/rmm/version.h
sed -i '0,/^## .*/s//## 9.8.7/' CHANGELOG.md
git init -q . && git add . && git commit -qm "a version"

release() { "$tree/packaging/release" "$@"; }
release --key one@rmm-c.invalid --source 9.8.7 "$work/first" >"$work/log" 2>&1 || { cat "$work/log"; die "no release"; }
mkdir "$work/elsewhere"
git clone -q "$tree" "$work/elsewhere/clone"
(umask 077 && TZ=Asia/Tokyo "$work/elsewhere/clone/packaging/release" --key one@rmm-c.invalid --source 9.8.7 "$work/second" >"$work/log" 2>&1) ||
    { cat "$work/log"; die "no release of a clone"; }
diff -r "$work/first" "$work/second" || die "not the same twice"
(cd "$work/first" && sha256sum --quiet -c SHA256SUMS) || die "other checksums"
gpg --verify "$work/first/SHA256SUMS.asc" "$work/first/SHA256SUMS" 2>"$work/log" || { cat "$work/log"; die "not signed"; }
diff -r <(tar -tJf "$work/first/rmm-c-9.8.7.tar.xz" | grep -v '/$' | sort) <(git ls-files | sed 's|^|rmm-c-9.8.7/|' | sort) ||
    die "not the committed files"

refuses() { # LINE ARGUMENT...
    local output
    ! output=$(release --source "${@:2}" 2>&1) || die "taken: $*"
    [ "$output" = "release: $1" ] || die "not '$1': $output"
    [ ! -e "$work/new" ] && [ -z "$(find "$work" -maxdepth 1 -name '.release*')" ] || die "something is left of: $*"
}
refuses "'9.8' is no version: MAJOR.MINOR.PATCH" 9.8 "$work/new"
refuses "$work/first is there already: name a new folder" 9.8.7 "$work/first"
refuses "there is no folder $work/none" 9.8.7 "$work/none/new"
refuses "gpg has no secret key nobody@rmm-c.invalid" --key nobody@rmm-c.invalid 9.8.7 "$work/new"
touch left
refuses "the tree is not what is committed: left" 9.8.7 "$work/new"
rm left
echo >>README.md
refuses "the tree is not what is committed: README.md" 9.8.7 "$work/new"
git checkout -q README.md
git tag v9.8.7
git commit -q --allow-empty -m "later"
refuses "the tag v9.8.7 is another commit" 9.8.7 "$work/new"
git tag -d v9.8.7 >"$work/log"

# Each file that names the version, with another one.
spoilt() { # FILE SED-COMMAND WHAT-IT-SAYS
    sed -i "$2" "$1"
    git commit -qam "another version in $1"
    refuses "not all files have the version 9.8.7: $1 says $3" 9.8.7 "$work/new"
    git reset -q --hard HEAD~1
}
spoilt CMakeLists.txt 's/VERSION 9.8.7/VERSION 9.8.6/' 9.8.6
spoilt include/rmm/version.h 's/\(VERSION_PATCH\) 7/\1 6/' 9.8.6
spoilt include/rmm/version.h 's/"9.8.7"/"9.8.6"/' 9.8.6
spoilt packaging/debian/changelog '1s/9.8.7/9.8.6/' 9.8.6
spoilt CHANGELOG.md 's/^## 9.8.7/## Unreleased/' Unreleased
spoilt README.md 's/: 9.8.7/: 9.8.6/' 9.8.6
spoilt docs/packages.md 's/rmm-c-9.8.7/rmm-c-9.8.6/' 9.8.6
spoilt docs/kubernetes.md 's/push \(.*\):9.8.7/push \1:9.8.6/' 9.8.6
spoilt docs/kubernetes.md 's/push .*//' nothing
echo "the same release twice, eight places of the version"
