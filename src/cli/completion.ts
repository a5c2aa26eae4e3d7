/**
 * Self-contained completion scripts, so that pressing Tab starts no process. Options and values come from the option
 * table. After `--`, the shell completes the server's command.
 */

import { TOPIC_WORDS } from './help/topic.ts';
import { BRIDGE_VERBS, OPTIONS, type Option } from './options/option-table.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

const VERBS = [...BRIDGE_VERBS, 'completion', 'help'].join(' ');
const TOPICS = TOPIC_WORDS.join(' ');

export function isShell(word: string): word is Shell {
  return SHELLS.some((shell) => shell === word);
}

export function renderCompletion(shell: Shell): string {
  switch (shell) {
    case 'bash':
      return renderBash();
    case 'zsh':
      return renderZsh();
    case 'fish':
      return renderFish();
  }
}

/** The script runs in bash 3.2, the version of macOS. */
function renderBash(): string {
  const words = [...OPTIONS.map(({ offered }) => offered), '--help', '--version', '--'];
  return `# mcp-portage completion for bash: source <(mcp-portage completion bash)
_mcp_portage() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" index
  COMPREPLY=()
  for ((index = 1; index < COMP_CWORD; index++)); do
    if [[ "\${COMP_WORDS[index]}" == "--" ]]; then
      if declare -F _command_offset >/dev/null; then _command_offset $((index + 1))
      elif ((COMP_CWORD == index + 1)); then COMPREPLY=($(compgen -c -- "$current"))
      else COMPREPLY=($(compgen -f -- "$current")); fi
      return
    fi
  done
  case "$previous" in
${OPTIONS.filter(takesValue)
  .map((option) => `    ${option.flag}) ${bashValue(option)}; return ;;`)
  .join('\n')}
    completion) COMPREPLY=($(compgen -W "${SHELLS.join(' ')}" -- "$current")); return ;;
    help) COMPREPLY=($(compgen -W "${TOPICS}" -- "$current")); return ;;
  esac
  if [[ "$current" == -* ]]; then
    COMPREPLY=($(compgen -W "${words.join(' ')}" -- "$current"))
  elif ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "${VERBS}" -- "$current"))
  fi
}
complete -F _mcp_portage mcp-portage
`;
}

function bashValue({ type: { choices, completes } }: Option): string {
  if (choices !== undefined) return `COMPREPLY=($(compgen -W "${choices.join(' ')}" -- "$current"))`;
  if (completes === 'file') return 'COMPREPLY=($(compgen -f -- "$current"))';
  if (completes === 'directory') return 'COMPREPLY=($(compgen -d -- "$current"))';
  return ':';
}

function renderZsh(): string {
  return `#compdef mcp-portage
# mcp-portage completion for zsh: source <(mcp-portage completion zsh), after compinit
_mcp_portage() {
  local separator=\${words[(i)--]}
  if (( separator < CURRENT )); then
    shift $separator words
    (( CURRENT -= separator ))
    _normal
  elif [[ \${words[2]} == completion ]]; then
    (( CURRENT == 3 )) && compadd ${SHELLS.join(' ')}
  elif [[ \${words[2]} == help ]]; then
    (( CURRENT == 3 )) && compadd ${TOPICS}
  else
    _arguments \\
${OPTIONS.map((option) => `      ${zshSpec(option)} \\`).join('\n')}
      '(-h --help)'{-h,--help}'[Show this help]' \\
      '(-v --version)'{-v,--version}'[Show the version]' \\
      '1:command:(${VERBS})'
  fi
}
compdef _mcp_portage mcp-portage
`;
}

function renderFish(): string {
  return `# mcp-portage completion for fish: mcp-portage completion fish | source
function __mcp_portage_is_first
    test (count (commandline -opc)) -eq 1
end
function __mcp_portage_follows
    test (count (commandline -opc)) -eq 2; and contains -- $argv (commandline -opc)
end
function __mcp_portage_has_separator
    contains -- -- (commandline -opc)
end
function __mcp_portage_complete_command
    set -l words (commandline -opc)
    set -l separator (contains -i -- -- $words)
    set -l command (string escape -- $words[(math $separator + 1)..-1])
    complete -C (string join ' ' -- $command (commandline -ct))
end
complete -c mcp-portage -f
complete -c mcp-portage -n __mcp_portage_has_separator -a '(__mcp_portage_complete_command)'
complete -c mcp-portage -n __mcp_portage_is_first -a '${VERBS}'
complete -c mcp-portage -n '__mcp_portage_follows completion' -a '${SHELLS.join(' ')}'
complete -c mcp-portage -n '__mcp_portage_follows help' -a '${TOPICS}'
${OPTIONS.map(fishOption).join('\n')}
complete -c mcp-portage -s h -l help -d 'Show this help'
complete -c mcp-portage -s v -l version -d 'Show the version'
`;
}

function fishOption(option: Option): string {
  const value = takesValue(option) ? ` ${fishValue(option)}` : '';
  return `complete -c mcp-portage -l ${option.offered.slice(2)}${value} -d '${quoteForFish(option.effect)}'`;
}

function fishValue({ type: { choices, completes } }: Option): string {
  if (choices !== undefined) return `-x -a '${choices.join(' ')}'`;
  if (completes === 'file') return '-r -F';
  if (completes === 'directory') return "-x -a '(__fish_complete_directories)'";
  return '-x';
}

function quoteForFish(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll("'", "\\'");
}

/** A value that may be left out follows an equals sign, so the next word is none. */
function takesValue(option: Option): boolean {
  return option.kind !== 'flag' && option.bare === undefined;
}

function zshSpec(option: Option): string {
  const repeat = option.kind === 'list' ? '*' : '';
  const hasValue = option.kind !== 'flag';
  // `=-`: the value is in the same word. A second colon: it may be left out.
  const [inWord, colon] = option.bare === undefined ? ['', ':'] : ['=-', '::'];
  const value = hasValue ? `${colon}${quoteForZsh(option.type.placeholder)}:${zshValue(option)}` : '';
  return `'${repeat}${option.offered}${inWord}[${quoteForZsh(option.effect)}]${value}'`;
}

/** Escapes the characters that end a part of a zsh completion spec, and the quote that ends the spec. */
function quoteForZsh(text: string): string {
  return text.replaceAll(/[\\[\]:]/g, '\\$&').replaceAll("'", `'\\''`);
}

function zshValue({ type: { choices, completes } }: Option): string {
  if (choices !== undefined) return `(${choices.join(' ')})`;
  if (completes === 'file') return '_files';
  if (completes === 'directory') return '_directories';
  return ' ';
}
