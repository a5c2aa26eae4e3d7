import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import { INITIALIZE } from '../../mcp/vocabulary/methods.ts';
import { LATEST_LEGACY_REVISION } from '../../mcp/vocabulary/revisions.ts';
import { requestFrame } from '../../wire/write-message.ts';
import type { Connection } from '../connection.ts';

/** Time limit for an answer. It is long, because a package runner may have to download the server first. */
const ANSWER_MS = 60_000;

export interface TryConnectionOptions {
  /** Opens a connection. May throw. */
  readonly connect: () => Connection;
  readonly clientInfo: Implementation;
  readonly clock: Clock;
  /** The connection is closed when this is aborted. */
  readonly signal: AbortSignal;
}

/**
 * Opens a connection to a server, and asks something on it. Resolves when the server answers, whatever it says. Rejects
 * with what `connect` throws, or with the reason why there was no answer.
 */
export function tryConnection({ connect, clientInfo, clock, signal }: TryConnectionOptions): Promise<void> {
  const connection = connect();
  return new Promise((resolve, reject) => {
    const end = (reason: BridgeError): void => {
      cancel();
      signal.removeEventListener('abort', abort);
      connection.close(reason);
    };
    const fail = (reason: BridgeError): void => {
      end(reason);
      reject(reason);
    };
    const abort = (): void => fail(ABORTED);
    const cancel = clock.after(ANSWER_MS, () => fail(SILENT));
    signal.addEventListener('abort', abort);
    connection.listener = {
      fromServer: (frame) => {
        if (!frame.isResponse) return;
        end(ANSWERED);
        resolve();
      },
      serverClosed: fail,
      serverFault: () => {},
      serverDrained: () => {},
    };
    const params = { protocolVersion: LATEST_LEGACY_REVISION.id, capabilities: {}, clientInfo };
    connection.send(requestFrame(0, INITIALIZE, params));
  });
}

const ANSWERED = new BridgeError('ERR_SESSION_CLOSED', 'The trial of the server has succeeded.');
const ABORTED = new BridgeError('ERR_SESSION_CLOSED', 'The trial of the server is not needed anymore.');
const SILENT = new BridgeError('ERR_UPSTREAM_TIMEOUT', `The server did not answer within ${ANSWER_MS / 1000} s.`);
