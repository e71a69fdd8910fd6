#!/usr/bin/env bash
# Plays the demo with the programs of unpacked images, as Pods run them: image-demo.sh BIN IMAGES
# BIN has e2e, IMAGES what `dist unpack` wrote, and WEIR_CACHE_DIR the control plane.
set -euo pipefail
bin=$(realpath "$1")
images=$(realpath "$2")
: "${WEIR_CACHE_DIR:?run this by make dist-demo}"
case $(uname -m) in
  x86_64) architecture=amd64 ;;
  aarch64) architecture=arm64 ;;
  *) echo "there are no images for $(uname -m)" >&2; exit 1 ;;
esac

umask 022
mkdir -p target
work=$(mktemp -d "$PWD/target/image-demo.XXXXXX")
trap 'rm -rf "$work"' EXIT
# mktemp keeps it to its owner.
chmod 755 "$work"
mkdir "$work/bin" "$work/cache" "$work/volume"
chmod 1777 "$work/volume"
for image in "$images"/*; do
  program=$(basename "$image")
  path=$image/$architecture/usr/local/bin/$program
  [ -x "$path" ] || { echo "there is no image of $program for $architecture: name its target in DIST_TARGETS of make dist" >&2; exit 1; }
  ln -s "$path" "$work/bin/$program"
done
export WEIR_BIN_DIR=$work/bin
if [ "$(id -u)" != 0 ]; then
  HOME=$work/volume TMPDIR=$work/volume "$bin/e2e" demo
  exit
fi

case $work in
  /tmp/*) readable=no ;; # The volume is mounted there.
  *) hack/confined.sh "$work/volume" test -x "$bin/e2e" && readable=yes || readable=no ;;
esac
if [ $readable = no ]; then
  echo "the user of the images can't read $PWD: clone the project into a folder that everybody may enter, outside of /tmp" >&2
  exit 1
fi
# The cache is below the home of root, which no other user may enter. Volumes of Pods are at /tmp, which the control plane writes to as well.
# shellcheck disable=SC2016 # expanded in the new namespace
HOME=/tmp TMPDIR=/tmp unshare --mount --propagation private bash -euo pipefail -c '
  mount --bind "$WEIR_CACHE_DIR" "$1/cache"
  mount --bind "$1/volume" /tmp
  export WEIR_CACHE_DIR=$1/cache
  exec hack/confined.sh /tmp "$2/e2e" demo
' bash "$work" "$bin"
