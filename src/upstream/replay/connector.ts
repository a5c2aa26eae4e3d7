import type { ReplayTarget } from '../../config/server.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError, SHUTTING_DOWN } from '../../errors.ts';
import { readFileOnDisk } from '../../io/bounded-file.ts';
import { READY, type Readiness } from '../../relay/readiness.ts';
import { IdWarnings } from '../answer-ids.ts';
import type { Connection, Connector } from '../connection.ts';
import { DuplexConnection } from '../duplex/connection.ts';
import { nameTarget } from '../name-target.ts';
import { ReplayCarrier } from './carrier.ts';
import { CallFinder } from './find-call.ts';
import { type Recording, readRecording } from './read-recording.ts';

export interface ReplayConnectorOptions {
  readonly target: ReplayTarget;
  /** How many times faster than recorded the messages of a call are sent; 0: without pauses. */
  readonly speed: number;
  readonly deps: Deps;
}

/**
 * Creates connections to a recorded server. It runs in this process and answers from the recording.
 * @throws BridgeError ERR_CONFIG_RECORDING when the recording cannot be replayed
 */
export function createReplayConnector(options: ReplayConnectorOptions): Connector {
  return new ReplayConnector(options);
}

class ReplayConnector implements Connector {
  readonly name: string;
  readonly #options: ReplayConnectorOptions;
  readonly #recording: Recording;
  readonly #finder: CallFinder;
  readonly #idWarnings: IdWarnings;
  readonly #connections = new Set<Connection>();
  #isClosed = false;

  constructor(options: ReplayConnectorOptions) {
    const { target, deps } = options;
    this.name = nameTarget(target);
    this.#options = options;
    this.#recording = readRecording(target, readFileOnDisk);
    this.#finder = new CallFinder(this.#recording.first);
    this.#idWarnings = new IdWarnings(this.name, deps.log);
    for (const warning of this.#recording.warnings) deps.log.warn(warning);
  }

  connect(): Connection {
    if (this.#isClosed) {
      throw new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down and replays nothing more.');
    }
    const { speed, deps } = this.#options;
    const { clock } = deps;
    const log = deps.log.child({ replay: this.name });
    const carried = { recording: this.#recording, finder: this.#finder, speed, clock, log };
    const connection: DuplexConnection<ReplayCarrier> = new DuplexConnection({
      idWarnings: this.#idWarnings,
      log,
      carry: (listener) =>
        new ReplayCarrier({ ...carried, closed: () => this.#connections.delete(connection) }, listener),
    });
    this.#connections.add(connection);
    return connection;
  }

  /** A recording that could be read can be replayed. */
  readiness(): Readiness {
    return READY;
  }

  async close(): Promise<void> {
    this.killNow();
  }

  killNow(): void {
    this.#isClosed = true;
    for (const connection of [...this.#connections]) connection.close(SHUTTING_DOWN);
  }
}
