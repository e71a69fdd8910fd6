# Ends what a process started, should that process end without doing so itself (SIGKILL, a crash, Ctrl-C).
# Arguments: the state directory; its owner as <process id>.<start time>, the start time being 0 where it is unknown.
dir=$1
owner=$2

alive() {
  pid=${1%.*}
  started=${1#*.}
  if [ "$started" = 0 ]; then
    kill -0 "$pid"
    return
  fi
  read -r stat <"/proc/$pid/stat" || return 1
  # Behind the name in parentheses come the state (first) and the start time (twentieth).
  set -- ${stat##*) }
  [ "$1" != Z ] && [ "${20}" = "$started" ]
}

while alive "$owner"; do
  [ -d "$dir" ] || exit 0
  sleep 1
done
for round in 1 2 3 4 5; do
  for process in "$dir"/procs/*; do
    process=${process##*/}
    alive "$process" && kill -KILL "${process%.*}"
  done
  rm -rf "$dir" && exit 0
  sleep 1
done
