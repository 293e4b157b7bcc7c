#!/usr/bin/env bash
# Parallel text of LibreOffice's help, English and another language, from Debian's packages: libreoffice.sh LANGUAGE [FOLDER]
# LANGUAGE is the end of a package's name: `apt-cache pkgnames libreoffice-help-` has 34 of them, such as eu or pt-br.
set -euo pipefail
language="${1:-}" out="${2:-outputs/libreoffice}"
if [[ -z "$language" ]]; then
    echo "libreoffice.sh: give a language, such as eu" >&2
    exit 2
fi
mkdir -p "$out/packages"
(
    cd "$out/packages"
    apt-get download "libreoffice-help-$language" libreoffice-help-en-us
    for package in *.deb; do dpkg-deb --extract "$package" .; done
)
python "$(dirname "$0")/paragraphs.py" "$out/packages/usr/share/libreoffice/help" "$language" "$out/raw"
