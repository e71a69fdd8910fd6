#!/usr/bin/env bash
# Compiles static programs for several targets, without paths of the machine in them: static.sh "TRIPLE TRIPLE" cargo zigbuild ...
set -euo pipefail
read -ra targets <<<"$1"
shift
missing=()
for target in "${targets[@]}"; do
  compgen -G "$(rustc --print target-libdir --target "$target")/libstd-*" >/dev/null || missing+=("$target")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "the compiler has no standard library for ${missing[*]}: run \`rustup target add ${missing[*]}\`, or name others (DIST_TARGETS=\"TRIPLE TRIPLE\")" >&2
  exit 1
fi
# Cargo ignores its own settings of flags where the variable is set, so there is one place for them.
export RUSTFLAGS="--remap-path-prefix=$PWD=weir --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"
for target in "${targets[@]}"; do
  hack/progress.sh "compiling the programs for $target" "$@" --target "$target"
done
