import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../../deps.ts';
import type { BridgeError } from '../../errors.ts';
import type { Agents } from './agents.ts';
import type { CallTimeouts } from './call-limits.ts';
import type { SessionCookies } from './cookies.ts';
import type { CredentialRenewal, UserAnswer, UserPrompt } from './credentials.ts';

export interface RequestHeaders {
  readonly method: string;
  /** The transport's own headers. They override configured and forwarded ones. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Headers of the client's own request. Those that may not be forwarded are left out, and configured headers override
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
  /**
   * True if the server may process the request twice without harm. Only such a request is repeated if it is unknown
   * whether the server received the first one.
   */
  readonly isRepeatable: boolean;
}

export interface ResponseHead {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The URL that answered, after redirects. */
  readonly url: URL;
  /** True if the request had an `Authorization` header. */
  readonly wasAuthorized: boolean;
  /** True if a login was attempted, but the server offers none. */
  readonly offersNoLogin: boolean;
}

/**
 * Receives the events of one request in this order: `sent`, `response`, any number of `data`, then `end` or `error`.
 */
export interface HttpHandler {
  /** The whole request was passed to the operating system. Not called if the response came first. */
  sent(): void;
  response(head: ResponseHead): void;
  /** Delivers a part of the body. The handler owns the bytes. */
  data(chunk: Buffer): void;
  end(): void;
  /** Ends the call in place of the remaining events. Called at most once. */
  error(error: BridgeError): void;
  /** Asks the user to open a page, because the request waits for it. May abort the request. See `AskUser`. */
  askUser?(prompt: UserPrompt): Promise<UserAnswer> | undefined;
}

/** A request in progress. */
export interface HttpCall {
  /** Ends the call; the handler is not called anymore. May be called at any time, and more than once. */
  abort(): void;
  /** `pause` and `resume` stop and continue reading the response. They may be called before it arrives. */
  pause(): void;
  resume(): void;
}

/** The parts of the client that all requests to one server share. */
export interface HttpExchangeHost {
  readonly agents: Agents;
  readonly clock: Clock;
  /**
   * Returns the renewal of the credentials that a request with these forwarded headers has; undefined if there is none.
   */
  renewalOf(forwarded: RequestHeaders['forwarded']): CredentialRenewal | undefined;
  /** Returns all headers of a request. Throws BridgeError ERR_UPSTREAM_AUTH if there is no usable token. */
  headersFor(url: URL, request: RequestHeaders): Readonly<Record<string, string>>;
  /** Returns the headers of a request as a list in which names and values alternate. */
  listOf(headers: Readonly<Record<string, string>>): readonly string[];
}
