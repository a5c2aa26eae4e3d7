/** Reads Content-Type and Accept as far as MCP needs them. */

export const JSON_TYPE = 'application/json';
export const EVENT_STREAM_TYPE = 'text/event-stream';

export function isJson(contentType: string | undefined): boolean {
  return contentType !== undefined && mediaType(contentType) === JSON_TYPE;
}

export interface Acceptance {
  readonly json: boolean;
  readonly eventStream: boolean;
  /**
   * The event stream was named before JSON. Both have the same weight then, so the server may choose; taking the
   * order as the client's wish costs nothing and lets a client ask for a stream.
   */
  readonly prefersEventStream: boolean;
}

/** An absent header accepts everything. [RFC 9110 12.5.1] */
const EVERYTHING: Acceptance = { json: true, eventStream: true, prefersEventStream: false };
const USUAL = 'application/json, text/event-stream';

export function parseAccept(accept: string | undefined): Acceptance {
  if (accept === undefined || accept === USUAL) return EVERYTHING;
  let json = -1;
  let eventStream = -1;
  accept.split(',').forEach((range, index) => {
    if (/;\s*q=0(\.0*)?\s*$/i.test(range)) return;
    const type = mediaType(range);
    const any = type === '*/*';
    if ((any || type === JSON_TYPE || type === 'application/*') && json < 0) json = index;
    if ((any || type === EVENT_STREAM_TYPE || type === 'text/*') && eventStream < 0) eventStream = index;
  });
  return {
    json: json >= 0,
    eventStream: eventStream >= 0,
    prefersEventStream: eventStream >= 0 && (json < 0 || eventStream < json),
  };
}

function mediaType(value: string): string {
  const end = value.indexOf(';');
  return (end < 0 ? value : value.slice(0, end)).trim().toLowerCase();
}
