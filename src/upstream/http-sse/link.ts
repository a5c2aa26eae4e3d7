import type { Logger } from 'pino';
import { BridgeError } from '../../errors.ts';
import type { ResponseHead } from '../../http/client/http-call.ts';
import { JSON_TYPE } from '../../http/headers.ts';
import { showUrl } from '../../http/shown-url.ts';
import { reachedAs } from '../../http/socket-addresses.ts';
import { CANCELED, INITIALIZE } from '../../mcp/vocabulary/methods.ts';
import { readField } from '../../mcp/vocabulary/payload.ts';
import { servedRevision } from '../../mcp/vocabulary/revisions.ts';
import type { Call } from '../../relay/call.ts';
import type { SkippedEnds } from '../../wire/byte-collector.ts';
import { answersId, type Frame, type JsonRpcId } from '../../wire/frame.ts';
import type { DecodedEvent } from '../../wire/sse-decode.ts';
import { LinkRequests } from '../answer-ids.ts';
import { Connection } from '../connection.ts';
import { type EventStreamListener, EventStreamReader, type StreamEnd } from '../remote/event-stream-reader.ts';
import { Outbox, type Outgoing } from '../remote/link-messages.ts';
import { postRequest } from '../remote/post-requests.ts';
import { type PostEnd, PostedCall, type PostHost, type Posting, useOfBody } from '../remote/posted-call.ts';
import { PostedCalls } from '../remote/posted-calls.ts';
import type { RemoteLinkOptions } from '../remote/remote-connector.ts';
import type { RemoteEnvironment } from '../remote/remote-environment.ts';
import { createSessionKey } from '../remote/session-key.ts';
import { StreamMessages } from '../server-messages.ts';

/** Time limit for the server to announce its endpoint. */
export const ENDPOINT_TIMEOUT_MS = 10_000;

/**
 * Limits accepted POSTs whose response is still open. Some servers end a response only after they have answered, so the
 * latest one is not aborted.
 */
export const LINGERING_LIMITS = { count: 64, bytes: 8 * 1024 * 1024, least: 1 };

const POST_HEADERS = { 'Content-Type': JSON_TYPE, Accept: '*/*' };

/** Options for the POSTs to the endpoint that the server announced. */
interface EndpointPosting extends Posting {
  readonly environment: RemoteEnvironment;
}

/** Posts to this URL. The response says only if the server accepted the message; answers come on the stream. */
function postingTo(url: URL, environment: RemoteEnvironment): EndpointPosting {
  return {
    environment: { ...environment, url },
    useOf: (head) => (useOfBody(head) === 'refusal' ? 'refusal' : 'nothing'),
    answersOnStream: true,
    readsOn: false,
    lingerMs: 0,
    resume: undefined,
  };
}

/**
 * - `fresh`: nothing has been sent, and there is no stream.
 * - `connecting`: the stream is opening or open, and the endpoint is not known. Messages wait.
 * - `open`: messages are posted to the endpoint.
 * - `closed`: the relay has closed the link or has been told of its end. Its listener is not called anymore.
 */
type LinkState =
  | { readonly kind: 'fresh' }
  | { readonly kind: 'connecting'; readonly cancelTimeout: () => void }
  | { readonly kind: 'open'; readonly endpoint: EndpointPosting; headers: Readonly<Record<string, string>> }
  | { readonly kind: 'closed' };

/**
 * A session over HTTP+SSE: a GET whose stream is the session, and a POST for each message. The session ends with the
 * stream and cannot be resumed.
 */
export class HttpSseLink extends Connection implements EventStreamListener, PostHost {
  readonly #options: RemoteLinkOptions;
  readonly #log: Logger;
  readonly #outbox: Outbox;
  readonly #messages: StreamMessages;
  readonly #requests: LinkRequests;
  /** Opened for the first message, with the headers of that message's client. */
  #stream: EventStreamReader | undefined;
  #isPaused = false;
  readonly #posts: PostedCalls;
  #state: LinkState = { kind: 'fresh' };
  /** Id of the `initialize` request that has no answer yet. */
  #handshakeId: JsonRpcId | undefined;
  /** The URL of the stream after redirects, which the endpoint is relative to. */
  #streamUrl: URL;

  constructor(options: RemoteLinkOptions) {
    super();
    const { environment } = options;
    const { http, url, maxMessageBytes, idWarnings, log } = environment;
    this.#options = options;
    this.#log = log;
    this.#streamUrl = url;
    this.#outbox = new Outbox({
      clock: http.clock,
      log,
      post: (message) => this.#post(message),
      drained: () => this.serverDrained(),
    });
    this.#outbox.hold();
    this.#posts = new PostedCalls({ clock: http.clock, lingering: LINGERING_LIMITS });
    this.#messages = new StreamMessages({
      name: showUrl(url),
      maxMessageBytes,
      message: (frame) => this.#received(frame),
      fault: (fault) => this.serverFault(this.#requests.failed(fault)),
    });
    const send = (frame: Frame, call?: Call): void => void this.write(frame, call);
    this.#requests = new LinkRequests({ warnings: idWarnings, log, send });
  }

  #open(): EventStreamReader {
    const { http, url, cookies, caller, timeouts, maxMessageBytes, log } = this.#options.environment;
    const cancelTimeout = http.afterLimit(ENDPOINT_TIMEOUT_MS, () => this.#endpointTimedOut(), caller.latest);
    this.#state = { kind: 'connecting', cancelTimeout };
    return new EventStreamReader({
      http,
      url,
      headers: {},
      cookies,
      caller,
      timeouts,
      maxMessageBytes,
      reconnects: false,
      isPaused: this.#isPaused,
      log,
      listener: this,
    });
  }

  // ---- from the relay

  get process(): undefined {
    return undefined;
  }

  protected override write(frame: Frame, call: Call | undefined): boolean {
    if (this.#state.kind === 'closed') return true;
    this.#options.environment.caller.note(frame, call);
    this.#requests.sent(frame);
    this.#stream ??= this.#open();
    if (frame.method === CANCELED && call !== undefined && this.#takeBack(call)) return true;
    if (frame.method === INITIALIZE) this.#handshakeId = frame.id;
    return this.#outbox.send(frame, call);
  }

  /**
   * Handles a cancellation whose request has not been sent: the request is dropped, and the cancellation is not sent.
   * Otherwise it could overtake the request.
   */
  #takeBack(call: Call): boolean {
    if (this.#outbox.withdraw(call)) return true;
    const request = this.#posts.withdraw(call);
    if (request !== undefined) this.#outbox.answered(request);
    return request !== undefined;
  }

  protected override pauseSource(): void {
    this.#isPaused = true;
    this.#stream?.pause();
  }

  protected override resumeSource(): void {
    this.#isPaused = false;
    this.#stream?.resume();
  }

  protected override end(reason: BridgeError): void {
    if (this.#leave()) this.#log.debug({ code: reason.code }, 'link closed, ending the stream');
  }

  // ---- from the stream

  opened(url: URL): void {
    this.#streamUrl = url;
  }

  event(event: DecodedEvent): void {
    if (this.#state.kind === 'connecting') return this.#firstEvent(event, this.#state.cancelTimeout);
    if (this.#state.kind !== 'open' || event.event !== 'message') return;
    if (!this.#messages.take(event)) this.#log.debug('skipped an event that is no message');
  }

  oversized(byteLength: number, ends: SkippedEnds): void {
    if (this.#state.kind === 'open') this.#messages.oversized(byteLength, ends);
  }

  /**
   * Reads the endpoint from the first event. [spec 2024-11-05 basic/transports#http-with-sse] The endpoint event comes
   * first.
   */
  #firstEvent({ event, data }: DecodedEvent, cancelTimeout: () => void): void {
    const { url } = this.#options.environment;
    if (event !== 'endpoint') {
      const message = `The server at ${showUrl(url)} began its stream with an event other than "endpoint"; it does not speak HTTP+SSE.`;
      return this.#lost(new BridgeError('ERR_UPSTREAM_PROTOCOL', message));
    }
    const endpoint = resolveEndpoint(this.#streamUrl, data.toString('utf8'));
    if (endpoint instanceof BridgeError) return this.#lost(endpoint);
    cancelTimeout();
    this.#state = { kind: 'open', endpoint: postingTo(endpoint, this.#options.environment), headers: POST_HEADERS };
    this.#options.reachable(undefined);
    this.#outbox.release();
  }

  #endpointTimedOut(): void {
    const { url } = this.#options.environment;
    const message = `The server at ${showUrl(url)} did not announce its endpoint within ${ENDPOINT_TIMEOUT_MS} ms.`;
    const data = { phase: 'endpoint', timeoutMs: ENDPOINT_TIMEOUT_MS };
    this.#lost(new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data }));
  }

  notReopened(): void {}

  ended({ error }: StreamEnd): void {
    this.#lost(error);
  }

  #received(said: Frame): void {
    if (this.#state.kind === 'closed') return;
    const frame = this.#requests.received(said, undefined);
    const id = frame === undefined ? this.#handshakeId : frame.id;
    if (said.isResponse && id !== undefined) this.#posts.findOpen(id)?.answeredElsewhere();
    // The handshake is repeated, and the new request must not wait in the outbox.
    if (frame === undefined) return this.#outbox.opened();
    const isHandshake = this.#handshakeId !== undefined && frame.isResponse && frame.id === this.#handshakeId;
    if (isHandshake && frame.kind === 'result') this.#negotiated(frame);
    this.fromServer(frame);
    if (isHandshake) this.#handshakeOver();
  }

  /**
   * Sets the revision header on further POSTs if the handshake agreed on a revision that has one, which is possible
   * over this transport too.
   */
  #negotiated(frame: Frame): void {
    if (this.#state.kind !== 'open') return;
    const revision = servedRevision(readField(frame, 'protocolVersion'));
    const { headers } = createSessionKey(undefined, revision, 0);
    this.#state.headers = { ...POST_HEADERS, ...headers };
  }

  #handshakeOver(): void {
    this.#handshakeId = undefined;
    this.#outbox.opened();
  }

  // ---- the posted messages

  #post(message: Outgoing): void {
    if (this.#state.kind !== 'open') return;
    const { endpoint, headers } = this.#state;
    const request = postRequest(endpoint.environment, message, headers);
    this.#posts.add(new PostedCall(endpoint, this, message, request));
  }

  left({ message }: PostedCall): void {
    this.#outbox.left(message);
  }

  responded({ message }: PostedCall, { status }: ResponseHead): void {
    if (status >= 200 && status < 300) this.#outbox.answered(message);
  }

  hasStream(): boolean {
    return true;
  }

  lingers(post: PostedCall): void {
    this.#posts.linger(post);
  }

  /**
   * Handles the end of a POST. The client gets the JSON-RPC error in a refusal if it answers this request, otherwise an
   * error of the bridge.
   */
  over(post: PostedCall, end: PostEnd): void {
    this.#posts.delete(post);
    if (end.kind !== 'refused' && end.kind !== 'failed') return;
    const { message } = post;
    const { frame } = message;
    this.#outbox.answered(message);
    const answer = end.kind === 'refused' ? end.refusal.frame : undefined;
    if (answer !== undefined && frame.kind === 'request' && answersId(answer.id, frame.id))
      return this.#received(answer);
    const { error } = end.kind === 'refused' ? end.refusal : end;
    if (frame.kind === 'request') return this.#unanswered(message, error);
    this.#log.warn({ code: error.code, method: frame.method }, `a message was not taken: ${error.message}`);
  }

  #unanswered({ frame, call }: Outgoing, error: BridgeError): void {
    if (call === undefined || call.state.kind === 'open') {
      this.serverFault(this.#requests.failed({ error, kind: 'error', id: frame.id }));
    }
    if (frame.method === INITIALIZE) this.#handshakeOver();
  }

  // ---- the end

  #lost(error: BridgeError): void {
    // A server that wants a login of this client was reached, and may serve others.
    this.#options.reachable(error.code === 'ERR_UPSTREAM_AUTH' ? undefined : error);
    // An error in opening the stream is reported to the client that needs it. A break is logged, because no client may
    // be waiting.
    if (this.#state.kind === 'open') this.#log.warn({ code: error.code }, `event stream lost: ${error.message}`);
    if (this.#leave()) this.serverClosed(error);
  }

  /** Returns false if the link had been closed before. */
  #leave(): boolean {
    if (this.#state.kind === 'closed') return false;
    if (this.#state.kind === 'connecting') this.#state.cancelTimeout();
    this.#state = { kind: 'closed' };
    this.#stream?.close();
    this.#outbox.close();
    this.#posts.close();
    this.#options.left();
    return true;
  }
}

/**
 * Returns the URL to which the server wants messages posted. The announced path may be any, but the origin must be that
 * of the stream: messages and credentials are meant for that server, and an attacker may be able to write to its
 * stream. `//host` names another origin and is rejected too. [spec 2024-11-05 basic/transports#http-with-sse]
 */
export function resolveEndpoint(streamUrl: URL, announced: string): URL | BridgeError {
  const text = announced.trim();
  const name = `The server at ${showUrl(streamUrl)}`;
  if (text === '' || !URL.canParse(text, streamUrl.href)) {
    return new BridgeError('ERR_UPSTREAM_PROTOCOL', `${name} announced an endpoint that is not a URL.`);
  }
  const endpoint = new URL(text, streamUrl);
  endpoint.username = '';
  endpoint.password = '';
  endpoint.hash = '';
  if (endpoint.origin === streamUrl.origin) return reachedAs(streamUrl, endpoint);
  return new BridgeError(
    'ERR_UPSTREAM_PROTOCOL',
    `${name} wants its messages posted to another origin, ${endpoint.origin}; that is refused. If it is behind a proxy, it has to know its public URL.`,
  );
}
