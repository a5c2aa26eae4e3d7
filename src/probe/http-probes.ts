import type { RemoteConfig } from '../config/remote.ts';
import type { Protocol } from '../config/server.ts';
import type { Deps } from '../deps.ts';
import type { HttpClient } from '../http/client/client.ts';
import { SessionCookies } from '../http/client/cookies.ts';
import type { Credentials } from '../http/client/credentials.ts';
import type { ResponseHead } from '../http/client/http-call.ts';
import { askForTls } from '../http/client/network-error.ts';
import { showUrl } from '../http/shown-url.ts';
import {
  classifyInitialize,
  classifyProbe,
  type InitializeVerdict,
  type ProbeOutcome,
  type ProbeVerdict,
} from '../mcp/classify/probe-answer.ts';
import {
  createDiscoverRequest,
  createModernRequest,
  modernHeaders,
  parseDiscovery,
} from '../mcp/vocabulary/discover.ts';
import { isSessionId, SESSION_ID_HEADER } from '../mcp/vocabulary/headers.ts';
import type { Implementation } from '../mcp/vocabulary/meta.ts';
import { DISCOVER, INITIALIZE, INITIALIZED } from '../mcp/vocabulary/methods.ts';
import { LATEST_MODERN_REVISION, servedRevision } from '../mcp/vocabulary/revisions.ts';
import { type Answer, describeStatus } from '../upstream/detect/answer.ts';
import { askBesideStream, askEventStream, askHttp, type HttpTarget, SILENCE_MS } from '../upstream/detect/ask-url.ts';
import { untilAborted } from '../upstream/detect/deadline.ts';
import { Prober } from '../upstream/detect/prober.ts';
import { createHttpSseConnector } from '../upstream/http-sse/connector.ts';
import { endSession } from '../upstream/remote/end-session.ts';
import { createSessionKey, type SessionKey } from '../upstream/remote/session-key.ts';
import { Reachability } from '../upstream/resilience/reachability.ts';
import type { Frame } from '../wire/frame.ts';
import { EnvelopeScanner } from '../wire/scan-envelope.ts';
import { notificationFrame, requestFrame } from '../wire/write-message.ts';
import { findAuthorization } from './authorization.ts';
import { createInitializeRequest, type Findings, STEP_TIMEOUT_MS, STREAM_TIMEOUT_MS } from './findings.ts';
import { OfferDraft, takeInventory } from './offer-draft.ts';
import { type BridgeState, findBridgeState } from './starting-bridge.ts';

export interface HttpProbeOptions {
  readonly url: URL;
  readonly protocol: Protocol;
  readonly remote: RemoteConfig;
  readonly http: HttpClient;
  /** The credentials that `http` uses; the probe closes both. */
  readonly credentials: Credentials | undefined;
  readonly maxMessageBytes: number;
  readonly clientInfo: Implementation;
  readonly findings: Findings;
  readonly signal: AbortSignal;
  /** Lets the whole probe take so much longer than its time limit. */
  readonly allowMore: (ms: number) => void;
  readonly deps: Deps;
}

/** `over`: further attempts would have the same outcome. `http-sse`: only this transport is worth trying. */
export type Progress = 'go-on' | 'over' | 'http-sse';

/**
 * The time for a POST's response, close to the step's own time limit: the report should cover everything a slow server
 * supports.
 */
const SLOW_ANSWER_MS = STEP_TIMEOUT_MS - SILENCE_MS - 1000;

/** Time for the first answer of another mcp-portage at the URL, by the state of its server. */
const BRIDGE_ANSWER_MS: Readonly<Record<BridgeState, number>> = { starting: 5 * 60_000, ready: 60_000 };

const AWAITED: Readonly<Record<BridgeState, string>> = {
  starting: 'mcp-portage at this URL to start its server',
  ready: 'mcp-portage at this URL to start a process for this client',
};

/** The client, the findings and the cleanups for all attempts at one URL. */
export class HttpProbe {
  readonly options: HttpProbeOptions;
  readonly findings: Findings;
  readonly target: HttpTarget;
  readonly #cleanups: (() => Promise<void>)[] = [];
  #nextId = 1;
  #answerMs = STEP_TIMEOUT_MS;

  constructor(options: HttpProbeOptions) {
    const { url, http, maxMessageBytes, findings } = options;
    this.options = options;
    this.findings = findings;
    this.target = { http, url, cookies: new SessionCookies(), forwarded: undefined, maxMessageBytes };
  }

  takeId(): number {
    return this.#nextId++;
  }

  /** Rejects when the time is up, like all methods here. */
  post(frame: Frame, headers: Readonly<Record<string, string>>): Promise<Answer<ProbeOutcome>> {
    return this.findings.steps.run(`POST ${frame.method}`, () => this.#post(frame, headers, this.options.signal));
  }

  /** Sends the first request of a transport, whose outcome may show that the server only supports HTTP+SSE. */
  postFirst(frame: Frame, headers: Readonly<Record<string, string>>): Promise<Answer<ProbeOutcome>> {
    const { steps } = this.findings;
    const { signal, allowMore } = this.options;
    return steps.run(`POST ${frame.method}`, async () => {
      if (this.#answerMs > STEP_TIMEOUT_MS) return this.#post(frame, headers, signal);
      const ask = (signal: AbortSignal) => this.#post(frame, headers, signal);
      const answer = await askBesideStream(this.target, signal, ask, SLOW_ANSWER_MS);
      const isSilent = answer.outcome.kind === 'silence' || answer.outcome.kind === 'http-sse';
      const bridge = isSilent ? await findBridgeState(this.target) : undefined;
      if (bridge === undefined) return answer;
      // A bridge serves its clients as soon as its own server runs, which may be started for each of them.
      this.#answerMs = BRIDGE_ANSWER_MS[bridge];
      allowMore(this.#answerMs);
      steps.waitFor(AWAITED[bridge]);
      return this.#post(frame, headers, signal);
    });
  }

  /** Time limit for the answer to one request. */
  get answerMs(): number {
    return this.#answerMs;
  }

  #post(frame: Frame, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Answer<ProbeOutcome>> {
    return askHttp(this.target, { frame, headers, timeoutMs: this.#answerMs, signal });
  }

  /** Records an outcome that does not open the transport, and returns how to go on. */
  async refused(
    request: string,
    { kind }: ProbeVerdict | InitializeVerdict,
    { head, summary, error }: Pick<Answer, 'head' | 'summary' | 'error'>,
  ): Promise<Progress> {
    if (kind === 'unreachable') {
      if (error === undefined) this.findings.problem(summary);
      else this.findings.failure(error);
      return 'over';
    }
    if (kind === 'http-sse') return 'http-sse';
    if (kind === 'failing' || kind === 'busy') {
      this.findings.problem(`${request} fails: ${summary}${askForTls(this.options.url, error?.data?.cause)}.`);
    }
    // Another transport may still work, since some gateways reject only methods they do not know.
    if (kind === 'unauthorized' && head !== undefined && this.findings.authorization === undefined) {
      const { signal } = this.options;
      const { steps } = this.findings;
      this.findings.authorization = await findAuthorization({ target: this.target, head, steps, signal });
    }
    return 'go-on';
  }

  /** Adds a cleanup that runs at the end, even after the time limit. */
  onClose(cleanup: () => Promise<void>): void {
    this.#cleanups.push(cleanup);
  }

  async close(): Promise<void> {
    await Promise.all(this.#cleanups.splice(0).map((cleanup) => cleanup()));
  }
}

const EVENT_STREAM = 'GET for an event stream';

/** Probes HTTP+SSE: first checks the stream, then opens a session over it. */
export async function probeHttpSse(probe: HttpProbe): Promise<Progress> {
  const { findings, options, target } = probe;
  const { signal, deps, clientInfo, http, remote, maxMessageBytes } = options;
  const offer = findings.offer(new OfferDraft('http-sse', 'legacy'));
  const stream = await findings.steps.run(EVENT_STREAM, () =>
    askEventStream(target, { headers: {}, until: 'endpoint', timeoutMs: STEP_TIMEOUT_MS, signal }),
  );
  offer.saw = stream.summary;
  if (stream.outcome.kind !== 'found') {
    // If POST works, clients do not need this stream, so a failure of it is no problem to report.
    if (findings.offers.some((other) => other.works)) return 'go-on';
    return probe.refused(EVENT_STREAM, classifyInitialize(stream.outcome), stream);
  }

  const { url } = target;
  const { timeouts } = remote;
  const scanner = new EnvelopeScanner();
  const reachability = new Reachability({ name: showUrl(url), attempt: undefined, deps });
  const dialer = createHttpSseConnector({
    ...{ url, http, timeouts, maxMessageBytes, tracing: 'off', scanner, reachability, deps },
  });
  const client = new Prober(dialer, deps.clock);
  probe.onClose(async () => client.close());
  const ask = (frame: Frame): Promise<Answer<ProbeOutcome>> =>
    findings.steps.run(`${frame.method} over HTTP+SSE`, () => untilAborted(client.ask(frame, probe.answerMs), signal));

  const { outcome, summary } = await ask(createInitializeRequest(client.takeId(), clientInfo));
  offer.saw = summary;
  if (outcome.kind !== 'result') {
    findings.problem(`It announces an endpoint for HTTP+SSE, but initialize over it fails: ${summary}.`);
    return 'go-on';
  }
  offer.accepted(outcome.result, findings);
  offer.session = 'session';
  client.notify(INITIALIZED);
  await takeInventory(offer, findings, (method, params) => ask(requestFrame(client.takeId(), method, params)));
  return 'go-on';
}

/** Probes Streamable HTTP of the modern era, which uses one POST for each request. */
export async function probeModernHttp(probe: HttpProbe): Promise<Progress> {
  const offer = probe.findings.offer(new OfferDraft('streamable-http', 'modern'));
  const { answer, verdict } = await discover(probe, LATEST_MODERN_REVISION, false);
  offer.saw = answer.summary;
  if (verdict.kind === 'modern') {
    await inspect(probe, offer, answer, verdict.revision);
    return 'go-on';
  }
  if (verdict.kind === 'no-common-revision') {
    offer.supportedRevisions = verdict.supported;
    probe.findings.problem(`It speaks only modern revisions that are not known here: ${verdict.supported.join(', ')}.`);
  }
  return probe.refused(`POST ${DISCOVER}`, verdict, answer);
}

interface Discovered {
  readonly answer: Answer<ProbeOutcome>;
  readonly verdict: ProbeVerdict;
}

async function discover(probe: HttpProbe, revision: string, isRetry: boolean): Promise<Discovered> {
  const frame = createDiscoverRequest({ id: probe.takeId(), revision, clientInfo: probe.options.clientInfo });
  const answer = await probe.postFirst(frame, modernHeaders(DISCOVER, revision));
  const verdict = classifyProbe(answer.outcome, { carrier: 'http', requested: revision, isRetry });
  if (verdict.kind === 'modern-retry') return discover(probe, verdict.revision, true);
  if (verdict.kind !== 'headers-lost') return { answer, verdict };
  probe.findings.problem('Something on the way to the server takes the headers out of modern requests.');
  return discover(probe, revision, true);
}

async function inspect(
  probe: HttpProbe,
  offer: OfferDraft,
  { outcome }: Answer<ProbeOutcome>,
  revision: string,
): Promise<void> {
  const discovery = outcome.kind === 'result' ? parseDiscovery(outcome.result) : undefined;
  offer.discovered(revision, discovery);
  if (discovery === undefined) {
    probe.findings.problem('It answers server/discover with an error that only the modern era has, not with a result.');
  }
  const { clientInfo } = probe.options;
  await takeInventory(offer, probe.findings, (method, params) => {
    const frame = createModernRequest({ id: probe.takeId(), method, revision, clientInfo, params });
    return probe.post(frame, modernHeaders(method, revision));
  });
}

/** Probes Streamable HTTP with a handshake, with or without a session. */
export async function probeStreamable(probe: HttpProbe): Promise<Progress> {
  const { findings } = probe;
  const offer = findings.offer(new OfferDraft('streamable-http', 'legacy'));
  const answer = await probe.postFirst(createInitializeRequest(probe.takeId(), probe.options.clientInfo), {});
  const { outcome, summary, head } = answer;
  offer.saw = summary;
  const verdict = classifyInitialize(outcome);
  if (outcome.kind !== 'result') return probe.refused(`POST ${INITIALIZE}`, verdict, answer);
  offer.accepted(outcome.result, findings);
  const key = openSession(probe, offer, head);
  await sayInitialized(probe, key);
  await takeInventory(offer, findings, (method, params) =>
    probe.post(requestFrame(probe.takeId(), method, params), key.headers),
  );
  await tryServerStream(probe, offer, key);
  return 'go-on';
}

function openSession(probe: HttpProbe, offer: OfferDraft, head: ResponseHead | undefined): SessionKey {
  const offered = head?.headers[SESSION_ID_HEADER];
  const id = isSessionId(offered) ? offered : undefined;
  if (offered !== undefined && id === undefined) {
    probe.findings.problem('It gives a session id that cannot be sent back.');
  }
  offer.session = id === undefined ? 'stateless' : 'session';
  const key = createSessionKey(id, servedRevision(offer.revision), 0);
  if (id !== undefined) {
    probe.onClose(async () => {
      const { clock } = probe.options.deps;
      const startedMs = clock.now();
      const status = await endSession(probe.target, key.headers);
      const saw = status === undefined ? 'no answer' : describeStatus(status);
      probe.findings.steps.add({ request: 'DELETE', saw, status, tookMs: clock.now() - startedMs });
    });
  }
  return key;
}

async function sayInitialized(probe: HttpProbe, { headers }: SessionKey): Promise<void> {
  const { head, summary } = await probe.post(notificationFrame(INITIALIZED), headers);
  if (head !== undefined && head.status < 300) return;
  probe.findings.problem(`It does not take ${INITIALIZED}: ${summary}. Some clients give up on that.`);
}

/** Statuses of servers that do not offer the stream. */
const WITHOUT_STREAM: ReadonlySet<number> = new Set([400, 404, 405, 501]);

/** [spec 2025-11-25 transports#listening-for-messages-from-the-server] a server need not offer one. */
async function tryServerStream(probe: HttpProbe, offer: OfferDraft, { headers }: SessionKey): Promise<void> {
  const question = { headers, until: 'open', timeoutMs: STREAM_TIMEOUT_MS, signal: probe.options.signal } as const;
  const { outcome, summary } = await probe.findings.steps.run('GET for an event stream, in the session', () =>
    askEventStream(probe.target, question),
  );
  if (outcome.kind === 'found') {
    offer.serverStream = 'offered';
  } else if (outcome.kind === 'status' && WITHOUT_STREAM.has(outcome.http.status)) {
    offer.serverStream = 'not-offered';
  } else {
    offer.serverStream = 'failing';
    probe.findings.problem(
      `Calls by POST work, but the stream by GET fails: ${summary}. What the server says outside of calls (changed lists, updated resources) does not arrive.`,
    );
  }
}
