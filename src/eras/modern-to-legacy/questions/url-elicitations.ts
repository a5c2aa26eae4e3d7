/** `-32042` of 2025-11-25: a call that wants its user to visit a URL first. The modern era asks instead of failing. */

import { RecentNames } from '../../../collections/bounded-collections.ts';
import type { Clock } from '../../../deps.ts';
import type { CanonicalCapabilities } from '../../../mcp/translate/capabilities.ts';
import { replaceCode } from '../../../mcp/translate/errors.ts';
import { toModernResult } from '../../../mcp/translate/results.ts';
import { isDeclared } from '../../../mcp/vocabulary/client-declarations.ts';
import { CALL_TOOL, ELICIT } from '../../../mcp/vocabulary/methods.ts';
import { asFields, type Fields } from '../../../mcp/vocabulary/payload.ts';
import { INTERNAL_ERROR, MISSING_CAPABILITY } from '../../../mcp/vocabulary/rpc-codes.ts';
import type { RpcError } from '../../../mcp/vocabulary/rpc-errors.ts';
import type { Frame } from '../../../wire/frame.ts';
import { findMember } from '../../../wire/json/outline.ts';
import { isStringToken } from '../../../wire/json/scan-json.ts';
import { errorFrame, resultFrame } from '../../../wire/write-message.ts';
import { MAX_ROUNDS } from '../../asking-limits.ts';
import type { ClientAsker } from './questions.ts';

/** Time that a call waits until the server says that the visit has had its effect. Many servers never say so. */
export const COMPLETION_MS = 20_000;

/** Characters of an id that is waited for; the completion of a longer one is not. */
export const MAX_AWAITED_ID_LENGTH = 1024;

export interface UrlElicitation {
  /** Undefined: there is none to wait for. */
  readonly elicitationId: string | undefined;
  /** `{"method":"elicitation/create","params":…}` */
  readonly request: Buffer;
}

/** Reads the elicitations in the error. Undefined: none could be shown to a user. */
export function readUrlElicitations({ data }: RpcError): readonly UrlElicitation[] | undefined {
  const listed = asFields(data)?.elicitations;
  if (!Array.isArray(listed) || listed.length === 0) return undefined;
  const elicitations = listed.map(readUrlElicitation);
  return elicitations.every((elicitation) => elicitation !== undefined) ? elicitations : undefined;
}

function readUrlElicitation(item: unknown): UrlElicitation | undefined {
  const fields = asFields(item);
  if (fields === undefined || typeof fields.url !== 'string') return undefined;
  const { elicitationId, mode: _, ...params } = fields;
  const request = { method: ELICIT, params: { mode: 'url', ...params } };
  return {
    elicitationId: isAwaited(elicitationId) ? elicitationId : undefined,
    request: Buffer.from(JSON.stringify(request)),
  };
}

function isAwaited(elicitationId: unknown): elicitationId is string {
  return typeof elicitationId === 'string' && elicitationId.length <= MAX_AWAITED_ID_LENGTH;
}

export function takesUrls(capabilities: Fields): boolean {
  return isDeclared(asFields(capabilities.elicitation)?.url);
}

/** [spec 2026-07-28 schema#missingrequiredclientcapabilityerror] */
export const URL_MODE_MISSING: RpcError = {
  code: MISSING_CAPABILITY,
  message: 'the server needs its user to visit a URL first, and the client did not declare elicitation.url',
  data: { requiredCapabilities: { elicitation: { url: {} } } },
};

export function isAccept(response: Buffer): boolean {
  const action = findMember(response, 0, 'action');
  return action !== undefined && isStringToken(response, action.start, action.end, 'accept');
}

/** The user did not agree, so that the call was not made. A model can read why. */
export function declined(method: string, serverInfo: Fields | undefined): Frame {
  const message = 'The server needs its user to visit a URL first, and the user did not agree.';
  if (method !== CALL_TOOL) return errorFrame(0, { code: INTERNAL_ERROR, message });
  const result = resultFrame(0, { content: [{ type: 'text', text: message }], isError: true });
  return toModernResult(result, { method, serverInfo }) ?? result;
}

/** Completions nobody has waited for yet, and characters of their ids; later ones push out the first. */
const COMPLETED_LIMITS = { count: 1000, length: 64 * 1024 };

interface Waiting {
  readonly missing: Set<string>;
  readonly finish: () => void;
}

/**
 * The URLs that a server sent its user to, and which of the visits are complete. The modern era has no word for that;
 * it only tells the bridge when a call that was refused for a visit may be tried again. [spec 2025-11-25
 * client/elicitation#completion-notifications]
 */
export class Elicitations {
  readonly #clock: Clock;
  readonly #completed = new RecentNames<true>(COMPLETED_LIMITS);
  readonly #waiting = new Set<Waiting>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  completed(elicitationId: string): void {
    this.#completed.set(elicitationId, true);
    for (const waiting of [...this.#waiting]) {
      waiting.missing.delete(elicitationId);
      if (waiting.missing.size === 0) waiting.finish();
    }
  }

  /** Calls `run` when all are completed, or when the time is up; never within this call. Returns what stops it. */
  whenCompleted(ids: readonly string[], timeoutMs: number, run: () => void): () => void {
    const missing = new Set(ids.filter((id) => !this.#completed.has(id)));
    const stop = (): void => {
      cancel();
      this.#waiting.delete(waiting);
    };
    const finish = (): void => {
      stop();
      run();
    };
    const waiting: Waiting = { missing, finish };
    const cancel = this.#clock.after(missing.size === 0 ? 0 : timeoutMs, finish);
    this.#waiting.add(waiting);
    return stop;
  }

  close(): void {
    this.#completed.clear();
    this.#waiting.clear();
  }
}

export interface RequiredElicitationsOptions {
  readonly asker: Pick<ClientAsker, 'askClient'>;
  /** The capabilities of the client. */
  readonly declared: CanonicalCapabilities;
  /** The client cannot be asked; the call ends with this. */
  readonly failed: (error: RpcError) => void;
}

/** The URL elicitations that a server requires before it runs a call, and what the user answers. */
export class RequiredElicitations {
  readonly #options: RequiredElicitationsOptions;
  #rounds = 0;
  #ids: readonly string[] = [];
  #isAccepted = true;

  constructor(options: RequiredElicitationsOptions) {
    this.#options = options;
  }

  /** The user has agreed to all of them. */
  get isAccepted(): boolean {
    return this.#isAccepted;
  }

  /** Asks the client. */
  require(elicitations: readonly UrlElicitation[], error: RpcError): void {
    const { asker, declared, failed } = this.#options;
    if (!takesUrls(declared.capabilities)) return failed(URL_MODE_MISSING);
    this.#rounds += 1;
    if (this.#rounds > MAX_ROUNDS) return failed(tooManyRounds(error));
    this.#isAccepted = true;
    this.#ids = elicitations.flatMap(({ elicitationId }) => (elicitationId === undefined ? [] : [elicitationId]));
    for (const { request } of elicitations) {
      asker.askClient({
        method: ELICIT,
        request,
        askedBytes: 0,
        source: undefined,
        answer: (response) => {
          this.#isAccepted &&= isAccept(response);
        },
        // Only the client itself waits for these answers.
        refuse: () => failed(NO_CAPACITY),
        keepAlive: undefined,
      });
    }
  }

  /** Calls `run` when the server reports the elicitations complete, or after `COMPLETION_MS`. Returns what stops it. */
  whenComplete(elicitations: Elicitations, run: () => void): () => void {
    return elicitations.whenCompleted(this.#ids, COMPLETION_MS, run);
  }
}

function tooManyRounds(error: RpcError): RpcError {
  const bridge = { reason: 'too_many_rounds', originalCode: error.code };
  return replaceCode({ ...error, data: undefined }, INTERNAL_ERROR, bridge);
}

const NO_CAPACITY: RpcError = {
  code: INTERNAL_ERROR,
  message: 'too many calls wait for their clients; try again later',
};
