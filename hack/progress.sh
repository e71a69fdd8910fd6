#!/usr/bin/env bash
# Runs a release build by cargo, and says how far it is and how long it will take: progress.sh TITLE cargo build ...
# The estimate weighs each crate by its seconds on one core: those of the list below, and 1.5 for any other. A crate with a library and a
# program counts for each.
set -euo pipefail
title=$1
shift
cores=$(nproc 2>/dev/null || echo 2)
weights='helm=60 kluctl-controller=55 kustomize-controller=50 notification-controller=55 source-controller=60 e2e=20 testkit=25'
all=1400
echo "$title: about $(((all / cores + 59) / 60)) min if nothing is compiled yet, seconds if little has changed"
"$@" --quiet --message-format=json-render-diagnostics | awk -v title="$title" -v weights="$weights" -v all="$all" -v cores="$cores" '
  BEGIN {
    count = split(weights, pairs, " ")
    for (i = 1; i <= count; i++) { split(pairs[i], pair, "="); weight[pair[1]] = pair[2] }
    "date +%s" | getline start; close("date +%s"); said = start
  }
  /"reason":"compiler-artifact"/ {
    match($0, /"target":\{[^}]*"name":"[^"]*"/)
    name = substr($0, RSTART, RLENGTH); sub(/.*"name":"/, "", name); sub(/"$/, "", name); gsub(/_/, "-", name)
    one = (name in weight) ? weight[name] : 1.5
    done += one
    if (/"fresh":false/) compiled += one
    "date +%s" | getline now; close("date +%s")
    if (now - said >= 10) {
      said = now
      left = all - done; if (left < 0) left = 0
      # The speed so far counts more, the more was compiled.
      speed = (compiled + 100) / (now - start + 100 / cores)
      seconds = left / speed
      about = seconds < 90 ? int(seconds / 5 + 1) * 5 " s" : int(seconds / 60 + 0.5) " min"
      percent = (done > all) ? 100 : done * 100 / all
      printf "%s: %d%% done, about %s left\n", title, percent, about > "/dev/stderr"
    }
  }
  END { "date +%s" | getline now; printf "%s: done in %d s\n", title, now - start > "/dev/stderr" }'
