import { RecentNames } from '../collections/bounded-collections.ts';
import type { CreateGuard } from '../upstream/connection.ts';
import { PinFile, type PinFileDeps } from './pin-file.ts';
import { KnownTools, PinGuard } from './pin-guard.ts';
import { PinnedServer } from './pinned-server.ts';

/** Callers whose tools are remembered, where each request has a connection of its own. Later ones replace the first. */
const CALLER_LIMITS = { count: 256, length: 64 * 1024 };

/** The files with pins that this process uses, each of which may serve several servers. */
export class PinFiles {
  readonly #deps: PinFileDeps;
  readonly #open = new Map<string, PinFile>();

  constructor(deps: PinFileDeps) {
    this.#deps = deps;
  }

  /**
   * Returns a function that guards the connections of one server by the pins in a file. Throws ERR_CONFIG_PINS if the
   * file is damaged.
   * @param server its name in the configuration file, its command or its URL
   */
  createGuards(path: string, server: string, deps: PinFileDeps): CreateGuard {
    const file = this.#open.get(path) ?? new PinFile(path, this.#deps);
    this.#open.set(path, file);
    const pins = new PinnedServer(file, server, deps.log);
    const byCaller = new RecentNames<KnownTools>(CALLER_LIMITS);
    return (connection, principal) => {
      const known = principal === undefined ? undefined : byCaller.get(principal);
      const tools = known ?? new KnownTools();
      if (principal !== undefined) byCaller.set(principal, tools, principal.length);
      return new PinGuard({ connection, pins, tools, deps });
    };
  }

  /** Resolves when everything noted was written, as far as possible. */
  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map((file) => file.close()));
  }
}
