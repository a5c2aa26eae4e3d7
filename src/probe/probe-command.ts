import type { ChildConfig, CommandTarget, Protocol, ServerLimits } from '../config.ts';
import type { Deps } from '../deps.ts';
import { createModernRequest } from '../mcp/vocabulary/discover.ts';
import type { Implementation } from '../mcp/vocabulary/meta.ts';
import { INITIALIZED } from '../mcp/vocabulary/methods.ts';
import { mayDownload } from '../process/command-name.ts';
import type { UpstreamDialer } from '../relay/ports.ts';
import { type LinkAnswer, LinkClient } from '../upstream/detect/ask/link-client.ts';
import { detectStdio, PROBE_TIMEOUT_MS, type StdioDetection } from '../upstream/detect/attempts/detect-stdio.ts';
import { untilAborted } from '../upstream/detect/attempts/wait.ts';
import { VerdictCache } from '../upstream/detect/verdict-cache.ts';
import { createStdioDialer } from '../upstream/stdio/dialer.ts';
import type { Frame } from '../wire/frame.ts';
import { requestFrame } from '../wire/write-message.ts';
import { createInitializeRequest, type Findings, STEP_TIMEOUT_MS } from './findings.ts';
import { OfferDraft, takeInventory } from './offer-draft.ts';
import type { Step } from './report.ts';

export interface CommandProbeOptions {
  readonly target: CommandTarget;
  readonly child: ChildConfig;
  readonly protocol: Protocol;
  readonly limits: ServerLimits;
  readonly timeoutMs: number;
  readonly clientInfo: Implementation;
  readonly findings: Findings;
  readonly signal: AbortSignal;
  readonly deps: Deps;
}

/** Somebody waits for the report, and nothing is open any more that a server would need its time for. */
const CLOSE_GRACE_MS = 2000;

/** Starts a server, asks it in the era it speaks, and sees whether it speaks the other one, too. */
export class CommandProbe {
  readonly #options: CommandProbeOptions;
  readonly #findings: Findings;
  readonly #dialer: UpstreamDialer;

  /** Throws BridgeError ERR_UPSTREAM_SPAWN when there is no such program. */
  constructor(options: CommandProbeOptions) {
    const { target, child, limits, findings, deps } = options;
    const { maxMessageBytes } = limits;
    this.#options = options;
    this.#findings = findings;
    this.#dialer = createStdioDialer({
      target,
      child,
      maxMessageBytes,
      shutdownGraceMs: CLOSE_GRACE_MS,
      // The report says it.
      failureLevel: 'debug',
      deps,
    });
  }

  /** Rejects when the time is up, or with a BridgeError when the server does not get as far as an answer. */
  async run(): Promise<void> {
    if (this.#options.protocol === 'legacy') return this.#legacy();
    const detection = await this.#detect();
    if (detection.era === 'legacy') {
      const offer = this.#findings.offer(new OfferDraft('stdio', 'legacy'));
      return this.#legacyWorks(offer, detection.connection, detection.handshake);
    }
    await this.#modernWorks(detection);
    detection.connection.close();
    // A process of both eras serves the one it was opened in; the other needs a process of its own.
    if (this.#options.protocol === 'auto') await this.#legacy();
  }

  /** Ends the server. */
  close(): Promise<void> {
    return this.#dialer.close();
  }

  async #detect(): Promise<StdioDetection> {
    const { clientInfo, deps, signal, timeoutMs } = this.#options;
    const { name } = this.#dialer;
    this.#findings.steps.waitFor(`${name} to answer${mayDownload(name) ? '; a package may be downloading' : ''}`);
    const detected = detectStdio({
      dialer: this.#dialer,
      clientInfo,
      clock: deps.clock,
      log: deps.log,
      verdicts: new VerdictCache(deps.clock),
      key: '',
      // What comes of the ending of a server is no answer.
      note: (step: Step) => {
        if (!signal.aborted) this.#findings.steps.add(step);
      },
      // Half of the time is for what comes after a server that does not answer.
      probeTimeoutMs: Math.min(PROBE_TIMEOUT_MS, timeoutMs / 2),
      // Slow to start is not broken; the time limit of the whole counts.
      handshakeTimeoutMs: timeoutMs,
    }).then(
      (detection) => ({ detection }),
      (thrown: unknown) => ({ thrown }),
    );
    const outcome = await untilAborted(detected, signal);
    if ('thrown' in outcome) throw outcome.thrown;
    return outcome.detection;
  }

  async #modernWorks({ connection, ...detection }: StdioDetection): Promise<void> {
    if (detection.era !== 'modern') return;
    const { revision, discovery } = detection;
    const { clientInfo } = this.#options;
    const offer = this.#findings.offer(new OfferDraft('stdio', 'modern'));
    offer.discovered(revision, discovery);
    await takeInventory(offer, this.#findings, (method, params) =>
      this.#ask(connection, createModernRequest({ id: connection.takeId(), method, revision, clientInfo, params })),
    );
  }

  async #legacy(): Promise<void> {
    const client = new LinkClient(this.#dialer, this.#options.deps.clock);
    const offer = this.#findings.offer(new OfferDraft('stdio', 'legacy'));
    const frame = createInitializeRequest(client.takeId(), this.#options.clientInfo);
    // Slow to start is not broken; the time limit of the whole counts.
    const { outcome, words, error } = await this.#ask(client, frame, this.#options.timeoutMs);
    offer.saw = words;
    if (outcome.kind === 'result') return this.#legacyWorks(offer, client, outcome.result);
    if (error !== undefined) throw error;
  }

  async #legacyWorks(offer: OfferDraft, client: LinkClient, handshake: unknown): Promise<void> {
    offer.accepted(handshake, this.#findings);
    client.notify(INITIALIZED);
    await takeInventory(offer, this.#findings, (method, params) =>
      this.#ask(client, requestFrame(client.takeId(), method, params)),
    );
  }

  #ask(client: LinkClient, frame: Frame, timeoutMs = STEP_TIMEOUT_MS): Promise<LinkAnswer> {
    const { signal } = this.#options;
    return this.#findings.steps.run(frame.method ?? '', () => untilAborted(client.ask(frame, timeoutMs), signal));
  }
}
