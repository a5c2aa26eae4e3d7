import { DISCOVER, INITIALIZE } from '../../mcp/vocabulary/methods.ts';
import type { Fields } from '../../mcp/vocabulary/payload.ts';
import type { Era } from '../../mcp/vocabulary/revisions.ts';
import type { Frame } from '../../wire/frame.ts';
import { keyOfParameters, matchesHidden, readParameters, textOfParameters } from './parameters.ts';
import type { RecordedCall } from './recorded-call.ts';

/** Recorded calls that ask the same, in their order. */
export interface EqualCalls {
  readonly calls: RecordedCall[];
  /** Number of them that were given to clients. */
  given: number;
}

/** A recorded call for a request of a client. */
export interface FoundCall {
  readonly call: RecordedCall;
  /** `again`: it is the last of those that ask the same, and was given before. */
  readonly turn: 'first' | 'again';
}

/** The recorded calls of one method in one era. */
interface MethodCalls {
  readonly byKey: Map<string, EqualCalls>;
  /** Calls with hidden values. They are found by comparing each. */
  readonly hidden: { readonly parameters: Fields; readonly equal: EqualCalls }[];
  /** Calls of whose parameters only the beginning was recorded, which is `text`. */
  readonly cut: { readonly text: string; readonly equal: EqualCalls }[];
}

/**
 * Finds the recorded call for each request: the n-th of those that ask the same gets the n-th recorded answer, and after
 * the last one the last again. All connections share the count, because the order of the recording is one of all
 * sessions, and a modern client has none.
 */
export class CallFinder {
  readonly #methods: Readonly<Record<Era, Map<string, MethodCalls>>> = { legacy: new Map(), modern: new Map() };

  /** @param first calls that begin something; their rounds follow from them */
  constructor(first: readonly RecordedCall[]) {
    for (const call of first) this.#add(call);
  }

  #add(call: RecordedCall): void {
    const { era, method, key, parameters, request } = call;
    const methods = this.#methods[era];
    const calls: MethodCalls = methods.get(method) ?? { byKey: new Map(), hidden: [], cut: [] };
    methods.set(method, calls);
    const known = calls.byKey.get(key);
    if (known !== undefined) {
      known.calls.push(call);
      return;
    }
    const equal: EqualCalls = { calls: [call], given: 0 };
    calls.byKey.set(key, equal);
    if (parameters === 'hidden') calls.hidden.push({ parameters: readParameters(request, era) ?? {}, equal });
    if (parameters === 'cut') calls.cut.push({ text: cutText(call), equal });
  }

  find(request: Frame, era: Era): FoundCall | undefined {
    const calls = this.#methods[era].get(request.method ?? '');
    const equal = calls && findEqual(calls, request, era);
    if (equal === undefined) return undefined;
    const call = equal.calls[Math.min(equal.given, equal.calls.length - 1)];
    const turn = equal.given < equal.calls.length ? 'first' : 'again';
    equal.given += 1;
    return call && { call, turn };
  }

  /** The methods that were recorded, without those of handshakes. */
  methodsOf(era: Era): readonly string[] {
    return [...this.#methods[era].keys()].filter((method) => method !== INITIALIZE && method !== DISCOVER);
  }

  /** One call of each set that asks the same, by method. */
  *callsOf(method: string, era: Era): Iterable<RecordedCall> {
    for (const { calls } of this.#methods[era].get(method)?.byKey.values() ?? []) {
      if (calls[0] !== undefined) yield calls[0];
    }
  }

  /** The recorded answers of a handshake, whatever it asked. */
  *handshakesOf(method: string, era: Era): Iterable<RecordedCall> {
    for (const { calls } of this.#methods[era].get(method)?.byKey.values() ?? []) yield* calls;
  }
}

function findEqual(calls: MethodCalls, request: Frame, era: Era): EqualCalls | undefined {
  const exact = calls.byKey.get(keyOfParameters(request, era));
  if (exact !== undefined) return exact;
  if (calls.hidden.length > 0) {
    const parameters = readParameters(request, era);
    const found = parameters && calls.hidden.find((other) => matchesHidden(other.parameters, parameters));
    if (found !== undefined) return found.equal;
  }
  if (calls.cut.length === 0) return undefined;
  const text = textOfParameters(request);
  return calls.cut.find((other) => other.text !== '' && text.startsWith(other.text))?.equal;
}

/** The beginning of the parameters' JSON text, which was recorded as a string. */
function cutText({ request }: RecordedCall): string {
  const recorded: unknown = JSON.parse(textOfParameters(request));
  return typeof recorded === 'string' ? recorded : '';
}
