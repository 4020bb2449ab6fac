#!/usr/bin/env bash
# The README's first commands, word for word, as a stranger runs them. CI does so in a bare container with Rust and a C compiler.
#
#   scripts/readme.sh        all commands of its first block
#   scripts/readme.sh 1      only the first: it builds gnntop and watches a training, and is ended once steps are shown
#   scripts/readme.sh 2      only the second: the tests
set -euo pipefail
cd "$(dirname "$0")/.."
# A stranger's machine is none of GitHub's, where missing tools are an error, and has no settings of gnntop's.
unset GITHUB_ACTIONS ${!GNNTOP@}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# watch COMMAND: it must print lines about steps. SIGTERM ends the training, too; the exit code says that it arrived.
watch() {
    bash -c "exec $1" >"$log" 2>&1 </dev/null &
    local watching=$! code=0
    until grep --max-count=1 -E '^[0-9].*: epoch [0-9]+, step [0-9]+' "$log"; do
        if ! kill -0 "$watching" 2>/dev/null; then
            cat "$log" && echo "it ended without showing a step" >&2
            return 1
        fi
        sleep 1
    done
    kill -TERM "$watching"
    wait "$watching" || code=$?
    [ "$code" = 143 ] || { cat "$log" && echo "exit code $code, not 143" >&2 && return 1; }
}

# The lines of the first block, without their comments.
mapfile -t commands < <(sed -n '/^```sh$/,/^```$/{/^```/!p;/^```$/q}' README.md | sed 's/ *#.*//')
[ ${#commands[@]} = 2 ] && [ "${commands[1]}" = ./check.sh ] || { echo "README.md does not begin with two commands" >&2; exit 1; }
for number in ${*:-1 2}; do
    command=${commands[number - 1]}
    echo "== $command"
    begin=$SECONDS
    if [ "$number" = 1 ]; then watch "$command"; else bash -c "$command"; fi
    echo "== $command: ok after $((SECONDS - begin)) s"
done
