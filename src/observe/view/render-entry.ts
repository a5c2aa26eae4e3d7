/** Shows the entries of a recording as lines of a terminal. Everything in them may come from hostile peers. */

import { assertNever } from '../../errors.ts';
import { escapeHidden, printableLine } from '../../printable.ts';
import { type MessageFacts, parseRecordedLine, type RecordedMessage } from '../../recording/recorded-message.ts';
import { findMember } from '../../wire/json/outline.ts';
import { time, timeOfDay } from '../top/columns.ts';
import { cut, fill, type Line, paintLine, type Segment, segment, type Tone, widthOf } from '../top/text-layout.ts';
import type { CallEntry, CallOutcome, Entry, Exchange } from './pair-calls.ts';
import { prettyJson } from './pretty-json.ts';

/** Where lines are shown. */
export interface Look {
  readonly columns: number;
  readonly color: boolean;
}

/** A row's texts, one for each column. */
interface Row {
  readonly time: string;
  /** Whom a message went from and to; undefined: the same as in the row above. */
  readonly peers: readonly [from: string, to: string] | undefined;
  readonly call: Segment;
  readonly outcome: Segment;
  readonly took: string;
  readonly sizes: string;
}

const GAP = '  ';
/** Widths at 80 columns and below; wider terminals give the rest to the names. */
const WIDTHS = { time: 8, peers: 20, call: 17, outcome: 12, took: 6, sizes: 9 };
const MIN_COLUMNS = 80;
/** Names are rarely longer, and outcomes and sizes should stand near them. */
const MAX_SPARE = 48;

export function renderHeader(look: Look): string {
  const titles: Row = {
    time: 'TIME',
    peers: ['CLIENT', 'SERVER'],
    call: segment('CALL', 'quiet'),
    outcome: segment('OUTCOME', 'quiet'),
    took: 'TOOK',
    sizes: 'SIZES',
  };
  return `${renderRow(titles, look)}\n`;
}

/** Returns the lines of an entry, each with its line break: the call, and then the questions in it. */
export function renderEntry(entry: Entry, look: Look): string {
  const rows = [rowOf(entry), ...(entry.kind === 'call' ? entry.questions.map(questionRow) : [])];
  return rows.map((row) => `${renderRow(row, look)}\n`).join('');
}

/** Returns the lines of an entry and all of its messages. */
export function renderFull(entry: Entry, look: Look): string {
  const messages = entry.lines.map((line) => renderMessage(line, look));
  const { leftOut } = entry;
  const missing =
    leftOut === 0 ? '' : `${paint([segment(`  ${leftOut} more messages were not kept.`, 'quiet')], look)}\n`;
  return `${renderEntry(entry, look)}${messages.join('')}${missing}\n`;
}

function renderMessage(line: string, look: Look): string {
  const recorded = parseRecordedLine(line);
  if ('damage' in recorded) return '';
  const bytes = Buffer.from(line);
  const span = findMember(bytes, 0, 'message');
  const json = span === undefined ? '' : prettyJson(bytes.subarray(span.start, span.end));
  const indented = escapeHidden(json).replaceAll('\n', `\n${MESSAGE_INDENT}`);
  return `${paint(labelOf(recorded), look)}\n${MESSAGE_INDENT}${indented}\n`;
}

const MESSAGE_INDENT = '    ';

function labelOf(recorded: RecordedMessage): Line {
  const { at, era, carrier, session, bytes, hidden, cut: isCut } = recorded;
  const [from, to] = endsOf(recorded);
  const facts = [
    timeWithMs(Date.parse(at)),
    `${era} era`,
    carrier,
    ...(session === undefined ? [] : [session]),
    `${bytes} bytes`,
    ...(hidden === undefined ? [] : [`${hidden} hidden`]),
    ...(isCut === true ? ['cut'] : []),
  ];
  return [segment(`  ${from} → ${to}`, 'strong'), segment(`  ${tame(facts.join(', '))}`, 'quiet')];
}

/** Returns the two ends between which a message went. */
function endsOf({ side, direction }: Pick<MessageFacts, 'side' | 'direction'>): readonly [string, string] {
  return direction === 'in' ? [side, 'bridge'] : ['bridge', side];
}

function rowOf(entry: Entry): Row {
  const { kind } = entry;
  switch (kind) {
    case 'call':
      return callRow(entry);
    case 'notification':
      return {
        time: timeOfDay(entry.atMs),
        peers: peersOf(entry, entry),
        call: segment(entry.method, 'quiet'),
        outcome: segment('notification', 'quiet'),
        took: '',
        sizes: size(entry.bytes),
      };
    case 'answer':
      return {
        time: timeOfDay(entry.atMs),
        peers: peersOf(entry, entry),
        call: segment(entry.call === undefined ? 'answer, unpaired' : 'late answer', 'quiet'),
        outcome: outcomeSegment(entry.outcome),
        took: '',
        sizes: `→${size(entry.bytes)}`,
      };
    default:
      return assertNever(kind);
  }
}

function callRow(entry: CallEntry): Row {
  const { request, outcome, durationMs } = entry;
  return {
    time: timeOfDay(request.atMs),
    peers: peersOf(entry, request),
    call: segment(nameOf(request)),
    outcome: outcomeSegment(outcome),
    took: durationMs === undefined ? '' : duration(durationMs),
    sizes: sizesOf(request),
  };
}

function questionRow(asked: Exchange): Row {
  const { answer } = asked;
  const outcome = answer?.outcome ?? { kind: 'unanswered' };
  return {
    time: timeOfDay(asked.atMs),
    peers: undefined,
    call: segment(`↳ ${asked.method}`, 'quiet'),
    outcome: outcomeSegment(outcome),
    took: answer === undefined ? '' : duration(Math.max(0, answer.atMs - asked.atMs)),
    sizes: sizesOf(asked),
  };
}

function nameOf({ method, subject }: Pick<Exchange, 'method' | 'subject'>): string {
  if (subject === undefined) return method;
  // The name of a tool says more than the method, which may be cut.
  return /^(?:tools|prompts)\//.test(method) ? `${subject} ${method}` : `${method} ${subject}`;
}

/** A call of a client goes to the server; everything else at one side goes to the bridge, or comes from there. */
function peersOf(
  { client = '–', server, call }: Entry,
  { side, direction }: Pick<MessageFacts, 'side' | 'direction'>,
): Row['peers'] {
  const peer = side === 'client' ? client : server;
  if (side === 'client' && direction === 'in' && call !== undefined) return [client, server];
  return direction === 'in' ? [peer, 'bridge'] : ['bridge', peer];
}

/** Cuts the longer name first, so that both can be told apart from others. */
function fitPeers([from, to]: readonly [string, string], width: number): string {
  const [first, second] = [tame(from), tame(to)];
  const room = width - ARROW.length;
  const half = Math.floor(room / 2);
  const shortened = cut(first, Math.max(half, room - widthOf(second)));
  return `${shortened}${ARROW}${cut(second, room - widthOf(shortened))}`;
}

const ARROW = ' → ';

function outcomeSegment(outcome: CallOutcome): Segment {
  const { kind } = outcome;
  switch (kind) {
    case 'error':
      return segment(outcome.code === undefined ? 'error' : `error ${outcome.code}`, 'bad');
    case 'tool-error':
      return segment('tool-error', 'warn');
    case 'unanswered':
      return segment('unanswered', 'warn');
    case 'input-required':
      return segment('asks', 'quiet');
    case 'canceled':
      return segment('canceled', 'quiet');
    case 'answered':
      return segment('answered', 'good');
    default:
      return assertNever(kind);
  }
}

function sizesOf({ bytes, answer }: Exchange): string {
  return answer === undefined ? size(bytes) : `${size(bytes)}→${size(answer.bytes)}`;
}

/** Returns a duration in at most six characters, with tenths of a second. */
function duration(ms: number): string {
  return ms >= 1000 && ms < 59_950 ? `${(ms / 1000).toFixed(1)} s` : time(ms);
}

/** Returns a size in at most four characters. */
export function size(bytes: number): string {
  if (bytes < 1000) return String(bytes);
  const [value, unit] =
    bytes < 999_500 ? [bytes / 1000, 'k'] : bytes < 999_500_000 ? [bytes / 1e6, 'M'] : [bytes / 1e9, 'G'];
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)}${unit}`;
}

function timeWithMs(atMs: number): string {
  return `${timeOfDay(atMs)}.${String(new Date(atMs).getMilliseconds()).padStart(3, '0')}`;
}

function renderRow({ time: at, peers, call, outcome, took, sizes }: Row, look: Look): string {
  const spare = Math.min(MAX_SPARE, Math.max(0, look.columns - MIN_COLUMNS));
  const peersWidth = WIDTHS.peers + Math.ceil(spare / 2);
  const left = (text: string, width: number): string => fill(tame(text), width, 'left') + GAP;
  return paint(
    [
      segment(left(at, WIDTHS.time), 'quiet'),
      segment(left(peers === undefined ? '' : fitPeers(peers, peersWidth), peersWidth)),
      segment(left(call.text, WIDTHS.call + Math.floor(spare / 2)), call.tone),
      segment(`${fill(tame(outcome.text), WIDTHS.outcome, 'left')} `, outcome.tone),
      segment(`${fill(took, WIDTHS.took, 'right')} `, toneOfTime(took)),
      segment(fill(sizes, WIDTHS.sizes, 'right'), 'quiet'),
    ],
    look,
  );
}

function toneOfTime(took: string): Tone {
  return took === 'TOOK' ? 'quiet' : 'plain';
}

function paint(line: Line, { columns, color }: Look): string {
  return paintLine(line, columns, color);
}

/** Marks that combine with the character before them have no width, so a few of them pass and a tower of them does not. */
function tame(text: string): string {
  return printableLine(text).replace(/(\p{M}{3})\p{M}+/gu, '$1');
}
