import { type IncomingMessage, validateHeaderValue } from 'node:http';
import fc from 'fast-check';
import { forwardedHeaders } from '../../../src/http/headers.ts';
import { checkParamHeaders, type ParamHeader, paramHeadersFor } from '../../../src/mcp/classify/param-headers.ts';
import { checkStandardHeaders, standardHeaders } from '../../../src/mcp/classify/route-era.ts';
import {
  decodeHeaderValue,
  encodeHeaderValue,
  findHeaderFault,
  type HeaderLine,
  type HeaderMap,
  INEXPRESSIBLE,
} from '../../../src/mcp/vocabulary/headers.ts';
import type { Frame } from '../../../src/wire/frame.ts';
import { clientFrame } from '../../support/frames.ts';
import { anyText, JsonPrinter } from '../../wire/json-text.ts';
import { anySeed, havoc } from '../havoc.ts';
import { fuzzTarget, insist } from '../target.ts';

const REVISION = '2026-07-28';
const NAMED: readonly (readonly [method: string, member: string])[] = [
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  ['vendor/x', 'other'],
];
const ANNOTATIONS: readonly ParamHeader[] = [
  { name: 'Text', path: ['text'], type: 'string' },
  { name: 'Count', path: ['count'], type: 'integer' },
  { name: 'Flag', path: ['flag'], type: 'boolean' },
  { name: 'Inner', path: ['inner', 'text'], type: 'string' },
];

const halves = fc.constantFrom('\ud800', 'a\udc00b', '\udc00\ud800');
const name = fc.oneof({ weight: 9, arbitrary: anyText }, { weight: 1, arbitrary: halves });
const text = fc.oneof(name, fc.constantFrom(null, '=?base64?=', 'a\r\nX: 1', ' x '));
/** Of the types the annotations name: what is of another type the server refuses in its own words. */
const args = fc.record(
  { text, count: fc.maxSafeInteger(), flag: fc.boolean(), inner: fc.record({ text }) },
  { requiredKeys: [] },
);
const forwarded = fc.dictionary(
  fc.constantFrom('authorization', 'cookie', 'host', 'origin', 'te', 'connection', 'mcp-session-id', 'x-ok', 'upgrade'),
  fc.string(),
);

export const headers = fuzzTarget({
  name: 'headers',
  promise:
    'what goes into a header cannot leave it, comes out again, and is missed when it is changed; what cannot is told',
  runs: 400,
  input: fc.tuple(fc.nat(NAMED.length - 1), name, args, anySeed, forwarded),
  holds: ([index, name, given, seed, inbound]) => {
    const [method, member] = NAMED[index] as (typeof NAMED)[number];
    const message = { jsonrpc: '2.0', id: seed, method, params: { [member]: name, arguments: given } };
    const frame = clientFrame(new JsonPrinter(seed, { newlines: false }).value(message));
    const lines = [...standardHeaders(frame, REVISION), ...paramHeadersFor(ANNOTATIONS, frame)];
    if (lines.some(([, value]) => value === INEXPRESSIBLE)) return checkInexpressible(frame, lines);
    for (const [header, text] of lines) checkLine(header, text);
    insist(faultOf(frame, asReceived(lines)) === undefined, () => `refuses its own headers of ${frame.bytes}`);
    for (const [header, text] of lines) checkTampered(frame, lines, [header, havocText(text, seed)]);
    const decoded = decodeHeaderValue(havocText(encodeHeaderValue(name), seed));
    if (decoded !== undefined) insist(decodeHeaderValue(encodeHeaderValue(decoded)) === decoded, () => decoded);
    const named = Object.keys(inbound).map((passing) => ({ name: passing, sentAs: passing }));
    const passed = forwardedHeaders({ headers: inbound } as unknown as IncomingMessage, named) ?? {};
    insist(
      Object.keys(passed).every((passing) => passing === 'x-ok'),
      () => `forwards ${Object.keys(passed)}`,
    );
  },
});

/** Not to be sent, and not to be taken for any other text that is. */
function checkInexpressible(frame: Frame, lines: readonly HeaderLine[]): void {
  insist(findHeaderFault(lines) !== undefined, () => `would send headers that say nothing for ${frame.bytes}`);
  for (const other of ['\ufffd', 'x', '']) {
    const replaced = lines.map(([header, value]) => [header, value || encodeHeaderValue(other)] as const);
    insist(faultOf(frame, asReceived(replaced)) !== undefined, () => `takes ${other} for a text of ${frame.bytes}`);
  }
}

function checkLine(header: string, text: string): void {
  validateHeaderValue(header, text);
  insist(/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text), () => `${header}: ${JSON.stringify(text)}`);
}

/** As Node hands out the headers of a request. */
function asReceived(lines: readonly HeaderLine[]): HeaderMap {
  return Object.fromEntries(lines.map(([header, text]) => [header.toLowerCase(), text]));
}

function faultOf(frame: Frame, received: HeaderMap): string | undefined {
  return checkStandardHeaders(frame, REVISION, received) ?? checkParamHeaders(ANNOTATIONS, frame, received);
}

/** A header that means something else than the body is noticed; another spelling of the same is not. */
function checkTampered(frame: Frame, lines: readonly HeaderLine[], [header, text]: HeaderLine): void {
  const others = lines.filter(([other]) => other !== header);
  const original = lines.find(([other]) => other === header)?.[1] ?? '';
  const isMissed = faultOf(frame, asReceived([...others, [header, text]])) !== undefined;
  const [meant, found] = [decodeHeaderValue(original), decodeHeaderValue(text)];
  const isSame = found === meant || (found !== undefined && Number(found) === Number(meant));
  insist(isMissed || isSame, () => `${header}: ${JSON.stringify(text)} passes for ${JSON.stringify(original)}`);
  if (!header.startsWith('Mcp-Param-')) return;
  insist(faultOf(frame, asReceived(others)) !== undefined, () => `${header} is not missed`);
}

function havocText(text: string, seed: number): string {
  return havoc(Buffer.from(text, 'latin1'), seed).toString('latin1');
}
