import type { Logger } from 'pino';
import { BridgeError } from '../../errors.ts';
import { stripMetadata } from '../../mcp/request-metadata.ts';
import type { LegacyPool, SessionWanted } from '../../relay/legacy-pool.ts';
import type { Frame } from '../../wire/frame.ts';
import { LegacySeat } from './legacy-seat.ts';

export interface NotificationWay {
  readonly pool: LegacyPool;
  readonly wanted: SessionWanted;
  readonly log: Logger;
}

/** Sends a vendor's notification to a session of its client, as soon as there is one. Nobody waits for it. */
export function passNotification(notification: Frame, { pool, wanted, log }: NotificationWay): void {
  const leave = (): void => seat.close(SENT);
  const seat = new LegacySeat({
    opened: () => {
      seat.send(stripMetadata(notification));
      leave();
    },
    refused: leave,
    lost: leave,
    fromServer: () => {},
    serverDrained: () => {},
  });
  try {
    seat.open(pool, wanted);
  } catch (thrown) {
    log.debug({ err: thrown }, 'notification dropped: the server cannot be reached');
  }
}

const SENT = new BridgeError('ERR_SESSION_CLOSED', 'There was only a notification to send.');
