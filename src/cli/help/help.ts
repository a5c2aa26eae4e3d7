/** Renders --help from the tables of commands and options. */
import picocolors from 'picocolors';
import type { ErrorCode } from '../../errors.ts';
import { type BridgeVerb, OPTION_GROUPS, OPTIONS, type Option, optionOf, VARIABLES } from '../options/option-table.ts';
import {
  COMMANDS,
  COMMON_OPTIONS,
  type Command,
  FIVE_TASKS,
  MORE_COMMANDS,
  OF_VALUES,
  OTHER_OPTIONS,
  OTHER_USAGE,
  type Row,
  SUMMARY,
} from './commands.ts';
import { explainError } from './error-help.ts';
import { indentOf, type Layout, renderTable, type Style, type Table, wrap } from './text-table.ts';
import { GROUP_TOPICS, type HelpTopic } from './topic.ts';

const MIN_WIDTH = 60;
const MAX_WIDTH = 110;
/** The few lines of the overview and the paragraphs on an error would be harder to read at a greater width. */
const MAX_TEXT_WIDTH = 80;

export interface HelpRequest {
  readonly topic: HelpTopic;
  /** The width of the terminal. */
  readonly columns: number;
  readonly color: boolean;
}

export function renderHelp({ topic, columns, color }: HelpRequest): string {
  const width = Math.max(MIN_WIDTH, Math.min(columns, MAX_WIDTH));
  const page = { width, style: styleOf(color) };
  switch (topic.kind) {
    case 'overview':
      return textOf(renderOverview({ ...page, width: Math.min(width, MAX_TEXT_WIDTH) }));
    case 'all':
      return textOf(renderEverything(page));
    case 'verb':
      return textOf(
        COMMANDS.filter(({ verb }) => verb === topic.verb).flatMap((command) => renderCommand(command, page)),
      );
    case 'groups':
      return textOf(renderGroups(page));
    case 'group':
      return textOf(renderGroup(topic, page));
    case 'error':
      return textOf(renderError(topic.code, page));
  }
}

type Page = Omit<Layout, 'indent'>;

function textOf(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`;
}

function styleOf(color: boolean): Style {
  const { bold, cyan } = picocolors.createColors(color);
  return { title: bold, left: cyan };
}

function renderOverview(page: Page): readonly string[] {
  const options = COMMON_OPTIONS.map(({ name, brief }) => ({ left: writeOption(optionOf(name)), right: brief }));
  const help = [
    { left: 'mcp-portage help <command>', right: 'Show a command and its most used options' },
    { left: 'mcp-portage help groups|all', right: 'List the groups of options, or show all' },
    { left: 'mcp-portage help <ERR_...>', right: 'Explain an error' },
  ];
  const indent = indentOf([...FIVE_TASKS, ...help, ...options]);
  return [
    ...wrap(SUMMARY, page.width),
    '',
    ...renderTable({ title: 'Usage', rows: FIVE_TASKS }, { ...page, indent }),
    '',
    ...renderTable({ title: 'Common options', rows: options }, { ...page, indent }),
    '',
    ...renderTable({ title: 'More commands', rows: MORE_COMMANDS }, { ...page, indent: indentOf(MORE_COMMANDS) }),
    '',
    ...renderTable({ title: 'Help', rows: help }, { ...page, indent }),
  ];
}

function renderEverything(page: Page): readonly string[] {
  const usage = [...COMMANDS.flatMap((each) => each.usage), ...OTHER_USAGE];
  const groups = Object.entries(OPTION_GROUPS).map(([group, { title }]) => ({ title, rows: rowsOf(group, undefined) }));
  return [
    ...wrap(SUMMARY, page.width),
    '',
    ...renderTable({ title: 'Usage', rows: usage }, { ...page, indent: indentOf(usage) }),
    ...renderOptions([...groups, { title: 'Other', rows: OTHER_OPTIONS }], page),
    '',
    ...renderExamples(
      COMMANDS.flatMap((each) => each.examples),
      page,
    ),
    ...wrap(OF_VALUES, page.width),
  ];
}

/** Renders the options that most users of the command need; its other options are a matter of groups. */
function renderCommand({ verb, about, usage, own, examples }: Command, page: Page): readonly string[] {
  const groups = GROUP_TOPICS.filter((group) =>
    OPTIONS.some((option) => option.group === group && option.verbs.includes(verb) && !own.includes(option.name)),
  );
  return [
    ...wrap(`mcp-portage ${verb}: ${about}.`, page.width),
    '',
    ...renderTable({ title: 'Usage', rows: usage }, { ...page, indent: indentOf(usage) }),
    ...renderOptions([{ title: 'Options', rows: own.map((name) => rowOf(optionOf(name))) }], page),
    '',
    ...renderExamples(examples, page),
    page.style.title('More options'),
    ...wrap(`mcp-portage help ${verb} <group>, for ${groups.join(', ')}`, page.width - 2).map((line) => `  ${line}`),
  ];
}

function renderExamples(examples: readonly Row[], page: Page): readonly string[] {
  if (examples.length === 0) return [];
  return [...renderTable({ title: 'Examples', rows: examples }, { ...page, indent: EXAMPLE_INDENT }), ''];
}

function renderGroups(page: Page): readonly string[] {
  const rows = GROUP_TOPICS.map((group) => ({ left: group, right: OPTION_GROUPS[group].title }));
  return [
    ...renderTable(
      { title: 'Groups of options, shown by mcp-portage help <group>', rows },
      { ...page, indent: indentOf(rows) },
    ),
    '',
    ...wrap(OF_VALUES, page.width),
  ];
}

function renderGroup({ group, verb }: Extract<HelpTopic, { kind: 'group' }>, page: Page): readonly string[] {
  const rows = rowsOf(group, verb);
  if (rows.length === 0) return wrap(`mcp-portage ${verb} takes no options of the group ${group}.`, page.width);
  const [, ...lines] = renderOptions([{ title: OPTION_GROUPS[group].title, rows }], page);
  return [...lines, '', ...wrap(OF_VALUES, page.width)];
}

function renderError(code: ErrorCode, { width, style }: Page): readonly string[] {
  const [title = '', ...lines] = explainError(code, Math.min(width, MAX_TEXT_WIDTH));
  return [style.title(title), ...lines];
}

/** Renders tables of options, with all right columns aligned. */
function renderOptions(tables: readonly Table[], page: Page): readonly string[] {
  const layout = { ...page, indent: indentOf(tables.flatMap(({ rows }) => rows)) };
  return tables.flatMap((table) => ['', ...renderTable(table, layout)]);
}

/** Longer examples have a line to themselves. */
const EXAMPLE_INDENT = 62;

function rowsOf(group: string, verb: BridgeVerb | undefined): readonly Row[] {
  const options = OPTIONS.filter(
    (option) => option.group === group && (verb === undefined || option.verbs.includes(verb)),
  );
  const variables = VARIABLES.filter(
    (variable) => variable.group === group && (verb === undefined || variable.verbs.includes(verb)),
  );
  return [...options.map(rowOf), ...variables.map(({ name, note }) => ({ left: name, right: note }))];
}

function rowOf(option: Option): Row {
  return { left: writeOption(option), right: describeOption(option) };
}

export function writeOption({ kind, offered, type, bare }: Option): string {
  if (bare !== undefined) return `${offered}[=<${type.placeholder}>]`;
  return kind === 'flag' ? offered : `${offered} <${type.placeholder}>`;
}

/** Returns the description with the choices and the default. */
export function describeOption(option: Option): string {
  const notes = [
    option.type.choices === undefined ? '' : `: ${option.type.choices.join(', ')}`,
    option.kind === 'list' ? ' (repeatable)' : '',
    option.kind !== 'flag' && hasDefault(option) ? ` [${option.default ?? option.defaultNote}]` : '',
  ];
  return option.effect + notes.join('');
}

function hasDefault(option: Option): boolean {
  return option.default !== undefined || option.defaultNote !== undefined;
}
