"""`aqmlab completion`: scripts for bash, zsh and fish, which ask `aqmlab --complete`.

`complete` has the answers; where there is none, the shell completes names of files.
"""

from __future__ import annotations

from aqmlab.cli.options import argument
from aqmlab.errors import unknown

EXAMPLE = (
    "aqmlab completion bash > ~/.local/share/bash-completion/completions/aqmlab\n\n"
    "aqmlab completion zsh > ~/.zfunc/_aqmlab\n\n"
    "aqmlab completion fish > ~/.config/fish/completions/aqmlab.fish"
)
BASH = """# aqmlab completion bash > ~/.local/share/bash-completion/completions/aqmlab
_aqmlab() {
  local line=${COMP_LINE:0:COMP_POINT} words found cur
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  cur=${words[-1]}
  mapfile -t found < <(aqmlab --complete "${words[@]:1}" 2>/dev/null)
  # Readline begins a new word after `=` and `:`.
  local known=${cur%"${cur##*[=:]}"} quotes=${line//[!\\"\\']}
  # It does not within quotes.
  (( ${#quotes} % 2 )) && known=
  COMPREPLY=("${found[@]#"$known"}")
  [[ ${#found[@]} == 1 && ${found[0]} == *[=.] ]] && compopt -o nospace
}
complete -o default -F _aqmlab aqmlab
"""
ZSH = """#compdef aqmlab
# aqmlab completion zsh > ~/.zfunc/_aqmlab  (with fpath=(~/.zfunc $fpath) before compinit)
_aqmlab() {
  local -a found more
  found=("${(@f)$(aqmlab --complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  found=(${found:#})
  more=(${(M)found:#*[=.]})
  found=(${found:#*[=.]})
  if (( $#found + $#more )); then
    compadd -Q -- $found
    compadd -Q -S '' -- $more
  else
    _files
  fi
}
if [[ $funcstack[1] == _aqmlab ]]; then _aqmlab "$@"; else compdef _aqmlab aqmlab; fi
"""
FISH = """# aqmlab completion fish > ~/.config/fish/completions/aqmlab.fish
function __aqmlab_complete
    set -l found (aqmlab --complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)
    if test -n "$found"
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c aqmlab -f -a '(__aqmlab_complete)'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def completion(
    shell: str = argument("SHELL", "bash, zsh or fish."),
) -> None:
    """Print a script that completes commands, options, names, keys and values."""
    if shell not in SCRIPTS:
        raise unknown("shell", shell, SCRIPTS, key="SHELL")
    print(SCRIPTS[shell], end="")
