# What ci/setup, ci/drill and ci/test share: talking to the user, and long steps that show that they are alive.
# Sourced from bash; expects `name` (of the script) and `root` (of the tree) to be set.

say() { printf '%s: %s\n' "$name" "$*" >&2; }

# One sentence that says what is wrong, and what to do about it.
fail() {
  say "error: $1"
  [ $# -lt 2 ] || say "remedy: $2"
  exit 1
}

# long_step TEXT LOG COMMAND...: runs COMMAND with its output in LOG and says how long it has been going; returns its
# exit status. TEXT may end in " @FOLDER": then the size of FOLDER is shown, too (for downloads).
long_step() {
  local text=${1% @*} watched="" log=$2 started=$SECONDS next=5 pid status=0 line
  [[ $1 != *" @"* ]] || watched=${1##* @}
  shift 2
  say "$text ..."
  "$@" >"$log" 2>&1 </dev/null &
  pid=$!
  trap 'kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; say "interrupted"; exit 130' INT TERM
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.2
    (( SECONDS - started >= next )) || continue
    line="  $(( SECONDS - started )) s"
    [ -z "$watched" ] || line+=", $(du -sm "$watched" 2>/dev/null | cut -f1) MB"
    if [ -t 2 ]; then printf '\r%s ' "$line" >&2; next=$(( next + 1 )); else say "$line"; next=$(( next + 15 )); fi
  done
  wait "$pid" || status=$?
  trap - INT TERM
  if [ -t 2 ] && (( SECONDS - started >= 5 )); then printf '\n' >&2; fi
  return "$status"
}
