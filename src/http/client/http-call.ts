import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../../deps.ts';
import type { BridgeError } from '../../errors.ts';
import type { Agents } from './agents.ts';
import type { CallTimeouts } from './call-limits.ts';
import type { SessionCookies } from './cookies.ts';
import type { CredentialRenewal, UserAnswer, UserPrompt } from './credentials.ts';

export interface RequestHeaders {
  readonly method: string;
  /** The headers of the transport itself; they win over all others. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Headers of the client's own request. Those that may not be forwarded are left out, and configured ones win over
   * them.
   */
  readonly forwarded: Readonly<Record<string, string>> | undefined;
  readonly cookies: SessionCookies;
}

export interface HttpRequest extends RequestHeaders {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly url: URL;
  readonly body: Buffer | undefined;
  readonly timeouts: CallTimeouts;
  /** Processing it twice does no harm. Only such a request is repeated when nobody knows whether it arrived. */
  readonly isRepeatable: boolean;
}

export interface ResponseHead {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Where it came from, after redirects. */
  readonly url: URL;
  /** The request carried an `Authorization`. */
  readonly wasAuthorized: boolean;
  /** A login was tried, and the server offers none. */
  readonly offersNoLogin: boolean;
}

/** Whoever makes a request hears, in this order: `sent`, `response`, any number of `data`, then `end` or `error`. */
export interface HttpHandler {
  /** The whole request was handed to the system; not called when the answer came first. */
  sent(): void;
  response(head: ResponseHead): void;
  /** The receiver owns the bytes. */
  data(chunk: Buffer): void;
  end(): void;
  /** Ends the call instead of whatever would have followed; called once. */
  error(error: BridgeError): void;
  /** The request waits for its user to open a page. May abort the request. See `AskUser`. */
  askUser?(prompt: UserPrompt): Promise<UserAnswer> | undefined;
}

/** A request under way. */
export interface HttpCall {
  /** Ends the call; the handler hears nothing more. May be called at any time, and twice. */
  abort(): void;
  /** `pause` and `resume` stop and continue the reading of the response, also before it has come. */
  pause(): void;
  resume(): void;
}

/** What all requests to one server have in common. */
export interface HttpExchangeHost {
  readonly agents: Agents;
  readonly clock: Clock;
  /** Returns what renews the credentials of a request that lets these headers pass; undefined: they cannot be renewed. */
  renewalOf(forwarded: RequestHeaders['forwarded']): CredentialRenewal | undefined;
  /** Everything that goes into the head of a request. Throws BridgeError ERR_UPSTREAM_AUTH without a usable token. */
  headersFor(url: URL, request: RequestHeaders): Readonly<Record<string, string>>;
  /** Returns the headers of a request as a list in which names and values take turns. */
  listOf(headers: Readonly<Record<string, string>>): readonly string[];
}
