import { OPTION_GROUPS, OPTIONS, type OptionSpec } from '../src/cli/option-table.ts';
import { envNameOf } from '../src/cli/options.ts';

const BEGIN = '<!-- options: made by `npm run docs`, do not edit -->';
const END = '<!-- end of options -->';

/** Puts the table of all options where the markers are. Throws when they are missing. */
export function withOptionsTable(readme: string): string {
  const begin = readme.indexOf(BEGIN);
  const end = readme.indexOf(END);
  if (begin === -1 || end < begin) throw new Error(`the markers ${BEGIN} and ${END} are missing`);
  return `${readme.slice(0, begin + BEGIN.length)}\n\n${renderOptionsTable()}\n${readme.slice(end)}`;
}

function renderOptionsTable(): string {
  const rows = Object.entries(OPTION_GROUPS).flatMap(([group, title]) => [
    `| **${title}** | | |`,
    ...OPTIONS.filter((option: OptionSpec) => option.group === group).map(renderRow),
  ]);
  return `${['| Option | Default | What it does |', '|---|---|---|', ...rows].join('\n')}\n`;
}

function renderRow(option: OptionSpec): string {
  const written = option.kind === 'flag' ? `--${option.name}` : `--${option.name} <${option.placeholder}>`;
  const standard =
    option.kind === 'flag' ? 'off' : option.default === undefined ? option.defaultNote : `\`${option.default}\``;
  const choices = option.choices === undefined ? '' : `: ${option.choices.map((choice) => `\`${choice}\``).join(', ')}`;
  const repeat = option.kind === 'list' ? ' (repeatable)' : '';
  return `| \`${written}\`<br>\`${envNameOf(option.name)}\` | ${standard ?? '–'} | ${option.describe}${choices}${repeat} |`;
}
