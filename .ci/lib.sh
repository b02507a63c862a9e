# Shared by .ci/run and .ci/slow; source it, do not run it.

export CI=true
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Local copies of public data, where this machine has them.
if [ -z "${BAYESPERF_DATA:-}" ] && [ -d "$root/../shared/data" ]; then
    BAYESPERF_DATA=$(cd "$root/../shared/data" && pwd)
    export BAYESPERF_DATA
fi

step() {
    printf '\n=== %s (%d s so far)\n' "$*" "$SECONDS"
}

# The first interpreter that is new enough, as an absolute path: version managers' shims depend on the folder.
find_python() {
    local name
    for name in "${PYTHON:-python3.13}" python3 python3.12 python3.14 python; do
        if (cd "$root" && "$name" -c 'import sys; sys.exit(sys.version_info < (3, 12))') 2>/dev/null; then
            (cd "$root" && "$name" -c 'import sys; print(sys.executable)')
            return
        fi
    done
    echo "Python 3.12 or newer is needed; set PYTHON to one" >&2
    return 1
}

# What a clone would hold: a developer's environment and build folders stay behind.
copy_checkout() {
    mkdir -p "$1"
    if git -C "$root" rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        (cd "$root" && git ls-files -z --cached --others --exclude-standard) |
            (cd "$root" && while IFS= read -r -d '' file; do [ -e "$file" ] && printf '%s\0' "$file"; done) |
            tar -C "$root" --null --no-recursion -T - -cf - | tar -C "$1" -xf -
    else
        tar -C "$root" --exclude=./.venv --exclude=./build --exclude=./dist -cf - . | tar -C "$1" -xf -
    fi
}

# The command block of the README that follows the line `<!-- ci: NAME -->`.
readme_command() {
    awk -v mark="<!-- ci: $1 -->" '
        $0 == mark { found = 1; next }
        found && /^```/ { if (inside) exit; inside = 1; next }
        inside { print }
    ' "$root/README.md" | grep . || { echo "README.md has no command marked $1" >&2; return 1; }
}
