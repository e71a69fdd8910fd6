#!/usr/bin/env bash
# Compares a tag with the version of the workspace: check-tag.sh v0.1.0
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n '/^\[workspace\.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
if [ "${1:-}" != "v$version" ]; then
  echo "the tag is ${1:-missing}, but Cargo.toml has the version $version: tag v$version, or change the version first" >&2
  exit 1
fi
