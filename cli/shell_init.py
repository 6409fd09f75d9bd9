"""Shell functions that let `trap verify` reach this program.

`trap` is a builtin of bash and zsh and a function of fish, so a program of that
name is never run by typing it. `trapkit shell-init SHELL` prints one of the texts
below; the shell evaluates it once and from then on has a function `trap`.

The rule of all three: the words go to `trapkit` if the first is one of
SUBCOMMANDS and the rest are not all signals (no rest at all counts so too).
Everything else, options and `--help` included, is the shell's own `trap`. So
`trap verify` is ours, while `trap verify EXIT` and `trap run INT TERM` still make
an action of a user's command called `verify` or `run`; a folder that is named
like a signal is written `./INT`.
"""

from __future__ import annotations

SUBCOMMANDS: tuple[str, ...] = (
    "init",
    "register",
    "rehearse",
    "draw",
    "predict",
    "run",
    "run-one",
    "cancel",
    "verify",
    "audit",
    "status",
    "ledger",
    "show",
    "crate",
    "workflow",
    "demo",
    "shell-init",
    "theory",
    "advise",
    "watch",
    "policy",
    "reproduce",
    "witness",
    "doctor",
    "gate",
    "sweep",
    "tables",
    "playground",
    "workload",
)

_NOT_FOUND = "trap: trapkit is not on PATH: activate the environment it is installed in"

# bash hides DEBUG, RETURN and ERR traps from functions. Tracing shows the first two,
# at the price that RETURN would fire when this function returns: the action is
# swapped for one that puts it back. Nothing shows ERR, so a reset of it is left to a
# trap that removes itself.
# In posix mode a builtin like trap cannot be a function, and defining one is fatal.
_BASH = r"""if shopt -qo posix; then
  printf '%s\n' 'trapkit: bash is in posix mode, where trap cannot be a function: type trapkit' >&2
else
  function __trapkit_takes {
    local word
    case "${1-}" in
      @WORDS@) shift ;;
      *) return 1 ;;
    esac
    if [[ $# -eq 0 ]]; then return 0; fi
    for word in "$@"; do
      builtin trap -p -- "$word" >/dev/null 2>&1 || return 0
    done
    return 1
  }
  function __trapkit_run {
    if builtin type -P trapkit >/dev/null; then
      command trapkit "$@"
    else
      printf '%s\n' '@NOT_FOUND@' >&2
      return 127
    fi
  }
  function __trapkit_resets_err {
    if [[ $- == *E* ]]; then return 1; fi
    if [[ ${1-} == -- ]]; then shift; fi
    if [[ $# -gt 1 && $1 != - ]]; then return 1; fi
    case " $* " in
      *' '[Ee][Rr][Rr]' '*) return 0 ;;
      *) return 1 ;;
    esac
  }
  function trap {
    local __trapkit_status=0 __trapkit_return
    if __trapkit_takes "$@"; then
      __trapkit_run "$@" || __trapkit_status=$?
    else
      builtin trap "$@" || __trapkit_status=$?
      if __trapkit_resets_err "$@"; then builtin trap -- 'builtin trap - ERR' ERR; fi
    fi
    __trapkit_return=$(builtin trap -p RETURN)
    if [[ -n $__trapkit_return ]]; then builtin trap -- "builtin $__trapkit_return" RETURN; fi
    return "$__trapkit_status"
  }
  declare -ft trap
fi
"""

# zsh runs an EXIT trap set in a function when that function ends, in the scope of
# the caller. That is how the builtin gets there: it is tried here for its status
# and messages (LOCAL_TRAPS undoes that), then run for good by this function's own
# EXIT trap. Inside an action zsh leaves such EXIT traps out, and POSIX_TRAPS makes
# the direct call mean the shell's EXIT. DEBUG and ZERR rest meanwhile, and errors
# stop the caller, not this function.
_ZSH = r"""function __trapkit_takes {
  emulate -L zsh
  local word
  case "${1-}" in
    (@WORDS@) shift ;;
    (*) return 1 ;;
  esac
  (( $# )) || return 0
  for word in "$@"; do
    [[ $word == (<0-64>|ERR|SIGERR) ]] || (( ${signals[(Ie)${word#SIG}]} )) || return 0
  done
  return 1
}
function __trapkit_run {
  if builtin whence -p trapkit >/dev/null; then
    command trapkit "$@"
  else
    print -ru2 -- '@NOT_FOUND@'
    return 127
  fi
}
function trap {
  emulate -L zsh
  local __trapkit_status=0 __trapkit_action=${(M)zsh_eval_context:#trap}${(M)funcstack:#TRAP*}
  [[ -n $__trapkit_action ]] || builtin trap - DEBUG ZERR
  setopt noerrexit noerrreturn
  if __trapkit_takes "$@"; then
    __trapkit_run "$@" || __trapkit_status=$?
  elif [[ -n $__trapkit_action ]]; then
    setopt posixtraps nolocaltraps
    builtin trap "$@" || __trapkit_status=$?
  else
    { builtin trap "$@" || __trapkit_status=$? } >/dev/null
    builtin trap - DEBUG ZERR
    builtin trap -- "builtin trap ${(j: :)${(@qq)@}} 2>/dev/null || :" EXIT
  fi
  return $__trapkit_status
}
"""

# fish ships `trap` as a function, and its actions are global: a copy keeps it whole.
_FISH = r"""functions -q __trapkit_shell_trap; or functions -c trap __trapkit_shell_trap
function __trapkit_takes
    contains -- "$argv[1]" @WORDS@; or return 1
    set -e argv[1]
    set -q argv[1]; or return 0
    for word in $argv
        string match -qir '^(\d+|(SIG)?(EXIT|@SIGNALS@))$' -- $word; or return 0
    end
    return 1
end
function trap -d 'Perform an action when the shell receives a signal, or run trapkit'
    if not __trapkit_takes $argv
        __trapkit_shell_trap $argv
    else if command -q trapkit
        command trapkit $argv
    else
        echo '@NOT_FOUND@' >&2
        return 127
    end
end
"""

_FISH_SIGNALS = (
    "HUP|INT|QUIT|ILL|TRAP|ABRT|IOT|BUS|FPE|KILL|USR1|SEGV|USR2|PIPE|ALRM|TERM|STKFLT|CHLD|CLD|CONT|STOP|TSTP|TTIN|TTOU"
    "|URG|XCPU|XFSZ|VTALRM|PROF|WINCH|IO|POLL|PWR|SYS|INFO|EMT"
)

_TEXTS = {"bash": (_BASH, "|"), "zsh": (_ZSH, "|"), "fish": (_FISH, " ")}


def function_for(shell: str) -> str:
    """The text that defines `trap` in a shell: bash, zsh or fish.

    Raises:
        KeyError: no such shell is known.
    """
    text, between = _TEXTS[shell]
    words = between.join(SUBCOMMANDS)
    return text.replace("@WORDS@", words).replace("@SIGNALS@", _FISH_SIGNALS).replace("@NOT_FOUND@", _NOT_FOUND)
