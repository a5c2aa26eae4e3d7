/** The manual page, from the tables of commands and options. */
import { COMMANDS, OF_VALUES, OTHER_USAGE, type Row } from '../src/cli/help/commands.ts';
import { describeOption, writeOption } from '../src/cli/help/help.ts';
import { wrap } from '../src/cli/help/text-table.ts';
import { OPTION_GROUPS, OPTIONS, type Option, VARIABLES, writeVariable } from '../src/cli/options/option-table.ts';
import { VERSION } from '../src/version.ts';

const EXIT_STATUS: readonly Row[] = [
  { left: '0', right: 'Ended by a signal, or at the end of input (connect); for probe and report: yes.' },
  { left: '2', right: 'An option, a word or a configuration file is wrong.' },
  { left: '69', right: 'The port or the server is not available.' },
  { left: '70', right: 'A failure of the server or of mcp-portage.' },
  { left: '75', right: 'report: HTTP+SSE cannot go yet, or it is too early to say.' },
  { left: '77', right: 'The server refused the credentials, or wants some.' },
];

/** In the macros of man(7), which every man program reads. */
export function renderManPage(): string {
  const lines = [
    '.\\" Made by `npm run docs`, do not edit.',
    `.TH MCP-PORTAGE 1 "" "mcp-portage ${VERSION}" "User Commands"`,
    '.SH NAME',
    'mcp\\-portage \\- join any MCP client to any MCP server',
    '.SH SYNOPSIS',
    ...COMMANDS.flatMap(({ usage }) => usage).flatMap(({ left }, index) => [
      ...(index === 0 ? [] : ['.br']),
      bold(left),
    ]),
    '.SH DESCRIPTION',
    plain(
      'mcp-portage joins clients and servers of the Model Context Protocol (MCP) whatever transport they use (stdio, HTTP+SSE or Streamable HTTP) and whichever revision of the protocol they speak, from 2024-11-05 to 2026-07-28.',
    ),
    '.PP',
    plain('What follows "--" is the command of a server and is passed on as it is.'),
    '.SH COMMANDS',
    ...COMMANDS.flatMap(({ verb, about }) => ['.TP', bold(verb), plain(`${capitalize(about)}.`)]),
    ...OTHER_USAGE.flatMap(({ left, right }) => [
      '.TP',
      bold(left.replace('mcp-portage ', '')),
      plain(`${capitalize(right)}.`),
    ]),
    '.SH OPTIONS',
    plain('Each option is followed by the variable that sets it in the environment. The command line wins.'),
    ...Object.entries(OPTION_GROUPS).flatMap(([group, { title }]) => [
      `.SS ${escapeRoff(title)}`,
      ...OPTIONS.filter((option) => option.group === group).flatMap(renderOption),
      ...VARIABLES.filter((variable) => variable.group === group).flatMap(({ name, note }) => [
        '.TP',
        bold(name),
        plain(`${note}.`),
      ]),
    ]),
    '.SS Other',
    ...['-h, --help', '-v, --version'].flatMap((left, index) => [
      '.TP',
      bold(left),
      index === 0 ? 'Show help on what most people need, or on a command.' : 'Show the version.',
    ]),
    '.SH ENVIRONMENT',
    plain(OF_VALUES),
    '.PP',
    plain('NO_COLOR switches colors off, FORCE_COLOR switches them on where the output is no terminal.'),
    '.SH EXIT STATUS',
    ...EXIT_STATUS.flatMap(({ left, right }) => ['.TP', bold(left), plain(right)]),
    '.SH EXAMPLES',
    ...COMMANDS.flatMap(({ examples }) => examples).flatMap(({ left, right }) => [
      '.TP',
      bold(left),
      plain(`${capitalize(right)}.`),
    ]),
  ];
  return `${lines.join('\n')}\n`;
}

function renderOption(option: Option): readonly string[] {
  const text = plain(`${describeOption(option)}.`);
  return ['.TP', bold(writeOption(option)), text, '.br', plain(writeVariable(option))];
}

function bold(text: string): string {
  return `.B ${escapeRoff(text)}`;
}

/** Lines of the source are short, as programs that check pages want them. */
const SOURCE_WIDTH = 72;

function plain(text: string): string {
  return wrap(text, SOURCE_WIDTH).map(escapeRoff).join('\n');
}

/** As it stands, hyphens included, so that options can be copied. A line never begins like a macro. */
function escapeRoff(text: string): string {
  const escaped = text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll('"', '\\(dq').replaceAll("'", '\\(aq');
  return /^[.']/.test(escaped) ? `\\&${escaped}` : escaped;
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
