import { writeOption } from '../src/cli/help/help.ts';
import { OPTION_GROUPS, OPTIONS, type Option, VARIABLES, writeVariable } from '../src/cli/options/option-table.ts';

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
  return `| ${writeSpellings(option)} | ${writeDefault(option)} | ${option.effect}${choices}${repeat} |`;
}

/** Returns how the option is written on the command line and in the environment, and for a flag also in a file. */
function writeSpellings(option: Option): string {
  const inFile =
    option.kind === 'flag' && option.scope !== 'call' ? [`"${option.name}": ${option.default !== 'true'}`] : [];
  return [writeOption(option), writeVariable(option), ...inFile].map((spelling) => `\`${spelling}\``).join('<br>');
}

function writeDefault({ kind, default: standard, defaultNote }: Option): string {
  if (kind === 'flag') return standard === 'true' ? 'on' : 'off';
  return standard === undefined ? (defaultNote ?? '–') : `\`${standard}\``;
}
