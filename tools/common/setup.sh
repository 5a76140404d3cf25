# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced by tools/demo, tests/run and tests/gpu/pack: makes sure that what they need is there, on
# Debian 12 and 13 and on Ubuntu 24.04 and newer.
#
#   . tools/common/setup.sh
#   rmm_require_packages cmake ninja-build zlib1g-dev || exit 1
#
# A package counts as there when dpkg knows it, or when what it is needed for (a command, a header)
# is found another way. Nothing is changed when nothing is missing. Otherwise it says what would be
# installed and how large that is, and asks where somebody sits at a terminal; without a terminal,
# or with CI set, it goes on. Without root's rights (root, or sudo without a password) it prints the
# line to run, and the answer is 1.
#
# The machine is left as it was but for the packages: none that is only recommended, no package is
# removed, no service starts, and nothing new starts with the machine.

RMM_POLICY=/usr/sbin/policy-rc.d # asked by maintainer scripts before they start a service
RMM_POLICY_MARK="made by rmm-c for the time of an installation"

# What each package is needed for, where another origin would do as well.
rmm_package_provides() {
    case $1 in
        build-essential) command -v cc && command -v c++ && command -v make ;;
        cmake) command -v cmake ;;
        ninja-build) command -v ninja ;;
        pkg-config) command -v pkg-config ;;
        fuse3) command -v fusermount3 ;;
        python3) command -v python3 ;;
        clang) command -v clang ;;
        gcc-12) command -v gcc-12 ;;
        gnuplot-nox) command -v gnuplot ;;
        valgrind) command -v valgrind ;;
        codespell) command -v codespell ;;
        clang-format-14) command -v clang-format-14 ;;
        libfuse3-dev) rmm_header_is_there fuse3/fuse_lowlevel.h ;;
        libcmocka-dev) rmm_header_is_there cmocka.h ;;
        libspdlog-dev) rmm_header_is_there spdlog/spdlog.h ;;
        busybox-static) command -v busybox ;;
        chromium-headless-shell) command -v chromium-headless-shell || command -v chromium ;;
        rsync) command -v rsync ;;
        prometheus) command -v prometheus ;;
        promtool) command -v promtool ;; # of Debian 12 in the package prometheus
        prometheus-node-exporter) command -v prometheus-node-exporter ;;
        groff-base) command -v groff ;;
        bsdextrautils) command -v column ;;
        zlib1g-dev) rmm_header_is_there zlib.h ;;
        libjansson-dev) rmm_header_is_there jansson.h ;;
        libncurses-dev) rmm_header_is_there curses.h ;;
        libmicrohttpd-dev) rmm_header_is_there microhttpd.h ;;
        libcurl4-gnutls-dev) rmm_header_is_there curl/curl.h || rmm_header_is_there "$(uname -m)-linux-gnu/curl/curl.h" ;;
        curl) command -v curl ;;
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

# rmm_system_name: what this machine says that it is.
rmm_system_name() {
    # shellcheck disable=SC1091 # of the machine
    (. /etc/os-release 2>/dev/null && echo "${PRETTY_NAME:-$ID}") || uname -s
}

# One line where the packages of this system are not known to do, and 1 where they are too old.
rmm_system_is_known() {
    local id version
    # shellcheck disable=SC1091
    read -r id version < <(. /etc/os-release 2>/dev/null && echo "${ID:-unknown} ${VERSION_ID:-0}")
    case $id/${version%%.*} in
        debian/1[2-9] | debian/0 | ubuntu/2[4-9]) return 0 ;; # 0: testing and unstable
        debian/* | ubuntu/*) ;;
        *) ! command -v apt-get >/dev/null 2>&1 || {
            echo "$(rmm_system_name) was not tried: the names of packages are those of Debian 12 and 13 and Ubuntu 24.04." >&2
            return 0
        } ;;
    esac
    echo "Packages are installed on Debian 12 and 13 and on Ubuntu 24.04 and newer only; this is $(rmm_system_name)." >&2
    return 1
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

# rmm_apt ROOT ARGUMENT...: in English, because its output is read, and without questions.
rmm_apt() {
    local root=$1
    shift
    # shellcheck disable=SC2086 # $root is empty or two words
    $root env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -q "$@" </dev/null
}

# The lists of packages are empty in a fresh container.
rmm_update_lists() { # ROOT
    echo "Reading the lists of packages (apt-get update)" >&2
    rmm_apt "$1" update >/dev/null
}

rmm_available() { # PACKAGE...: those that this release has
    LC_ALL=C apt-cache policy "$@" 2>/dev/null | awk '
        /^[^ ]/ { name = $1; sub(/:$/, "", name) }
        $1 == "Candidate:" && $2 != "(none)" { print name }'
}

# rmm_offered PACKAGE...: those of the packages that are there or that this release has.
rmm_offered() {
    local package root missing=()
    for package in "$@"; do
        rmm_package_is_there "$package" && echo "$package" || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ -z "$(rmm_available cmake)" ] && root=$(rmm_root_prefix); then
        rmm_update_lists "$root"
    fi
    rmm_available "${missing[@]}"
}

# rmm_plan ROOT PACKAGE...: what apt-get would do. A number of packages, and two sizes.
rmm_plan() {
    local root=$1 text
    shift
    text=$(rmm_apt "$root" install --no-install-recommends --no-remove --assume-no "$@" 2>&1)
    [[ $text == *" newly installed,"* ]] || { echo "$text" | grep '^E:' >&2; return 1; }
    sed -nE 's/^([0-9]+) upgraded, ([0-9]+) newly installed.*/\2 packages are installed and \1 upgraded/p
        s/^Need to get (.*) of archives\.$/; \1 to download/p
        s/^After this operation, (.*) of additional disk space will be used\.$/, \1 on disk/p' <<<"$text" | tr -d '\n'
}

# True if somebody says yes, or if nobody is there to be asked.
rmm_consents() {
    local answer
    if [ -n "${CI:-}" ] || [ ! -t 0 ] || [ ! -t 2 ]; then
        return 0
    fi
    read -r -p "Install them? [Y/n] " answer || return 1
    [[ $answer == "" || $answer == [yYjJ]* ]]
}

# What starts with the machine.
rmm_boot_links() {
    find /etc/systemd /etc/rc[0-6S].d -type l \
        \( -path '*.wants/*' -o -path '*.requires/*' -o -path '/etc/rc?.d/S*' \) 2>/dev/null | sort
}

# rmm_boot_as_before ROOT LINKS: what has been added since then starts only by hand.
rmm_boot_as_before() {
    local root=$1 link name names=()
    while read -r link; do
        name=${link##*/}
        case $link in
            /etc/rc*) name=${name#S[0-9][0-9]} && $root update-rc.d "$name" disable >/dev/null 2>&1 ;;
            *) $root rm -f "$link" ;;
        esac
        [[ " ${names[*]} " == *" $name "* ]] || names+=("$name")
    done < <(comm -13 <(echo "$2") <(rmm_boot_links))
    [ ${#names[@]} -eq 0 ] || echo "Do not start with the machine: ${names[*]}" >&2
}

# A line for each fifth of the work, as apt-get tells it.
rmm_show_progress() { # PACKAGES LOG
    local line seen=0 shown=0 start=$SECONDS
    while IFS= read -r line; do
        echo "$line" >>"$2"
        [[ $line == Get:* || $line == "Unpacking "* || $line == "Setting up "* ]] || continue
        seen=$((seen + 1))
        [ $((seen * 5 / ($1 * 3 + 1))) -gt $shown ] || continue
        shown=$((seen * 5 / ($1 * 3 + 1)))
        echo "  $((shown * 20)) % after $((SECONDS - start)) s" >&2
    done
}

# rmm_apt_install ROOT COUNT PACKAGE...: no service starts meanwhile, and none at boot.
rmm_apt_install() (
    root=$1 count=$2
    shift 2
    log=$(mktemp) links=$(rmm_boot_links)
    finish() {
        ! grep -qsF "$RMM_POLICY_MARK" $RMM_POLICY || $root rm -f $RMM_POLICY
        rmm_boot_as_before "$root" "$links"
        rm -f "$log"
    }
    trap finish EXIT
    trap 'exit 130' INT TERM HUP
    # one of somebody else stays: in a container it forbids everything already
    [ -e $RMM_POLICY ] || {
        printf '#!/bin/sh\n# %s\nexit 101\n' "$RMM_POLICY_MARK" | $root tee $RMM_POLICY >/dev/null
        $root chmod 755 $RMM_POLICY
    }
    set -o pipefail
    rmm_apt "$root" install -y --no-install-recommends --no-remove "$@" 2>&1 | rmm_show_progress "$count" "$log" || {
        tail -n 20 "$log" >&2
        exit 1
    }
)

# rmm_require_packages PACKAGE...: 0 when all are there (now).
rmm_require_packages() {
    local package root plan
    local missing=()
    for package in "$@"; do
        rmm_package_is_there "$package" || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return 0

    rmm_system_is_known || {
        echo "Install what these packages of Debian have, and run this again: ${missing[*]}" >&2
        return 1
    }
    if ! root=$(rmm_root_prefix); then
        echo "Missing packages. Run this, then try again:" >&2
        echo "  sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}" >&2
        return 1
    fi
    echo "Missing: ${missing[*]}" >&2
    plan=$(rmm_plan "$root" "${missing[@]}" 2>/dev/null) ||
        { rmm_update_lists "$root" && plan=$(rmm_plan "$root" "${missing[@]}"); } || return 1
    echo "With what they need $plan. No service is started or enabled." >&2
    rmm_consents || { echo "Nothing was installed." >&2; return 1; }
    # lists that are older than the archive name files that it has no more
    rmm_apt_install "$root" "${plan%% *}" "${missing[@]}" ||
        { rmm_update_lists "$root" && rmm_apt_install "$root" "${plan%% *}" "${missing[@]}"; } ||
        { echo "Could not install ${missing[*]}: see the messages of apt-get above." >&2; return 1; }
}

# rmm_unpack_packages FOLDER PACKAGE...: those that are missing go into FOLDER/usr, beside the system:
# their maintainer scripts, which would enable services, do not run.
rmm_unpack_packages() {
    local folder=$1 package work
    shift
    work=$(mktemp -d) && chmod 755 "$work" || return 1
    for package in "$@"; do
        rmm_package_is_there "$package" || [ -e "$folder/$package.unpacked" ] && continue
        echo "Unpacking $package into $folder" >&2
        mkdir -p "$folder"
        (cd "$work" && LC_ALL=C apt-get -qq download "$package" >/dev/null 2>&1) &&
            dpkg-deb -x "$work/$package"_*.deb "$folder" && touch "$folder/$package.unpacked" ||
            { echo "Could not download and unpack $package" >&2; rm -rf "$work"; return 1; }
    done
    rm -rf "$work"
}

# rmm_unpack_of_release FOLDER RELEASE PACKAGE...: the same for packages of headers alone, of another
# release of Debian. The lists of packages of the system stay as they are.
rmm_unpack_of_release() (
    folder=$1 release=$2
    shift 2
    [ ! -e "$folder/$release.unpacked" ] || exit 0
    # shellcheck disable=SC2016 # a format of apt-get
    archive=$(LC_ALL=C apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
        'Origin: Debian' 'Label: Debian' 'Component: main' 2>/dev/null | head -n 1)
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    [ -n "$archive" ] && [ -e $keys ] || { echo "This is no Debian: $* are not unpacked" >&2; exit 1; }
    echo "Unpacking $* of Debian's $release into $folder" >&2
    work=$(mktemp -d) && chmod 755 "$work" || exit 1
    trap 'rm -rf "$work"' EXIT
    mkdir -p "$folder" "$work/lists/partial" "$work/cache/archives/partial"
    echo "deb [signed-by=$keys] $archive $release main" >"$work/sources.list"
    options=(-qq -o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/cache" -o Dir::Etc::SourceParts=-
        -o "Dir::Etc::SourceList=$work/sources.list" -o APT::Sandbox::User=root)
    cd "$work" && {
        LC_ALL=C apt-get "${options[@]}" update && LC_ALL=C apt-get "${options[@]}" download "$@"
    } >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    cd "$OLDPWD" || exit 1
    for file in "$work"/*.deb; do
        dpkg-deb -x "$file" "$folder" || exit 1
    done
    touch "$folder/$release.unpacked"
)
