/** Which trace a request belongs to, by its `_meta`. */
import { editFrame, type Frame, withParams } from '../../wire/frame.ts';
import { OPEN_BRACE, QUOTE } from '../../wire/json/ascii.ts';
import { ObjectEditor } from '../../wire/json/object-editor.ts';
import { findAllUnmistakable, findUnmistakable } from '../../wire/json/outline.ts';
import { decodeString } from '../../wire/json/scan-json.ts';
import { META, TRACE_KEYS, type TraceContext } from '../vocabulary/meta.ts';
import { asFields, type Fields } from '../vocabulary/payload.ts';

const META_KEYS = [META];

/** Bytes of one text with its quotes: the largest that W3C Baggage asks anybody to pass on. A longer one is ignored. */
const MAX_TEXT_BYTES = 8192 + 2;

/** What fits into a header. */
const VISIBLE = /^[\x20-\x7e]+$/;

/** What the request says; undefined: nothing, or nothing that could not be read in two ways. */
export function readTraceContext(frame: Frame): TraceContext | undefined {
  const meta = findUnmistakable(frame, frame.payloadStart, META);
  if (meta === undefined || meta === 'unclear') return undefined;
  const found = findAllUnmistakable(frame, meta.start, TRACE_KEYS);
  if (found.every((span) => span === undefined)) return undefined;
  const texts = found.map((span) => {
    if (span === undefined || span === 'unclear' || span.end - span.start > MAX_TEXT_BYTES) return undefined;
    return frame.bytes[span.start] === QUOTE ? decodeString(frame.bytes, span.start, span.end) : undefined;
  });
  return { traceparent: texts[0], tracestate: texts[1], baggage: texts[2] };
}

/**
 * The request with this context in place of its own. One whose `_meta` is no object, or could be read in two ways, stays as
 * it is: it is for its server to refuse.
 */
export function withTraceContext(frame: Frame, context: TraceContext): Frame {
  if (frame.payloadStart === -1) return withParams(frame, encode({ [META]: context }));
  const meta = findUnmistakable(frame, frame.payloadStart, META);
  const params = ObjectEditor.readIn(frame, frame.payloadStart, META_KEYS);
  if (params === undefined || meta === 'unclear') return frame;
  if (meta === undefined) {
    params.set(META, encode(context));
    return editFrame(frame, params.edits());
  }
  if (frame.bytes[meta.start] !== OPEN_BRACE) return frame;
  const members = ObjectEditor.readIn(frame, meta.start, TRACE_KEYS);
  if (members === undefined) return frame;
  for (const key of TRACE_KEYS) {
    const text = context[key];
    if (text === undefined) members.remove(key);
    else members.set(key, encode(text));
  }
  params.edit(META, members.edits());
  return editFrame(frame, params.edits());
}

/** What a request says in its `_meta`, as the headers of the HTTP request that carries it. */
export function traceHeadersOf(frame: Frame): Readonly<Record<string, string>> | undefined {
  const context = frame.kind === 'request' ? readTraceContext(frame) : undefined;
  if (context === undefined) return undefined;
  const headers: Record<string, string> = {};
  for (const key of TRACE_KEYS) {
    const text = context[key];
    if (text !== undefined && VISIBLE.test(text)) headers[key] = text;
  }
  return headers;
}

/** The parameters of a request that is kept and sent again: another trace than that of the first is it then part of. */
export function withoutTraceContext(params: Fields): Fields {
  const meta = asFields(params[META]);
  if (meta === undefined || !TRACE_KEYS.some((key) => Object.hasOwn(meta, key))) return params;
  const { [META]: _traced, ...others } = params;
  const kept = Object.entries(meta).filter(([key]) => !(TRACE_KEYS as readonly string[]).includes(key));
  return kept.length === 0 ? others : { ...others, [META]: Object.fromEntries(kept) };
}

function encode(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
