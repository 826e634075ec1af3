/** A shell, because Deno lets only programs that may do everything read /proc. */
const END_SESSION = `
all=" " rows=""
for folder in /proc/[0-9]*; do
  { read -r line <"$folder/stat"; } 2>/dev/null || continue
  pid=\${folder#/proc/}
  set -- "$1" "$2" \${line##*) }
  if [ "$6" = "$1" ]; then all="$all$pid " rows="$rows $pid:$4"; fi
done
for row in $rows; do
  pid=\${row%:*} parent=\${row#*:}
  [ "$pid" = "$1" ] && continue
  case "$2 $all" in "orphans "*" $parent "*) continue ;; esac
  kill -9 "$pid" 2>/dev/null
done`;

/**
 * SIGKILL to processes of the session that `leader` leads: to all of them but the leader, or to
 * orphans, those whose parent is not of the session. Steps have process groups of their own, the
 * session they share. Rejects when there is no shell.
 */
export async function endProcessesOfSession(
  leader: number,
  which: "all" | "orphans",
): Promise<void> {
  await new Deno.Command("/bin/sh", {
    args: ["-c", END_SESSION, "end-session", String(leader), which],
    clearEnv: true,
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).output();
}
