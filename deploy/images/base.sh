#!/bin/sh
# Makes a base image without a registry: Debian with Python, from the package archive.
# Usage: base.sh ENGINE IMAGE [ARCHITECTURE]     (root; installs debootstrap)
set -eu
engine=$1 image=$2 architecture=${3:-} suite=trixie

if [ "$(id -u)" != 0 ]; then
    echo "base.sh: only root can debootstrap; pull or import a base image and name it with BASE=" >&2
    exit 1
fi
"$(dirname "$0")/../../tools/need" debootstrap

debootstrap_flags="${architecture:+--arch=$architecture}"
import_flags=
if [ -n "$architecture" ]; then
    case $engine in
    podman | buildah) import_flags="--os=linux --arch=$architecture" ;;
    *) import_flags="--platform=linux/$architecture" ;;
    esac
fi
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root" # the root directory of the image, which others than root must enter
# shellcheck disable=SC2086
debootstrap $debootstrap_flags --variant=minbase --include=python3,python3-venv,ca-certificates \
    "$suite" "$root" >"$root.log" 2>&1 || {
    tail -5 "$root.log" >&2
    exit 1
}
rm -f "$root.log"
# What Debian's own slim images leave out; the copyright files stay.
find "$root/usr/share/doc" -type f ! -name copyright -delete
archive() {
    tar -C "$root" -cf - \
        --exclude='./dev/*' --exclude='./proc/*' --exclude='./sys/*' \
        --exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' --exclude='./var/log/*' \
        --exclude='./usr/share/man/*' --exclude='./usr/share/info/*' \
        --exclude='./usr/share/locale/*' --exclude='__pycache__' .
}
if [ "$engine" = buildah ]; then
    # shellcheck disable=SC2086
    container=$(buildah from $import_flags scratch)
    archive | tar -C "$(buildah mount "$container")" -xf -
    buildah commit --quiet --rm "$container" "$image" >/dev/null
else
    # shellcheck disable=SC2086
    archive | "$engine" import $import_flags - "$image" >/dev/null
fi
