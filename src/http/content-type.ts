/** Reads Content-Type and Accept as far as MCP needs them. */

export const JSON_TYPE = 'application/json';
export const EVENT_STREAM_TYPE = 'text/event-stream';

/** A header that came more than once is joined, and each part has to say so: whoever reads one of them reads JSON. */
export function isJson(contentType: string | undefined): boolean {
  if (contentType === JSON_TYPE) return true;
  return contentType?.split(',').every((part) => mediaType(part) === JSON_TYPE) ?? false;
}

export interface Acceptance {
  readonly json: boolean;
  readonly eventStream: boolean;
  /**
   * The event stream has the greater weight, or the same and was named before JSON. With the same weight the server may
   * choose; taking the order as the client's wish costs nothing and lets a client ask for a stream.
   */
  readonly prefersEventStream: boolean;
}

/** An absent header accepts everything. [RFC 9110 12.5.1] */
const EVERYTHING: Acceptance = { json: true, eventStream: true, prefersEventStream: false };
const USUAL = 'application/json, text/event-stream';

export function parseAccept(accept: string | undefined): Acceptance {
  if (accept === undefined || accept === USUAL) return EVERYTHING;
  const ranges = accept.split(',').map(parseRange);
  const json = mostSpecific(ranges, JSON_TYPE);
  const eventStream = mostSpecific(ranges, EVENT_STREAM_TYPE);
  return {
    json: json.weight > 0,
    eventStream: eventStream.weight > 0,
    prefersEventStream:
      eventStream.weight > json.weight || (eventStream.weight === json.weight && eventStream.index < json.index),
  };
}

interface MediaRange {
  readonly type: string;
  /** The quality value, from 0, which is not acceptable, to 1. */
  readonly weight: number;
  readonly index: number;
}

const NO_RANGE: MediaRange = { type: '', weight: 0, index: -1 };

function parseRange(text: string, index: number): MediaRange {
  const weight = /;\s*q=([\d.]+)/i.exec(text)?.[1];
  return { type: mediaType(text), weight: weight === undefined ? 1 : Number(weight) || 0, index };
}

/** What the header says about a type: the range that names it, else its group, else everything. */
function mostSpecific(ranges: readonly MediaRange[], type: string): MediaRange {
  const group = type.replace(/\/.*/, '/*');
  for (const name of [type, group, '*/*']) {
    const range = ranges.find((candidate) => candidate.type === name);
    if (range !== undefined) return range;
  }
  return NO_RANGE;
}

function mediaType(value: string): string {
  const end = value.indexOf(';');
  return (end < 0 ? value : value.slice(0, end)).trim().toLowerCase();
}

/**
 * Names under which a body is sent as it is. Some senders leave the header empty, or take it for that of the character
 * set; were such a body packed after all, it would be read as what it is not and refused for that.
 */
const UNPACKED: ReadonlySet<string> = new Set(['', 'identity', 'utf-8', 'utf8']);

/** What has to be undone before a body can be read, by its Content-Encoding; undefined: nothing. [RFC 9110 8.4] */
export function packingOf(contentEncoding: string | undefined): string | undefined {
  return contentEncoding === undefined || UNPACKED.has(contentEncoding.toLowerCase()) ? undefined : contentEncoding;
}
