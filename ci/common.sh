# What ci/setup, ci/drill and ci/test share: talking to the user, and long steps that show that they are alive.
# Sourced from bash; expects `name` (of the script) and `root` (of the tree) to be set.

say() { printf '%s: %s\n' "$name" "$*" >&2; }

# One sentence that says what is wrong, and what to do about it.
fail() {
  say "error: $1"
  [ $# -lt 2 ] || say "remedy: $2"
  exit 1
}

# long_step TEXT LOG COMMAND...: runs COMMAND with its output in LOG, says how long it has been going and how far it is
# (ninja's [n/m], or with TEXT ending in " @FOLDER" the folder's size), and returns its exit status.
long_step() {
  local text=${1% @*} watched="" log=$2 started=$SECONDS next=5 pid status=0 line
  [[ $1 != *" @"* ]] || watched=${1##* @}
  shift 2
  say "$text ..."
  "$@" >"$log" 2>&1 </dev/null &
  pid=$!
  trap 'kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; say "interrupted"; exit 130' INT TERM
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.1
    (( SECONDS - started >= next )) || continue
    line="  $(( SECONDS - started )) s"
    if [ -n "$watched" ]; then line+=", $(du -sm "$watched" 2>/dev/null | cut -f1) MB"
    else line+=" $(tail -n 1 "$log" | grep -o '^\[[0-9/]*\]' || true)"; fi
    if [ -t 2 ]; then printf '\r%s ' "$line" >&2; next=$(( next + 1 )); else say "$line"; next=$(( next + 15 )); fi
  done
  wait "$pid" || status=$?
  trap - INT TERM
  if [ -t 2 ] && (( SECONDS - started >= 5 )); then printf '\n' >&2; fi
  return "$status"
}

# build PRESET [TARGET...]: configures and builds, quietly unless it fails.
build() {
  local preset=$1 log=build/$1.log
  shift
  mkdir -p build
  long_step "configuring $preset" "$log" cmake --preset "$preset" ||
    { tail -n 30 "$log" >&2; fail "configuring the preset $preset failed; the messages are above."; }
  long_step "building $preset" "$log" cmake --build --preset "$preset" ${1:+--target "$@"} ||
    { grep -vE '^\[[0-9]+/[0-9]+\] (Building|Linking|Re-checking)' "$log" | tail -n 60 >&2
      fail "building the preset $preset failed; the compiler's messages are above." "all of them are in $log"; }
}
