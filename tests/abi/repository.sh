#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: repository.sh SOURCE
# packaging/repository, of tiny packages: apt takes them over HTTP without a warning, and refuses a
# changed package, a changed list, a list without a signature and one that another key signed; what
# dnf looks at is signed as well. The same input gives the same bytes, bad input gives one line and
# leaves nothing.
set -euo pipefail
. "$(dirname "$0")/common.sh"
source=$1
for tool in apt-ftparchive gpg gpgv createrepo_c rpmbuild; do
    command -v $tool >/dev/null || { echo "skipped: no $tool here"; exit 77; }
done
export GNUPGHOME=$work/gnupg LC_ALL=C
mkdir -m 700 "$GNUPGHOME"
mkdir "$work"/{served,packages,log,apt}
touch "$work/log/server"
server='' agent=''

finish() {
    [ -z "$server" ] || kill "$server"
    [ -z "$agent" ] || { kill "$agent" && wait_for_end "$agent"; }
    gpgconf --remove-socketdir >/dev/null 2>&1 || true # of a user who is logged in: /run/user
    rm -rf "$work"
}
trap finish EXIT

make_key() { # ADDRESS
    gpg --batch --quiet --passphrase '' --quick-gen-key "$1" rsa2048 sign never 2>"$work/log/gpg" ||
        { cat "$work/log/gpg"; die "no key"; }
}
make_key one@rmm-c.invalid
agent=$(gpg-connect-agent 'getinfo pid' /bye | sed -n 's/^D //p')
make_key two@rmm-c.invalid

for name in tiny other; do
    mkdir -p "$work/$name/DEBIAN"
    printf '%s\n' "Package: $name" "Version: 1.0-1" "Architecture: all" \
        "Maintainer: rmm-c maintainers <maintainers@rmm-c.invalid>" "Description: $name" >"$work/$name/DEBIAN/control"
    dpkg-deb --root-owner-group -b "$work/$name" "$work/packages" >"$work/log/deb"
done
printf '%s\n' 'Name: tiny' 'Version: 1.0' 'Release: 1' 'Summary: tiny' 'License: Apache-2.0' 'BuildArch: noarch' \
    '%description' 'Tiny.' '%files' >"$work/tiny.spec"
rpmbuild --quiet -bb --define "_topdir $work/rpmbuild" --define "_rpmdir $work/packages" \
    --define '_rpmfilename tiny-1.0-1.noarch.rpm' "$work/tiny.spec" >"$work/log/rpm" 2>&1 || { cat "$work/log/rpm"; die "rpmbuild"; }
packages=("$work"/packages/*)

python3 -u -m http.server --bind 127.0.0.1 --directory "$work/served" 0 >"$work/log/server" 2>"$work/log/requests" &
server=$!
until port=$(grep -oP 'port \K[0-9]+' "$work/log/server"); do
    kill -0 $server 2>/dev/null || die "the server ended: $(cat "$work/log/requests")"
    sleep 0.05
done
repository() { "$source/packaging/repository" "$@"; }
make() { # NAME [OPTION...]
    repository --key one@rmm-c.invalid --url "http://127.0.0.1:$port/$1" "${@:2}" "$work/served/$1" "${packages[@]}" >"$work/log/made"
}

# apt with folders of its own, which knows no other repository.
with_apt() { # NAME COMMAND...
    rm -rf "$work/apt"
    mkdir -p "$work"/apt/{etc/sources.list.d,etc/preferences.d,state/lists/partial,cache/archives/partial,log}
    touch "$work/apt/status"
    cp "$work/served/$1/rmm-c.sources" "$work/apt/etc/sources.list.d/"
    run_apt update && run_apt "${@:2}"
}
run_apt() {
    (cd "$work/apt" && apt-get -q -o Dir::Etc="$work/apt/etc" -o Dir::State="$work/apt/state" \
        -o Dir::State::status="$work/apt/status" -o Dir::Cache="$work/apt/cache" -o Dir::Log="$work/apt/log" \
        -o APT::Sandbox::User=root -o Acquire::Retries=0 "$@") >>"$work/log/apt" 2>&1
}
refused() { # NAME WORDS
    : >"$work/log/apt"
    ! with_apt "$1" download tiny || { cat "$work/log/apt"; die "apt took the repository $1"; }
    grep -qE "$2" "$work/log/apt" || { cat "$work/log/apt"; die "$1: apt refused for another reason"; }
}
changed() { # NAME: a copy of the good one, to be spoilt
    cp -r "$work/served/good" "$work/served/$1"
    sed -i "s|/good/|/$1/|" "$work/served/$1/rmm-c.sources"
}

make good
: >"$work/log/apt"
with_apt good download tiny other || { cat "$work/log/apt"; die "apt refuses"; }
! grep -E '^[WEN]:' "$work/log/apt" || die "apt complains"
for deb in "$work"/packages/*.deb; do
    cmp "$deb" "$work/apt/${deb##*/}" || die "apt got another ${deb##*/}"
done

changed other_package
echo more >>"$work/served/other_package/deb/tiny_1.0-1_all.deb"
refused other_package 'unexpected size|Hash Sum mismatch'
changed other_list
sed -i 's/^Version: 1.0-1/Version: 1.0-2/' "$work/served/other_list/deb/Packages"
gzip -9nkf "$work/served/other_list/deb/Packages"
refused other_list 'unexpected size|Hash Sum mismatch'
changed other_release
sed -i 's/^Origin: rmm-c/Origin: other/' "$work/served/other_release/deb/InRelease"
refused other_release 'GPG error|OpenPGP signature|is not signed'
changed no_signature
rm "$work"/served/no_signature/deb/{InRelease,Release.gpg}
refused no_signature 'is not signed'
repository --key two@rmm-c.invalid "$work/served/two" "${packages[@]}" >"$work/log/made"
cp "$work/served/good/rmm-c.sources" "$work/served/two/"
sed -i 's|/good/|/two/|' "$work/served/two/rmm-c.sources"
refused two 'GPG error|OpenPGP signature|is not signed'

# For dnf and zypper: the list, what it names, and the packages.
rpm=$work/served/good/rpm
gpg --quiet --dearmor --output "$work/one.gpg" "$work/served/good/rmm-c.asc"
gpgv --keyring "$work/one.gpg" "$rpm/repodata/repomd.xml.asc" "$rpm/repodata/repomd.xml" 2>"$work/log/gpgv" ||
    { cat "$work/log/gpgv"; die "repomd.xml is not signed by the key"; }
python3 - "$rpm" <<'END' || die "repomd.xml names other files"
import gzip, hashlib, pathlib, re, sys
folder = pathlib.Path(sys.argv[1])
listed = re.findall(r'<checksum type="sha256">(\w+)<.*?<location href="(.*?)"', (folder / "repodata/repomd.xml").read_text(), re.S)
primary = [name for _, name in listed if "primary" in name][0]
text = gzip.decompress((folder / primary).read_bytes()).decode()
listed += re.findall(r'<checksum type="sha256" pkgid="YES">(\w+)<.*?<location href="(.*?)"', text, re.S)
for digest, name in listed:
    if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
        sys.exit(f"{name} is not what the list says")
sys.exit(len(listed) != 4)
END
check_rpm() { # PACKAGE
    rpmkeys --dbpath "$work/rpmdb" --define '_pkgverify_level all' --checksig "$1" >"$work/log/rpm" 2>&1
}
! check_rpm "$rpm/tiny-1.0-1.noarch.rpm" || die "rpm trusts a key that it does not know"
rpmkeys --dbpath "$work/rpmdb" --import "$work/served/good/rmm-c.asc"
check_rpm "$rpm/tiny-1.0-1.noarch.rpm" || { cat "$work/log/rpm"; die "rpm refuses the signed package"; }
! check_rpm "$work/packages/tiny-1.0-1.noarch.rpm" || die "rpm takes the package without a signature"
! check_rpm "$work/served/two/rpm/tiny-1.0-1.noarch.rpm" || die "rpm takes the package of another key"
grep -qx 'repo_gpgcheck=1' "$work/served/good/rmm-c.repo" || die "rmm-c.repo does not ask for the list's signature"

# Again, with a fixed time: the same bytes.
export SOURCE_DATE_EPOCH=1900000000
for folder in first second; do
    repository --key one@rmm-c.invalid "$work/$folder" "${packages[@]}" >"$work/log/made"
done
diff -r "$work/first" "$work/second" || die "not the same twice"
# A commit is older than the key that signs it today.
SOURCE_DATE_EPOCH=1 repository --key one@rmm-c.invalid "$work/old" "${packages[@]}" >"$work/log/made"
gpgv --keyring "$work/one.gpg" "$work/old/deb/InRelease" 2>"$work/log/gpgv" || { cat "$work/log/gpgv"; die "older than its key"; }

# One line for bad input, and nothing is left.
refuses() { # LINE ARGUMENT...
    local output
    ! output=$(repository "${@:2}" 2>&1) || die "taken: $*"
    [[ $output == "repository: "$1 ]] || die "not '$1': $output"
    [ ! -e "$work/new" ] && [ -z "$(find "$work" -maxdepth 1 -name '.repository*')" ] || die "something is left of: $*"
}
deb=${packages[0]}
echo no package >"$work/false.deb"
refuses 'gpg has no secret key nobody@rmm-c.invalid' --key nobody@rmm-c.invalid "$work/new" "$deb"
refuses 'gpg has 2 secret keys rmm-c.invalid: name one by its fingerprint' --key rmm-c.invalid "$work/new" "$deb"
refuses "there is no file $work/none.deb" --key one@rmm-c.invalid "$work/new" "$deb" "$work/none.deb"
refuses "$work/false.deb is no .deb package" --key one@rmm-c.invalid "$work/new" "$work/false.deb"
refuses "$0: neither .deb nor .rpm" --key one@rmm-c.invalid "$work/new" "$0"
refuses "two packages have the name ${deb##*/}" --key one@rmm-c.invalid "$work/new" "$deb" "$deb"
refuses "$work/first is there already: name a new folder" --key one@rmm-c.invalid "$work/first" "$deb"
refuses "there is no folder $work/none" --key one@rmm-c.invalid "$work/none/new" "$deb"
refuses '--url example: not an address (https://...)' --key one@rmm-c.invalid --url example "$work/new" "$deb"
echo "apt and rpm take what is signed and refuse six changes"
