import { OPTION_GROUPS, OPTIONS, type OptionSpec } from '../src/cli/option-table.ts';
import { envNameOf, VARIABLES } from '../src/cli/options.ts';

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
  const written = option.kind === 'flag' ? `--${option.name}` : `--${option.name} <${option.placeholder}>`;
  const standard =
    option.kind === 'flag' ? 'off' : option.default === undefined ? option.defaultNote : `\`${option.default}\``;
  const choices = option.choices === undefined ? '' : `: ${option.choices.map((choice) => `\`${choice}\``).join(', ')}`;
  const repeat = option.kind === 'list' ? ' (repeatable)' : '';
  return `| \`${written}\`<br>\`${envNameOf(option.name)}\` | ${standard ?? '–'} | ${option.describe}${choices}${repeat} |`;
}
