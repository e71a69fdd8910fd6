#!/usr/bin/env bash
# Runs a command as Pods run the programs of images: as user 65532 without capabilities, and everything is read-only but one folder:
# confined.sh FOLDER COMMAND ARGUMENT ...
# Ordinary users stay the same user, because only root may do this.
set -euo pipefail
folder=$(realpath "$1")
shift
if [ "$(id -u)" != 0 ]; then
  exec "$@"
fi
drop=(setpriv --reuid=65532 --regid=65532 --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs)
if ! unshare --mount --propagation private true 2>/dev/null; then
  echo "this kernel allows no mount namespaces: the root stays writable" >&2
  exec "${drop[@]}" "$@"
fi
# shellcheck disable=SC2016 # expanded in the new namespace, whose mounts end with it
exec unshare --mount --propagation private bash -euo pipefail -c '
  folder=$1
  shift
  for mount in $(findmnt --raw --noheadings --output TARGET); do
    mount -o remount,bind,ro "$mount" 2>/dev/null || true
  done
  mount --bind "$folder" "$folder"
  mount -o remount,bind,rw "$folder"
  exec "$@"
' bash "$folder" "${drop[@]}" "$@"
