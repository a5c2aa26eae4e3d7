/** Compares the parameters of a request with those of a recorded one. */
import { META } from '../../mcp/vocabulary/meta.ts';
import { asFields, type Fields, readPayload } from '../../mcp/vocabulary/payload.ts';
import type { Era } from '../../mcp/vocabulary/revisions.ts';
import { HIDDEN } from '../../recording/recorded-message.ts';
import { editFrame, type Frame } from '../../wire/frame.ts';
import { canonicalJson } from '../../wire/json/canonical-json.ts';
import { ObjectEditor } from '../../wire/json/object-editor.ts';
import { skipValue } from '../../wire/json/scan-json.ts';

/** Limit of values in parameters that are compared whatever the order of their members. Larger ones compare as text. */
const MAX_VALUES = 1_000_000;
/** Values that nest deeper are not compared with hidden ones, because each level is a call on the stack. */
const MAX_DEPTH = 200;

/** Members that say how a request is sent, and in the modern era what its client answers, but not what is asked. */
const ASIDE: Readonly<Record<Era, readonly string[]>> = {
  legacy: [META],
  modern: [META, 'inputResponses', 'requestState'],
};

/** Returns the same text for requests of a method that ask the same. Requests without parameters ask what `{}` asks. */
export function keyOfParameters(request: Frame, era: Era): string {
  const asked = withoutAside(request, era);
  const { bytes, payloadStart } = asked;
  if (payloadStart === -1) return '{}';
  return canonicalJson(bytes, payloadStart, MAX_VALUES) ?? textOfParameters(asked);
}

/** The parameters that count, as JSON text. */
export function textOfParameters({ bytes, payloadStart }: Frame): string {
  if (payloadStart === -1) return '{}';
  const end = skipValue(bytes, payloadStart);
  return bytes.toString('utf8', payloadStart, end === -1 ? bytes.length : end);
}

function withoutAside(request: Frame, era: Era): Frame {
  const params = ObjectEditor.readIn(request, request.payloadStart, ASIDE[era]);
  if (params === undefined) return request;
  for (const name of ASIDE[era]) params.remove(name);
  return editFrame(request, params.edits());
}

/** The parameters that count; undefined if they are no object or too much to read. */
export function readParameters(request: Frame, era: Era): Fields | undefined {
  if (request.payloadStart === -1) return {};
  return readPayload(withoutAside(request, era));
}

/** Returns true if a value is what was recorded, where a hidden value stands for any. */
export function matchesHidden(recorded: unknown, given: unknown, depth = 0): boolean {
  if (recorded === HIDDEN || recorded === given) return true;
  if (depth > MAX_DEPTH) return false;
  if (typeof recorded === 'string') return typeof given === 'string' && matchesText(recorded, given);
  if (Array.isArray(recorded)) {
    return (
      Array.isArray(given) &&
      given.length === recorded.length &&
      recorded.every((item, index) => matchesHidden(item, given[index], depth + 1))
    );
  }
  const [expected, got] = [asFields(recorded), asFields(given)];
  if (expected === undefined || got === undefined) return false;
  const keys = Object.keys(expected);
  return (
    keys.length === Object.keys(got).length &&
    keys.every((key) => Object.hasOwn(got, key) && matchesHidden(expected[key], got[key], depth + 1))
  );
}

/** Finds the recorded parts of a text in their order, with any text in place of the hidden ones. */
function matchesText(recorded: string, given: string): boolean {
  const [first = '', ...parts] = recorded.split(HIDDEN);
  const last = parts.pop();
  if (last === undefined) return false;
  if (!given.startsWith(first) || !given.endsWith(last)) return false;
  let at = first.length;
  for (const part of parts) {
    const found = given.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return at <= given.length - last.length;
}

/** A member in which two requests differ. */
export interface Difference {
  /** `arguments.city`, from the parameters on; empty if they differ as a whole. */
  readonly path: string;
  /** `recorded` is the value there; undefined where the recorded request has no such member. */
  readonly recorded: unknown;
  readonly kind: 'other' | 'missing' | 'added';
}

/** Number of members after which two requests count as completely different. */
const MAX_DIFFERENCES = 100;
/** A difference in one of these outweighs all others, since the request is about something else. */
const NAMES: readonly string[] = ['name', 'uri', 'ref', 'taskId'];
const WEIGHT_OF_NAME = 1000;

/** Returns the first difference of two requests, and how much they differ. */
export function compareParameters(recorded: Fields, given: Fields) {
  const found: Difference[] = [];
  collect({ recorded, given, path: [], found });
  const weight = found.reduce((sum, { path }) => sum + (NAMES.includes(path) ? WEIGHT_OF_NAME : 1), 0);
  return { first: found[0], weight };
}

interface Comparison {
  readonly recorded: unknown;
  readonly given: unknown;
  readonly path: readonly string[];
  readonly found: Difference[];
}

function collect({ recorded, given, path, found }: Comparison): void {
  if (found.length === MAX_DIFFERENCES) return;
  const [expected, got] = [asFields(recorded), asFields(given)];
  if (expected === undefined || got === undefined || path.length > MAX_DEPTH) {
    if (!matchesHidden(recorded, given)) found.push({ path: path.join('.'), recorded, kind: 'other' });
    return;
  }
  for (const key of new Set([...Object.keys(expected), ...Object.keys(got)])) {
    if (found.length === MAX_DIFFERENCES) return;
    const below = [...path, key];
    if (!Object.hasOwn(got, key)) found.push({ path: below.join('.'), recorded: expected[key], kind: 'missing' });
    else if (!Object.hasOwn(expected, key)) found.push({ path: below.join('.'), recorded: undefined, kind: 'added' });
    else collect({ recorded: expected[key], given: got[key], path: below, found });
  }
}
