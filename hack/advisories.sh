#!/usr/bin/env bash
# Checks the dependencies against the RustSec advisory database. The database is a Git repository on GitHub: where it can't be
# reached and no earlier copy is in the cache, nothing is checked. Then the last line begins with SKIPPED, and is noted in
# target/skipped-checks for `make verify`; with REQUIRE_ADVISORIES=1, as before a release, it fails. Exceptions are in deny.toml, with reasons.
set -euo pipefail
cd "$(dirname "$0")/.."
database=https://github.com/RustSec/advisory-db
deny=${DENY:-cargo-deny}
note=${SKIPPED_CHECKS:-target/skipped-checks}
rm -f "$note"

if timeout 60 git ls-remote --quiet --exit-code "$database" HEAD >/dev/null 2>&1; then
  exec "$deny" --log-level error --all-features check advisories
fi
# Without a copy of the database this fails in a way that can't be told from a finding, so the copy is looked for first.
if compgen -G "${CARGO_HOME:-$HOME/.cargo}/advisory-dbs/*/crates" >/dev/null; then
  echo "advisories: $database can't be reached, using the copy of the last run"
  exec "$deny" --log-level error --all-features check --disable-fetch advisories
fi
mkdir -p "$(dirname "$note")"
echo "SKIPPED: advisories: $database can't be reached and there is no earlier copy, so no dependency was checked" | tee "$note"
[ "${REQUIRE_ADVISORIES:-0}" != 1 ]
