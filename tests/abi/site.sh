#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: site.sh SOURCE
# The documentation site builds without a warning: every page is in a list, every link leads
# somewhere, every picture is there. Its pages have every public function and the concepts' pictures.
# A broken link stops it.
set -euo pipefail
. "$(dirname "$0")/common.sh"
source=$1
command -v sphinx-build >/dev/null && /usr/bin/python3 -c 'import myst_parser' 2>/dev/null ||
    { echo "skipped: no sphinx-build with myst-parser (Debian: python3-sphinx, python3-myst-parser)"; exit 77; }

"$source/tools/doc/site" "$source" "$work/sources" "$work/site" 1.0 || die "the site does not build"
[ -s "$work/site/index.html" ] || die "the site has no index.html"
for picture in "$source"/docs/concepts/*.svg; do
    cmp "$picture" "$work/site/_images/${picture##*/}" || die "the site does not show ${picture##*/}"
done
while read -r name; do
    grep -rqw -- "$name" "$work/site/docs/reference" || die "the site's reference lacks $name"
done < <(cat "$source"/include/rmm/*.h | tr '\n' ' ' | grep -oE 'RMM_API [^;(]*\(' |
    sed -n 's/.*[ *]\(rmm_[a-z0-9_]*\) *($/\1/p' | sort -u)

cp -r "$source/docs" "$work/docs"
mkdir "$work/broken"
cp -r "$source"/{README.md,CONTRIBUTING.md,CHANGELOG.md,SECURITY.md,LICENSE,examples,include,tools} "$work/broken"
mv "$work/docs" "$work/broken/docs"
echo '[nowhere](no-such-page.md)' >>"$work/broken/docs/faq.md"
printf '#!/bin/sh\nexec sphinx-build -b dummy "$@"\n' >"$work/dummy" # writes no page: half of the time
chmod +x "$work/dummy"
! SPHINX_BUILD=$work/dummy "$work/broken/tools/doc/site" "$work/broken" "$work/sources" "$work/site" 1.0 2>"$work/said" ||
    die "a link that leads nowhere does not stop the site"
grep -q 'no-such-page.md' "$work/said" || die "it does not say why: $(cat "$work/said")"
