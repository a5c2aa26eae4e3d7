import { OPTION_GROUPS, type OptionSpec } from '../src/cli/options/option-spec.ts';
import { envNameOf, OPTIONS, VARIABLES } from '../src/cli/options/option-table.ts';

/** All options as a table in Markdown. */
export function renderOptionsTable(): string {
  const rows = Object.entries(OPTION_GROUPS).flatMap(([group, title]) => [
    `| **${title}** | | |`,
    ...OPTIONS.filter((option: OptionSpec) => option.group === group).map(renderRow),
    ...VARIABLES.filter((variable) => variable.group === group).map(
      ({ name, note }) => `| \`${name}\` | – | ${note} |`,
    ),
  ]);
  return ['| Option | Default | What it does |', '|---|---|---|', ...rows].join('\n');
}

function renderRow(option: OptionSpec): string {
  const choices = option.choices === undefined ? '' : `: ${option.choices.map((choice) => `\`${choice}\``).join(', ')}`;
  const repeat = option.kind === 'list' ? ' (repeatable)' : '';
  return `| \`${writeOption(option)}\`<br>\`${envNameOf(option.name)}\` | ${writeDefault(option)} | ${option.describe}${choices}${repeat} |`;
}

/** As it is written by whoever wants something else than the default. */
function writeOption({ kind, name, placeholder, default: standard }: OptionSpec): string {
  if (kind !== 'flag') return `--${name} <${placeholder}>`;
  return standard === 'true' ? `--no-${name}` : `--${name}`;
}

function writeDefault({ kind, default: standard, defaultNote }: OptionSpec): string {
  if (kind === 'flag') return standard === 'true' ? 'on' : 'off';
  return standard === undefined ? (defaultNote ?? '–') : `\`${standard}\``;
}
