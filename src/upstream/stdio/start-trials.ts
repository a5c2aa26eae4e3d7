import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import { INITIALIZE } from '../../mcp/vocabulary/methods.ts';
import { LATEST_LEGACY_REVISION } from '../../mcp/vocabulary/revisions.ts';
import type { ServerListener, UpstreamLink } from '../../relay/ports.ts';
import { requestFrame } from '../../wire/write-message.ts';

/** Pause before the first trial, doubled after each that fails, as container platforms restart what crashes. */
const FIRST_PAUSE_MS = 10_000;
const MAX_PAUSE_MS = 5 * 60_000;
/** A package runner may have to download the server first. */
const ANSWER_MS = 60_000;

export interface StartTrialsOptions {
  /** Starts a process; may throw. The first response it gives, whatever it says, calls `served`. */
  readonly dial: (listener: ServerListener) => UpstreamLink;
  readonly clientInfo: Implementation;
  readonly clock: Clock;
}

/**
 * Starts a server that could not be started again and again, until it answers. A bridge that is not ready gets no clients
 * where a load balancer asks whether it is, so without trials nobody would find out that the server can run by now.
 */
export class StartTrials {
  readonly #options: StartTrialsOptions;
  #pauseMs = FIRST_PAUSE_MS;
  #cancelTrial: (() => void) | undefined;
  /** Ends the trial that runs. */
  #endTrial: ((reason: BridgeError) => void) | undefined;
  #isClosed = false;

  constructor(options: StartTrialsOptions) {
    this.#options = options;
  }

  /** A start has failed, that of a trial or of a client. */
  failed(): void {
    if (this.#isClosed || this.#endTrial !== undefined) return;
    this.#cancelTrial ??= this.#options.clock.after(this.#pauseMs, () => {
      this.#cancelTrial = undefined;
      this.#pauseMs = Math.min(MAX_PAUSE_MS, 2 * this.#pauseMs);
      this.#try();
    });
  }

  /** The server can run. */
  served(): void {
    this.#cancelTrial?.();
    this.#cancelTrial = undefined;
    this.#pauseMs = FIRST_PAUSE_MS;
  }

  #try(): void {
    const { dial, clientInfo, clock } = this.#options;
    const over = (): void => {
      cancel();
      this.#endTrial = undefined;
    };
    const cancel = clock.after(ANSWER_MS, () => this.#endTrial?.(SILENT));
    let link: UpstreamLink;
    try {
      link = dial({
        fromServer: (frame) => {
          if (frame.isResponse) this.#endTrial?.(ANSWERED);
        },
        serverClosed: () => {
          over();
          this.failed();
        },
        serverFault: () => {},
        serverDrained: () => {},
      });
    } catch {
      // The dialer has told what is wrong with the command. Where it is only that too much runs, it is tried later.
      cancel();
      return this.failed();
    }
    this.#endTrial = (reason) => {
      over();
      link.close(reason);
    };
    const params = { protocolVersion: LATEST_LEGACY_REVISION.id, capabilities: {}, clientInfo };
    link.send(requestFrame(0, INITIALIZE, params));
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelTrial?.();
    this.#endTrial?.(ANSWERED);
  }
}

const ANSWERED = new BridgeError('ERR_SESSION_CLOSED', 'The trial start of the server has succeeded.');
const SILENT = new BridgeError('ERR_UPSTREAM_TIMEOUT', `The server did not answer within ${ANSWER_MS / 1000} s.`);
