import { JSON_TYPE } from '../../../http/content-type.ts';
import { createDiscoverRequest, modernHeaders } from '../../../mcp/vocabulary/discover.ts';
import { SESSION_ID_HEADER, SESSION_ID_HEADER_OUT } from '../../../mcp/vocabulary/headers.ts';
import type { Implementation } from '../../../mcp/vocabulary/meta.ts';
import { DISCOVER, INITIALIZE } from '../../../mcp/vocabulary/methods.ts';
import { LATEST_LEGACY_REVISION } from '../../../mcp/vocabulary/revisions.ts';
import { requestFrame } from '../../../wire/write-message.ts';
import { askEventStream, type StreamAnswer } from '../ask/ask-event-stream.ts';
import { askHttp, type HttpAnswer } from '../ask/ask-http.ts';
import type { HttpTarget } from '../ask/ask-once.ts';
import type { HttpAttempts } from './detect-http.ts';

export interface OwnAttemptsOptions {
  readonly target: HttpTarget;
  readonly clientInfo: Implementation;
  /** The time limit for each question. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Before a session that nobody wants is left to the server's own time limit. */
const END_TIMEOUT_MS = 2000;

/** Attempts of the bridge's own, where no client waits whose `initialize` could be used. */
export class OwnAttempts implements HttpAttempts {
  readonly #options: OwnAttemptsOptions;
  readonly #sessions: string[] = [];
  #nextId = 1;

  constructor(options: OwnAttemptsOptions) {
    this.#options = options;
  }

  discover(revision: string): Promise<HttpAnswer> {
    const { target, clientInfo, timeoutMs, signal } = this.#options;
    const frame = createDiscoverRequest({ id: this.#nextId++, revision, clientInfo });
    return askHttp(target, { frame, headers: modernHeaders(DISCOVER, revision), timeoutMs, signal });
  }

  /** As every legacy revision sends it: without session and version headers. */
  async initialize(): Promise<HttpAnswer> {
    const { target, clientInfo, timeoutMs, signal } = this.#options;
    const protocolVersion = LATEST_LEGACY_REVISION.id;
    const frame = requestFrame(this.#nextId++, INITIALIZE, { protocolVersion, capabilities: {}, clientInfo });
    const answer = await askHttp(target, { frame, headers: {}, timeoutMs, signal });
    const session = answer.head?.headers[SESSION_ID_HEADER];
    if (typeof session === 'string') this.#sessions.push(session);
    return answer;
  }

  eventStream(): Promise<StreamAnswer> {
    const { target, timeoutMs, signal } = this.#options;
    return askEventStream(target, { headers: {}, until: 'endpoint', timeoutMs, signal });
  }

  /** Ends the sessions that the attempts opened. [spec 2025-11-25 transports#session-management] */
  async close(): Promise<void> {
    await Promise.all(this.#sessions.splice(0).map((session) => endSession(this.#options.target, session)));
  }
}

/** Resolves with the status; undefined when there was no response. */
export function endSession(
  { http, url, cookies, forwarded }: HttpTarget,
  session: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<number | undefined> {
  return new Promise((resolve) => {
    let status: number | undefined;
    http.request(
      {
        method: 'DELETE',
        url,
        headers: { Accept: JSON_TYPE, [SESSION_ID_HEADER_OUT]: session, ...headers },
        forwarded,
        body: undefined,
        timeouts: { connectMs: END_TIMEOUT_MS, firstByteMs: END_TIMEOUT_MS, idleMs: 0, callMs: END_TIMEOUT_MS },
        cookies,
        isRepeatable: true,
      },
      {
        sent: () => {},
        response: (head) => {
          status = head.status;
        },
        data: () => {},
        end: () => resolve(status),
        error: () => resolve(status),
      },
    );
  });
}
