import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import { INITIALIZE } from '../../mcp/vocabulary/methods.ts';
import { LATEST_LEGACY_REVISION } from '../../mcp/vocabulary/revisions.ts';
import { requestFrame } from '../../wire/write-message.ts';
import type { Connection } from '../connection.ts';

/** Pause before the first trial. It doubles after each failure, as in the restarts of container platforms. */
const FIRST_PAUSE_MS = 10_000;
const MAX_PAUSE_MS = 5 * 60_000;
/** Time limit for an answer. It is long, because a package runner may have to download the server first. */
const ANSWER_MS = 60_000;

export interface StartTrialsOptions {
  /** Starts a process; may throw. The process's first response, whatever it says, leads to a call of `served`. */
  readonly connect: () => Connection;
  readonly clientInfo: Implementation;
  readonly clock: Clock;
}

/**
 * Repeats the start of a server that failed to start, until the server answers. A load balancer sends no clients to a
 * bridge that is not ready, so without trials the bridge would not notice that the server can run again.
 */
export class StartTrials {
  readonly #options: StartTrialsOptions;
  #pauseMs = FIRST_PAUSE_MS;
  #cancelTrial: (() => void) | undefined;
  /** Ends the current trial, if there is one. */
  #endTrial: ((reason: BridgeError) => void) | undefined;
  #isClosed = false;

  constructor(options: StartTrialsOptions) {
    this.#options = options;
  }

  /** Call this when a start has failed, whether for a trial or for a client. */
  failed(): void {
    if (this.#isClosed || this.#endTrial !== undefined) return;
    this.#cancelTrial ??= this.#options.clock.after(this.#pauseMs, () => {
      this.#cancelTrial = undefined;
      this.#pauseMs = Math.min(MAX_PAUSE_MS, 2 * this.#pauseMs);
      this.#try();
    });
  }

  /** Call this when the server has answered. */
  served(): void {
    this.#cancelTrial?.();
    this.#cancelTrial = undefined;
    this.#pauseMs = FIRST_PAUSE_MS;
  }

  #try(): void {
    const { connect, clientInfo, clock } = this.#options;
    const over = (): void => {
      cancel();
      this.#endTrial = undefined;
    };
    const cancel = clock.after(ANSWER_MS, () => this.#endTrial?.(SILENT));
    let connection: Connection;
    try {
      connection = connect();
    } catch {
      // The dialer has reported what is wrong with the command. If the start failed only because of a limit, it is
      // repeated later.
      cancel();
      return this.failed();
    }
    this.#endTrial = (reason) => {
      over();
      connection.close(reason);
    };
    connection.listener = {
      fromServer: (frame) => {
        if (frame.isResponse) this.#endTrial?.(ANSWERED);
      },
      serverClosed: () => {
        over();
        this.failed();
      },
      serverFault: () => {},
      serverDrained: () => {},
    };
    const params = { protocolVersion: LATEST_LEGACY_REVISION.id, capabilities: {}, clientInfo };
    connection.send(requestFrame(0, INITIALIZE, params));
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelTrial?.();
    this.#endTrial?.(ANSWERED);
  }
}

const ANSWERED = new BridgeError('ERR_SESSION_CLOSED', 'The trial start of the server has succeeded.');
const SILENT = new BridgeError('ERR_UPSTREAM_TIMEOUT', `The server did not answer within ${ANSWER_MS / 1000} s.`);
