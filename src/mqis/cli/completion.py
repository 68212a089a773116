"""``mqis completion``: prints the script that completes commands in a shell."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

import typer

from mqis.cli.completing import FILES, VARIABLE


class ShellName(StrEnum):
    """The shells that a script exists for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


# bash splits words also at = and : and wants only what comes behind the last of them.
_BASH: Final = """\
_mqis() {
    local line=${COMP_LINE:0:COMP_POINT} current=${COMP_WORDS[COMP_CWORD]} reply word
    case $current in = | :) current= ;; esac
    word=${line##*[[:space:]]}
    local before=${word%"$current"}
    COMPREPLY=()
    while IFS= read -r reply; do
        reply=${reply%%$'\\t'*}
        case $reply in
            @FILES@) compopt -o default ;;
            *) COMPREPLY+=("${reply#"$before"}") ;;
        esac
    done < <(@VARIABLE@=line "$1" "$line" 2> /dev/null)
    case ${COMPREPLY[0]-} in *=) compopt -o nospace ;; esac
}
complete -F _mqis mqis
"""
_ZSH: Final = """\
#compdef mqis
_mqis() {
    local -a replies described
    local reply files=
    replies=("${(@f)$(@VARIABLE@=words "${words[1]}" "${(@Q)words[2,CURRENT]}" 2> /dev/null)}")
    for reply in $replies; do
        if [[ $reply == @FILES@ ]]; then
            files=1
        elif [[ $reply == *$'\\t'* ]]; then
            described+=("${${reply%%$'\\t'*}//:/\\\\:}:${reply#*$'\\t'}")
        elif [[ -n $reply ]]; then
            described+=("${reply//:/\\\\:}")
        fi
    done
    if [[ ${described[1]} == *= ]]; then
        _describe -V mqis described -S ''
    elif (( $#described )); then
        _describe -V mqis described
    fi
    [[ -n $files ]] && _files
}
if [[ ${funcstack[1]} == _mqis ]]; then _mqis "$@"; else compdef _mqis mqis; fi
"""
_FISH: Final = """\
function __mqis_complete
    set -l before (commandline -opc)
    set -l last (commandline -ct)
    test (count $last) -eq 0; and set last ''
    for reply in (env @VARIABLE@=words $before[1] $before[2..] $last 2> /dev/null)
        if test "$reply" = @FILES@
            __fish_complete_path $last
        else
            echo $reply
        end
    end
end
complete --command mqis --no-files --keep-order --arguments '(__mqis_complete)'
"""
SCRIPTS: Final = {ShellName.BASH: _BASH, ShellName.ZSH: _ZSH, ShellName.FISH: _FISH}


def completion(
    shell: Annotated[
        ShellName, typer.Argument(metavar="SHELL", help="bash, zsh or fish.", show_default=False)
    ],
) -> None:
    """Print the script that completes commands, options and properties in a shell.

    bash: mqis completion bash > ~/.local/share/bash-completion/completions/mqis

    zsh: mqis completion zsh > DIRECTORY/_mqis, with a directory of $fpath

    fish: mqis completion fish > ~/.config/fish/completions/mqis.fish
    """
    print(SCRIPTS[shell].replace("@VARIABLE@", VARIABLE).replace("@FILES@", FILES), end="")
