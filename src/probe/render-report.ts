import { stripVTControlCharacters } from 'node:util';
import picocolors from 'picocolors';
import { toPrintable } from '../printable.ts';
import {
  type ClientAdvice,
  type ClientKind,
  type ItemCount,
  type Offer,
  type ProbeReport,
  TRANSPORT_NAMES,
} from './report.ts';

export interface RenderOptions extends PaintOptions {
  /** Columns of the terminal. */
  readonly width: number;
}

/** Longer texts from a server are cut. */
const MAX_SHOWN_LENGTH = 300;

const LOGIN = 'a login, with --login on-demand';
const WHERE = 'in MCP_PORTAGE_BEARER_TOKEN or --bearer-token-file';

/** Renders the report for people. Ends with a newline. */
export function renderReport(report: ProbeReport, { color, width }: RenderOptions): string {
  const painter = new Painter({ color }, width);
  const { target, tookMs, problems, offers, authorization, clients, steps } = report;
  painter.line(painter.bold(toPrintable(target.name, MAX_SHOWN_LENGTH)));
  painter.line(`${paintVerdict(painter, report)}${painter.dim(` after ${formatMs(tookMs)}`)}`);

  if (problems.length > 0) painter.heading('Problems');
  for (const problem of problems) painter.item(painter.yellow('!'), toPrintable(problem, 4 * MAX_SHOWN_LENGTH));

  if (authorization !== undefined) {
    const { status, scheme, resourceMetadata, authorizationServers, scopes } = authorization;
    const wasRefused = authorization.token === 'refused';
    const token = `${wasRefused ? 'another' : 'a'} token, ${WHERE}`;
    painter.heading('Authorization');
    painter.columns([
      [wasRefused ? 'refused' : 'required', `${status}${scheme === undefined ? '' : `, ${toPrintable(scheme, 40)}`}`],
      ['metadata', resourceMetadata === undefined ? 'none found' : toPrintable(resourceMetadata, MAX_SHOWN_LENGTH)],
      ...(authorizationServers.length > 0 ? [['servers', showList(authorizationServers)] as Column] : []),
      ...(scopes.length > 0 ? [['scopes', showList(scopes)] as Column] : []),
      ['way in', authorizationServers.length > 0 ? `${LOGIN}, or ${token}` : token],
    ]);
  }

  if (offers.length > 0) painter.heading('What it speaks');
  for (const offer of offers) renderOffer(painter, offer);

  if (clients.some(({ way }) => way !== 'none')) {
    painter.heading('Who can use it');
    painter.columns(
      clients.map((advice): Column => [CLIENT_NAMES[advice.client], describeWay(painter, advice), 'whole']),
    );
  }

  if (steps.length > 0) painter.heading('What was asked');
  painter.columns(
    steps.map(
      (step): Column => [
        `${formatMs(step.tookMs).padStart(8)}  ${step.request}`,
        painter.dim(toPrintable(step.saw, MAX_SHOWN_LENGTH)),
      ],
    ),
  );
  return painter.text;
}

function showList(names: readonly string[]): string {
  return names.map((name) => toPrintable(name, MAX_SHOWN_LENGTH)).join(', ');
}

export function paintVerdict(
  painter: Painter,
  { verdict, authorization }: Pick<ProbeReport, 'verdict' | 'authorization'>,
): string {
  switch (verdict) {
    case 'usable':
      return painter.green('usable');
    case 'partly-usable':
      return painter.yellow('usable, with problems');
    case 'unauthorized':
      if (authorization?.token !== 'refused') return painter.yellow('needs authorization');
      return painter.yellow(
        authorization.status === 403 ? 'gives no access with this token' : 'refuses the token it was given',
      );
    case 'unusable':
      return painter.red('not usable');
  }
}

function renderOffer(painter: Painter, offer: Offer): void {
  const name = `${TRANSPORT_NAMES[offer.transport]}, ${offer.era}`;
  if (!offer.works) {
    const saw = toPrintable(offer.saw, MAX_SHOWN_LENGTH);
    return painter.columns([[name, `${painter.red('no')}   ${painter.dim(saw)}`]]);
  }
  const { revision, session, serverStream, serverInfo, capabilities } = offer;
  const traits = [
    revision === undefined ? undefined : `revision ${toPrintable(revision, 40)}`,
    session === 'session' ? 'with session' : session,
    serverStream === undefined ? undefined : STREAM_WORDS[serverStream],
  ];
  const facts = [
    traits.filter((trait) => trait !== undefined).join(', '),
    serverInfo === undefined ? '' : toPrintable(`${serverInfo.name} ${serverInfo.version}`, MAX_SHOWN_LENGTH),
    describeCounts(offer),
    capabilities.length === 0 ? '' : `declares ${toPrintable(capabilities.join(', '), MAX_SHOWN_LENGTH)}`,
  ].filter((fact) => fact !== '');
  painter.columns(
    facts.map(
      (fact, index): Column => (index === 0 ? [name, `${painter.green('yes')}  ${fact}`] : ['', `     ${fact}`]),
    ),
  );
}

const STREAM_WORDS: Readonly<Record<NonNullable<Offer['serverStream']>, string>> = {
  offered: 'stream by GET',
  'not-offered': 'no stream by GET',
  failing: 'stream by GET fails',
};

function describeCounts(offer: Offer): string {
  return [
    describeCount(offer.tools, 'tool'),
    describeCount(offer.resources, 'resource'),
    describeCount(offer.resourceTemplates, 'resource template'),
    describeCount(offer.prompts, 'prompt'),
  ]
    .filter((text) => text !== undefined)
    .join(', ');
}

function describeCount(count: ItemCount, name: string): string | undefined {
  switch (count.state) {
    case 'counted':
      return `${count.count}${count.isComplete ? '' : '+'} ${name}${count.count === 1 ? '' : 's'}`;
    case 'failed':
      return `${name}s: failed`;
    case 'not-asked':
      return `${name}s: not asked`;
    case 'not-declared':
      return undefined;
  }
}

const CLIENT_NAMES: Readonly<Record<ClientKind, string>> = {
  'stdio-legacy': 'stdio clients, legacy',
  'http-sse': 'HTTP+SSE clients',
  'streamable-http-legacy': 'Streamable HTTP clients, legacy',
  'streamable-http-modern': 'Streamable HTTP clients, modern',
  'stdio-modern': 'stdio clients, modern',
};

function describeWay(painter: Painter, { way, command }: ClientAdvice): string {
  switch (way) {
    case 'direct':
      return painter.green('directly');
    case 'portage':
      return `with  ${painter.bold(command ?? '')}`;
    case 'none':
      return painter.dim('no way');
  }
}

export function formatMs(ms: number): string {
  return ms < 10 ? `${ms.toFixed(1)} ms` : ms < 10_000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 1000)} s`;
}

type Paint = (text: string) => string;

export interface PaintOptions {
  readonly color: boolean;
}

/**
 * A row of two cells. The widest first cell decides where the second column starts. `whole` keeps the second cell on
 * one line at any length, so that it can be copied.
 */
export type Column = readonly [left: string, right: string, wrapping?: 'whole'];

const INDENT = 2;
const GAP = 2;
/** If less width is left for the second column, it is printed below the first. */
const MIN_RIGHT_WIDTH = 24;
/** Minimum width of the left column, so that the tables line up. */
const MIN_LEFT_WIDTH = 24;

/** Composes text for a terminal: colors, aligns and wraps. */
export class Painter {
  readonly #width: number;
  #lines: string[] = [];

  constructor({ color }: PaintOptions, width: number) {
    const { bold, dim, red, green, yellow } = picocolors.createColors(color);
    this.bold = paintText(bold);
    this.dim = paintText(dim);
    this.red = paintText(red);
    this.green = paintText(green);
    this.yellow = paintText(yellow);
    this.#width = Math.max(width, 2 * MIN_RIGHT_WIDTH);
  }

  get text(): string {
    return `${this.#lines.map((line) => line.trimEnd()).join('\n')}\n`;
  }

  readonly bold: Paint;
  readonly dim: Paint;
  readonly red: Paint;
  readonly green: Paint;
  readonly yellow: Paint;

  line(text: string): void {
    this.#lines.push(...wrap(text, this.#width, 0));
  }

  heading(text: string): void {
    this.#lines.push('', this.bold(text));
  }

  /** Adds a paragraph with a mark in front. */
  item(mark: string, text: string): void {
    const indent = INDENT + visibleLength(mark) + 1;
    const [first = '', ...rest] = wrap(text, this.#width - indent, 0);
    this.#lines.push(`${' '.repeat(INDENT)}${mark} ${first}`, ...rest.map((line) => `${' '.repeat(indent)}${line}`));
  }

  /** Adds a text after a prefix; its further lines are indented to the same column. */
  hanging(before: string, text: string, start: number): void {
    const [first = '', ...rest] = wrap(text, this.#width - start, 0);
    this.#lines.push(before + first, ...rest.map((line) => ' '.repeat(start) + line));
  }

  columns(rows: readonly Column[]): void {
    const widest = Math.max(MIN_LEFT_WIDTH, ...rows.map(([left]) => visibleLength(left)));
    const start = INDENT + widest + GAP;
    const isNarrow = this.#width - start < MIN_RIGHT_WIDTH;
    for (const [left, right, wrapping] of rows) {
      const indent = isNarrow ? 2 * INDENT : start;
      const width = wrapping === 'whole' ? Infinity : this.#width - indent;
      const [first = '', ...rest] = wrap(right, width, leadingSpaces(right));
      const head = ' '.repeat(INDENT) + left;
      if (isNarrow && left !== '') this.#lines.push(head, ' '.repeat(indent) + first);
      else
        this.#lines.push(
          isNarrow ? ' '.repeat(indent) + first : head.padEnd(start + head.length - visibleLength(head)) + first,
        );
      for (const line of rest) this.#lines.push(' '.repeat(indent) + line);
    }
  }
}

function leadingSpaces(text: string): number {
  return text.length - text.trimStart().length;
}

/** Leaves empty text empty, because escape sequences alone would count as content of a line. */
function paintText(paint: Paint): Paint {
  return (text) => (text === '' ? '' : paint(text));
}

export function visibleLength(text: string): number {
  return stripVTControlCharacters(text).length;
}

/** Wraps at spaces. A word longer than a line, such as a URL, is not broken, so that it can be copied. */
function wrap(text: string, width: number, hanging: number): string[] {
  const lines: string[] = [];
  let line = '';
  // Runs of several spaces are alignment and are kept.
  for (const word of text.split(/(?<=\S) (?=\S)/)) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && visibleLength(longer) > width) {
      lines.push(line);
      line = ' '.repeat(hanging) + word;
    } else {
      line = longer;
    }
  }
  lines.push(line);
  return lines;
}
