#!/bin/sh
# Makes a base image without a registry: Debian with Python, from the package archive.
# Usage: base.sh ENGINE IMAGE [SUITE]     (root; needs debootstrap)
set -eu
engine=$1 image=$2 suite=${3:-trixie}

if [ "$(id -u)" != 0 ]; then
    echo "base.sh: only root can debootstrap; pull or import a base image and name it with BASE=" >&2
    exit 1
fi
"$(dirname "$0")/../../tools/need" debootstrap

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates "$suite" "$root" >"$root.log" 2>&1 || {
    tail -5 "$root.log" >&2
    exit 1
}
rm -f "$root.log"
# What Debian's own slim images leave out; the copyright files stay.
find "$root/usr/share/doc" -type f ! -name copyright -delete
tar -C "$root" -cf - \
    --exclude='./dev/*' --exclude='./proc/*' --exclude='./sys/*' \
    --exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' --exclude='./var/log/*' \
    --exclude='./usr/share/man/*' --exclude='./usr/share/info/*' \
    --exclude='./usr/share/locale/*' --exclude='__pycache__' . |
    "$engine" import - "$image" >/dev/null
