import { OPTION_GROUPS, OPTIONS, type Option, VARIABLES } from '../src/cli/options/option-table.ts';

/** All options as a table in Markdown. */
export function renderOptionsTable(): string {
  const rows = Object.entries(OPTION_GROUPS).flatMap(([group, { title }]) => [
    `| **${title}** | | |`,
    ...OPTIONS.filter((option) => option.group === group).map(renderRow),
    ...VARIABLES.filter((variable) => variable.group === group).map(
      ({ name, note }) => `| \`${name}\` | – | ${note} |`,
    ),
  ]);
  return ['| Option | Default | What it does |', '|---|---|---|', ...rows].join('\n');
}

function renderRow(option: Option): string {
  const choices =
    option.type.choices === undefined ? '' : `: ${option.type.choices.map((choice) => `\`${choice}\``).join(', ')}`;
  const repeat = option.kind === 'list' ? ' (repeatable)' : '';
  return `| \`${writeOption(option)}\`<br>\`${option.variable}\` | ${writeDefault(option)} | ${option.describe}${choices}${repeat} |`;
}

/** As it is written by whoever wants something else than the default. */
function writeOption({ kind, flag, type, default: standard }: Option): string {
  if (kind !== 'flag') return `${flag} <${type.placeholder}>`;
  return standard === 'true' ? flag.replace('--', '--no-') : flag;
}

function writeDefault({ kind, default: standard, defaultNote }: Option): string {
  if (kind === 'flag') return standard === 'true' ? 'on' : 'off';
  return standard === undefined ? (defaultNote ?? '–') : `\`${standard}\``;
}
