import { type LogLevel, severityOf } from '../../mcp/vocabulary/log-levels.ts';

/** Each client's log level, and the one the server must have so that nobody misses anything. */
export class LogLevels<Client> {
  readonly #levels = new Map<Client, LogLevel>();

  get(client: Client): LogLevel | undefined {
    return this.#levels.get(client);
  }

  /** Undefined: as if it had never asked. */
  set(client: Client, level: LogLevel | undefined): void {
    if (level === undefined) this.#levels.delete(client);
    else this.#levels.set(client, level);
  }

  /** The most verbose level any client asked for; undefined: nobody asked. */
  mostVerbose(): LogLevel | undefined {
    let most: LogLevel | undefined;
    for (const level of this.#levels.values()) {
      if (most === undefined || severityOf(level) < severityOf(most)) most = level;
    }
    return most;
  }

  /** A client that never set a level gets no log messages of a shared server: they may be about somebody else. */
  wants(client: Client, level: LogLevel): boolean {
    const wanted = this.#levels.get(client);
    return wanted !== undefined && severityOf(level) >= severityOf(wanted);
  }
}
