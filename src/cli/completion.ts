/**
 * Completion scripts, complete in themselves: pressing Tab starts no process. Options and values come from the option
 * table; after `--` the shell completes a command of its own.
 */
import { BRIDGE_VERBS, type OptionSpec } from './options/option-spec.ts';
import { OPTIONS } from './options/option-table.ts';

const SHELLS = ['bash', 'zsh'] as const;
export type Shell = (typeof SHELLS)[number];

const VERBS = [...BRIDGE_VERBS, 'completion'].join(' ');

export function isShell(word: string): word is Shell {
  return SHELLS.some((shell) => shell === word);
}

export function renderCompletion(shell: Shell): string {
  return shell === 'bash' ? renderBash() : renderZsh();
}

/** Written for bash 3.2, which macOS still ships. */
function renderBash(): string {
  const words = [...OPTIONS.flatMap(switchesOf), '--help', '--version', '--'];
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
  .map((option) => `    --${option.name}) ${bashValue(option)}; return ;;`)
  .join('\n')}
    completion) COMPREPLY=($(compgen -W "${SHELLS.join(' ')}" -- "$current")); return ;;
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

function bashValue(option: OptionSpec): string {
  if (option.choices !== undefined) return `COMPREPLY=($(compgen -W "${option.choices.join(' ')}" -- "$current"))`;
  if (option.completes === 'file') return 'COMPREPLY=($(compgen -f -- "$current"))';
  if (option.completes === 'directory') return 'COMPREPLY=($(compgen -d -- "$current"))';
  return ':';
}

function renderZsh(): string {
  const specs = OPTIONS.flatMap((option) => switchesOf(option).map((name) => zshSpec(option, name)));
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
  else
    _arguments \\
${specs.map((spec) => `      ${spec} \\`).join('\n')}
      '(-h --help)'{-h,--help}'[Show this help]' \\
      '(-v --version)'{-v,--version}'[Show the version]' \\
      '1:command:(${VERBS})'
  fi
}
compdef _mcp_portage mcp-portage
`;
}

/** `--no-x` exists for flags only. */
function switchesOf(option: OptionSpec): readonly string[] {
  return option.kind === 'flag' ? [`--${option.name}`, `--no-${option.name}`] : [`--${option.name}`];
}

function takesValue(option: OptionSpec): boolean {
  return option.kind !== 'flag';
}

function zshSpec(option: OptionSpec, name: string): string {
  const repeat = option.kind === 'list' ? '*' : '';
  const value = takesValue(option) ? `:${quiet(option.placeholder ?? 'value')}:${zshValue(option)}` : '';
  return `'${repeat}${name}[${quiet(option.describe)}]${value}'`;
}

/** Without what has a meaning in a specification of zsh. */
function quiet(text: string): string {
  return text.replaceAll("'", '’').replaceAll(/[[\]:]/g, ' ');
}

function zshValue(option: OptionSpec): string {
  if (option.choices !== undefined) return `(${option.choices.join(' ')})`;
  if (option.completes === 'file') return '_files';
  if (option.completes === 'directory') return '_directories';
  return ' ';
}
