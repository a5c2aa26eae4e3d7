/** The W3C trace context in the `_meta` of a request. */
import { editFrame, type Frame, withParams } from '../../wire/frame.ts';
import { OPEN_BRACE, QUOTE } from '../../wire/json/ascii.ts';
import { ObjectEditor } from '../../wire/json/object-editor.ts';
import { findAllUnmistakable, findUnmistakable } from '../../wire/json/outline.ts';
import { decodeString } from '../../wire/json/scan-json.ts';
import { META, TRACE_KEYS, type TraceContext } from '../vocabulary/meta.ts';
import { asFields, encodeJson, type Fields } from '../vocabulary/payload.ts';

const META_KEYS = [META];

/**
 * Limit in bytes of one value with its quotes, the largest that W3C Baggage requires to be propagated. Longer values
 * are ignored.
 */
const MAX_TEXT_BYTES = 8192 + 2;

/** Values with other characters cannot be sent in a header. */
const VISIBLE = /^[\x20-\x7e]+$/;

/**
 * Reads a request's trace context. Returns undefined if there is none or `_meta` is ambiguous; single values that are
 * ambiguous or too long are left out.
 */
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
 * Replaces the trace context of a request. If its `_meta` is no object or is ambiguous, the request stays unchanged and
 * its server rejects it.
 */
export function withTraceContext(frame: Frame, context: TraceContext): Frame {
  if (frame.payloadStart === -1) return withParams(frame, encodeJson({ [META]: context }));
  const meta = findUnmistakable(frame, frame.payloadStart, META);
  const params = ObjectEditor.readIn(frame, frame.payloadStart, META_KEYS);
  if (params === undefined || meta === 'unclear') return frame;
  if (meta === undefined) {
    params.set(META, encodeJson(context));
    return editFrame(frame, params.edits());
  }
  if (frame.bytes[meta.start] !== OPEN_BRACE) return frame;
  const members = ObjectEditor.readIn(frame, meta.start, TRACE_KEYS);
  if (members === undefined) return frame;
  for (const key of TRACE_KEYS) {
    const text = context[key];
    if (text === undefined) members.remove(key);
    else members.set(key, encodeJson(text));
  }
  params.edit(META, members.edits());
  return editFrame(frame, params.edits());
}

/** The trace context of a request, as headers of the HTTP request that carries it. */
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

/**
 * The params of a request that is kept and sent again, without the trace context: each repetition belongs to another
 * trace.
 */
export function withoutTraceContext(params: Fields): Fields {
  const meta = asFields(params[META]);
  if (meta === undefined || !TRACE_KEYS.some((key) => Object.hasOwn(meta, key))) return params;
  const { [META]: _traced, ...others } = params;
  const kept = Object.entries(meta).filter(([key]) => !(TRACE_KEYS as readonly string[]).includes(key));
  return kept.length === 0 ? others : { ...others, [META]: Object.fromEntries(kept) };
}
