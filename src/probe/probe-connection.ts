import type { Protocol } from '../config/server.ts';
import type { Deps } from '../deps.ts';
import { classifyInitialize, type ProbeOutcome } from '../mcp/classify/probe-answer.ts';
import { createModernRequest, parseDiscovery } from '../mcp/vocabulary/discover.ts';
import type { Implementation } from '../mcp/vocabulary/meta.ts';
import { INITIALIZED } from '../mcp/vocabulary/methods.ts';
import type { Era } from '../mcp/vocabulary/revisions.ts';
import { toPrintable } from '../printable.ts';
import { mayDownload } from '../process/command-name.ts';
import type { DuplexTransport } from '../relay/observer.ts';
import type { Connector } from '../upstream/connection.ts';
import type { Answer } from '../upstream/detect/answer.ts';
import {
  ConnectionAttempts,
  DISCOVER_TIMEOUT_MS,
  initializeAs,
  OF_REQUEST,
} from '../upstream/detect/connection-attempts.ts';
import { untilAborted } from '../upstream/detect/deadline.ts';
import { type Detection, detect } from '../upstream/detect/detection.ts';
import { Prober } from '../upstream/detect/prober.ts';
import type { Frame } from '../wire/frame.ts';
import { requestFrame } from '../wire/write-message.ts';
import { createInitializeRequest, type Findings, STEP_TIMEOUT_MS } from './findings.ts';
import { OfferDraft, takeInventory } from './offer-draft.ts';
import type { Step } from './report.ts';

/** Longest list of revisions that is shown. */
const MAX_REVISIONS_LENGTH = 100;

export interface ConnectionProbeOptions {
  /** Closed by the probe. */
  readonly connector: Connector;
  readonly transport: DuplexTransport;
  readonly protocol: Protocol;
  readonly timeoutMs: number;
  readonly clientInfo: Implementation;
  readonly findings: Findings;
  readonly signal: AbortSignal;
  readonly deps: Deps;
}

/** Connects to a server, probes it in the era that it speaks, and checks whether it also speaks the other one. */
export class ConnectionProbe {
  readonly #options: ConnectionProbeOptions;
  readonly #findings: Findings;
  readonly #connector: Connector;

  constructor(options: ConnectionProbeOptions) {
    this.#options = options;
    this.#findings = options.findings;
    this.#connector = options.connector;
  }

  /** Rejects when the time is up, or with a BridgeError if the server fails before it responds. */
  async run(): Promise<void> {
    if (this.#options.protocol === 'legacy') return this.#legacy();
    const { detection, connection } = await this.#detect();
    switch (detection.kind) {
      case 'legacy': {
        const offer = this.#findings.offer(this.#draft('legacy'));
        return this.#legacyWorks(offer, connection, resultOf(detection.answer));
      }
      case 'modern':
        await this.#modernWorks(detection, connection);
        connection.close();
        // A server of both eras keeps a connection in the era in which it was opened; the other era needs a new
        // connection.
        if (this.#options.protocol === 'auto') await this.#legacy();
    }
  }

  #draft(era: Era): OfferDraft {
    return new OfferDraft(this.#options.transport, era);
  }

  /** Ends the server process, or the connections to the server. */
  close(): Promise<void> {
    return this.#connector.close();
  }

  async #detect(): Promise<{ detection: Spoken; connection: Prober }> {
    const { transport, clientInfo, deps, signal, timeoutMs } = this.#options;
    const { clock, log } = deps;
    const { name } = this.#connector;
    this.#findings.steps.waitFor(`${name} to answer${mayDownload(name) ? '; a package may be downloading' : ''}`);
    const connectAnew = (): Prober => new Prober(this.#connector, clock);
    const options = {
      name,
      transport,
      clientInfo,
      // Half of the time is left for the handshake with a server that does not answer the probe.
      probeTimeoutMs: Math.min(DISCOVER_TIMEOUT_MS, timeoutMs / 2),
      // A server may be slow to start, so only the overall time limit applies.
      initialize: initializeAs(clientInfo, {}, timeoutMs),
      connectAnew,
      signal,
    };
    const attempts = new ConnectionAttempts(options, connectAnew());
    const tried: Step[] = [];
    const note = (step: Step): void => {
      tried.push(step);
      this.#findings.steps.add(step);
    };
    const detection = await detect({ attempts, order: OF_REQUEST, goal: 'session', note, clock, log, signal });
    if (detection.kind === 'refused') throw attempts.nothingFound(tried);
    return { detection, connection: attempts.prober };
  }

  async #modernWorks({ revision, answer }: ModernDetection, connection: Prober): Promise<void> {
    const { clientInfo } = this.#options;
    const offer = this.#findings.offer(this.#draft('modern'));
    offer.discovered(revision, parseDiscovery(resultOf(answer)));
    await takeInventory(offer, this.#findings, (method, params) =>
      this.#ask(connection, createModernRequest({ id: connection.takeId(), method, revision, clientInfo, params })),
    );
  }

  async #legacy(): Promise<void> {
    const client = new Prober(this.#connector, this.#options.deps.clock);
    const offer = this.#findings.offer(this.#draft('legacy'));
    const frame = createInitializeRequest(client.takeId(), this.#options.clientInfo);
    // A server may be slow to start, so only the overall time limit applies.
    const { outcome, summary, error } = await this.#ask(client, frame, this.#options.timeoutMs);
    offer.saw = summary;
    if (outcome.kind === 'result') return this.#legacyWorks(offer, client, outcome.result);
    if (error !== undefined) throw error;
    const verdict = classifyInitialize(outcome);
    if (verdict.kind !== 'modern' || this.#options.protocol !== 'legacy') return;
    const supported = toPrintable(verdict.supported.join(', '), MAX_REVISIONS_LENGTH);
    this.#findings.problem(`It speaks only ${supported}, which is not looked for here. Add --protocol modern.`);
  }

  async #legacyWorks(offer: OfferDraft, client: Prober, handshake: unknown): Promise<void> {
    offer.accepted(handshake, this.#findings);
    client.notify(INITIALIZED);
    await takeInventory(offer, this.#findings, (method, params) =>
      this.#ask(client, requestFrame(client.takeId(), method, params)),
    );
  }

  #ask(client: Prober, frame: Frame, timeoutMs = STEP_TIMEOUT_MS): Promise<Answer<ProbeOutcome>> {
    const { signal } = this.#options;
    return this.#findings.steps.run(frame.method ?? '', () => untilAborted(client.ask(frame, timeoutMs), signal));
  }
}

type Spoken = Exclude<Detection, { readonly kind: 'refused' }>;
type ModernDetection = Extract<Detection, { readonly kind: 'modern' }>;

/** Returns undefined if the server revealed its era by an error. */
function resultOf({ outcome }: Answer): unknown {
  return outcome.kind === 'result' ? outcome.result : undefined;
}
