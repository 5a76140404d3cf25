#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: packages.sh SOURCE BUILD
# cpack makes a .deb of each component. What dpkg says of them is what packaging/debian/control says,
# each file that installs is in one of them, and they install, upgrade and go in a root of their own,
# with the dependencies of this machine. Programs run from there, and one is built against it. Where
# rpmbuild is, the .rpm packages have the same files.
set -euo pipefail
. "$(dirname "$0")/common.sh"
source=$1 build=$2

command -v dpkg-deb >/dev/null || { echo "skipped: no dpkg-deb here"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "skipped: only root can install packages"; exit 77; }

(cd "$build" && umask 077 && "${cmake%cmake}cpack" -G DEB -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip -B "$work/deb") >"$work/log" 2>&1 || { cat "$work/log"; die "cpack failed"; }
! grep -iE 'warning|error' "$work/log" || die "cpack complains"
debs=("$work"/deb/*.deb)
version=$(sed -n '1s/.*(\(.*\)).*/\1/p' "$source/packaging/debian/changelog")
next_version=${version%-*}-$((${version##*-} + 1))

# One package for each of the source package; the same names and words.
control() { # PACKAGE FIELD
    awk -v package="$1" -v field="$2:" '
        /^[^ ]/ || /^$/ { inside = 0 }
        $1 == "Package:" { mine = $2 == package }
        mine && $1 == field { inside = 1; sub(/^[^ ]* */, "") }
        mine && inside' "$source/packaging/debian/control"
}
diff <(sed -n 's/^Package: //p' "$source/packaging/debian/control" | sort) \
    <(for deb in "${debs[@]}"; do dpkg-deb -f "$deb" Package; done | sort) || die "control names other packages"
for deb in "${debs[@]}"; do
    package=$(dpkg-deb -f "$deb" Package)
    [ "$(dpkg-deb -f "$deb" Version)" = "$version" ] || die "$package: changelog says $version"
    [ "$(dpkg-deb -f "$deb" Section)" = "$(control "$package" Section)" ] || die "$package: another section"
    # one without a CUDA toolkit says so behind it
    [[ $(dpkg-deb -f "$deb" Description) == "$(control "$package" Description)"* ]] || die "$package: another description"
    dpkg-deb --fsys-tarfile "$deb" | tar -tv >"$work/long"
    ! grep -E '^d' "$work/long" | grep -v '^drwxr-xr-x root/root ' || die "$package: directories have the modes of a umask"
    ! grep -E '^-' "$work/long" | grep -vE '^-rw(-r--r--|xr-xr-x) root/root ' || die "$package: files have the modes of a umask"
    dpkg-deb --fsys-tarfile "$deb" | tar -t >"$work/list"
    for file in copyright changelog.Debian.gz; do
        grep -qx "./usr/share/doc/$package/$file" "$work/list" || die "$package has no $file"
    done
    dpkg-deb -x "$deb" "$work/all"
    grep -v '/$' "$work/list" >>"$work/lists"
done
twice=$(sort "$work/lists" | uniq -d)
[ -z "$twice" ] || die "in two packages: $twice"

# Nothing that installs is left out; man pages are compressed.
(cd "$build" && DESTDIR=$work/stage "$cmake" --install . --prefix /usr) >"$work/log" 2>&1 || { cat "$work/log"; die "no installation"; }
diff <(cd "$work/stage" && find . ! -type d | sed -E 's|(/man[0-9]/.*)|\1.gz|' | sort) \
    <(cd "$work/all" && find . ! -type d ! -name copyright ! -name changelog.Debian.gz | sort) || die "not what installs"

# The same files in .rpm, besides what rpmbuild adds.
if command -v rpmbuild >/dev/null; then
    (cd "$build" && umask 077 && "${cmake%cmake}cpack" -G RPM -B "$work/rpm") >"$work/log" 2>&1 || { cat "$work/log"; die "cpack -G RPM failed"; }
    for rpm in "$work"/rpm/*.rpm; do
        rpm -qplv "$rpm" 2>/dev/null | grep -vF /.build-id >"$work/long"
        ! grep -E '^d' "$work/long" | grep -vE '^drwxr-xr-x .*rmm' || die "${rpm##*/}: folders of the system, or modes of a umask"
        grep -v '^d' "$work/long" | sed 's|^[^/]*/|./|; s| ->.*||' >>"$work/rpm_files"
    done
    diff <(sort "$work/rpm_files") <(cd "$work/all" && find . ! -type d ! -name copyright ! -name changelog.Debian.gz | sort) || die "other files in .rpm"
    ran_rpm=", .rpm too"
fi

# No path of our own in programs, stripped, and the unit starts the program of the package.
while read -r file; do
    readelf -h "$file" >"$work/elf" 2>&1 || continue
    ! readelf -d "$file" | grep -E 'RPATH|RUNPATH' || die "$file looks for libraries by itself"
    ! readelf -S "$file" | grep -qF .debug_info || die "$file is not stripped"
done < <(find "$work/all" -type f -path '*/bin/*' -o -type f -name '*.so*')
grep -qx 'ExecStart=/usr/bin/rmmfs -f /rmm' "$work/all/usr/lib/systemd/system/rmmfs.service" || die "the unit starts another"
grep -qx 'ExecStart=/usr/bin/rmm-exporter $OPTIONS' "$work/all/usr/lib/systemd/system/rmm-exporter.service" || die "the unit starts another"

# The list of what it is made of names every library that a program of the packages loads.
sbom=$(find "$work/all" -name rmm-c.spdx.json)
python3 - "$sbom" >"$work/made_of" <<'END' || die "no SPDX list: $sbom"
import json, sys
with open(sys.argv[1], encoding='utf-8') as file:
    sbom = json.load(file)
known = {package['SPDXID']: package['name'] for package in sbom['packages']}
for relation in sbom['relationships']:
    print(known[relation['relatedSpdxElement']])
END
for pair in libjansson:jansson libz:zlib libncursesw:ncurses libfuse3:libfuse libmicrohttpd:libmicrohttpd libcurl-gnutls:libcurl; do
    if find "$work/all" -type f -path '*/bin/*' -exec readelf -d {} + | grep "NEEDED.*\[${pair%:*}\." >/dev/null; then
        grep -qx "${pair#*:}" "$work/made_of" || die "rmm-c.spdx.json does not name ${pair#*:}"
    fi
done

# A root that knows of the packages of this machine. Scripts run outside of it, with DPKG_ROOT.
root=$work/root
mkdir -p "$root"/{etc,run,tmp,var/lib/dpkg/{info,updates}} "$work/path"
cp /var/lib/dpkg/status "$root/var/lib/dpkg/status"
printf '#!/bin/sh\nexec /sbin/ldconfig -r "$DPKG_ROOT" "$@"\n' >"$work/path/ldconfig"
chmod 755 "$work/path/ldconfig"
in_root() {
    PATH=$work/path:$PATH dpkg --root="$root" --force-script-chrootless --force-unsafe-io --log=/dev/null "$@" >"$work/log" 2>&1 ||
        { grep -v 'files list file' "$work/log"; die "dpkg $1 failed"; }
}
state() { # PACKAGE
    dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${db:Status-Status} ${Version}' "$1" 2>/dev/null || true
}
enabled() { # UNIT
    [ -L "$root/etc/systemd/system/multi-user.target.wants/$1" ]
}

in_root --install "${debs[@]}"
[ "$(state rmmfs)" = "installed $version" ] || die "rmmfs: $(state rmmfs)"
for unit in rmmfs.service rmm-exporter.service; do
    enabled $unit || die "$unit is not enabled"
done
grep -q '^rmm:' "$root/etc/group" || die "no group rmm"
[ -d "$root/rmm" ] || die "no /rmm"

# Programs of the packages run with their libraries, and a program is built against them.
libraries=$(library_folder "$root/usr")
export LD_LIBRARY_PATH=$libraries
for program in "$root"/usr/bin/*; do
    "$program" --version >"$work/out" || die "${program##*/} does not start"
    man=$(find "$root/usr/share/man" -name "${program##*/}.[18].gz")
    [ -n "$man" ] || die "${program##*/} has no man page"
done
if [ -e "$root/usr/bin/rmm-top" ]; then
    "$root/usr/bin/rmm-top" --once >"$work/out" || die "rmm-top --once fails"
fi
flags=$(PKG_CONFIG_PATH=$libraries/pkgconfig pkg-config --cflags --libs rmm-c)
# shellcheck disable=SC2086 # several words
"${CC:-cc}" "$source/examples/hello.c" -o "$work/hello" $flags
"$work/hello" </dev/null | grep -q '1000000 bytes of 42' || die "the program says something else"

# An upgrade: the same with the next revision. A service that was disabled stays so.
next=()
for deb in "${debs[@]}"; do
    rm -rf "$work/again"
    dpkg-deb -R "$deb" "$work/again"
    sed -i "s/$version/$next_version/" "$work/again/DEBIAN/control"
    dpkg-deb -Znone -b "$work/again" "$work/${deb##*/}" >/dev/null
    next+=("$work/${deb##*/}")
done
rm "$root"/etc/systemd/system/multi-user.target.wants/rmm*.service
in_root --install "${next[@]}"
[ "$(state librmm-c0.1)" = "installed $next_version" ] || die "not upgraded: $(state librmm-c0.1)"
for unit in rmmfs.service rmm-exporter.service; do
    ! enabled $unit || die "the upgrade enabled $unit again"
done

# Gone, and nothing is left but the group, to which files may belong.
packages=$(for deb in "${debs[@]}"; do dpkg-deb -f "$deb" Package; done)
touch "$root/rmm/of-somebody"
# shellcheck disable=SC2086 # several words
in_root --purge $packages
[ -e "$root/rmm/of-somebody" ] || die "the purge removed a file that is not of the package"
rm "$root/rmm/of-somebody"
in_root --install "${next[@]}"
# shellcheck disable=SC2086
in_root --purge $packages
for package in $packages; do
    [[ $(state "$package") == ?(not-installed*) ]] || die "$package: $(state "$package")"
done
left=$(cd "$root" && find . -mindepth 1 ! -path './var/lib/dpkg*' \( ! -type d -o -name '*rmm*' \) \
    ! -path './etc/g*' ! -name .pwd.lock ! -path './etc/ld.so.cache' ! -path './var/cache/ldconfig*' | sort)
[ -z "$left" ] || die "left: $left"
echo "${#debs[@]} packages${ran_rpm:-}: $(echo $packages)"
