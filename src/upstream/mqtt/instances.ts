import type { ReceivedMessage } from '../../mqtt/connection.ts';
import { mayBeFrom, readPresenceTopic, saysOnline } from '../../mqtt/mcp-topics.ts';

/**
 * Instances of one server that are remembered. Presences may be anybody's who may publish them, and all instances together
 * are asked for half a minute at most.
 */
const MAX_INSTANCES = 64;

/** What a presence says: an instance is online, or has left; or nothing that counts. */
export type PresenceNews =
  | { readonly kind: 'online' | 'left'; readonly serverId: string }
  | { readonly kind: 'nothing' };

const NOTHING: PresenceNews = { kind: 'nothing' };

/** The instances of a server that say that they are online. Some of them may be gone, as not every will is retained. */
export class Instances {
  readonly #serverName: string;
  /** In the order of their presences, the latest one last. True once the instance was asked. */
  readonly #asked = new Map<string, boolean>();

  constructor(serverName: string) {
    this.#serverName = serverName;
  }

  /** Takes note of a message on a presence topic. */
  note({ topic, payload, isRetained, properties }: ReceivedMessage): PresenceNews {
    const address = readPresenceTopic(topic);
    if (address?.serverName !== this.#serverName) return NOTHING;
    const { serverId } = address;
    if (!mayBeFrom(properties, 'mcp-server', serverId)) return NOTHING;
    if (payload.length === 0) {
      this.#asked.delete(serverId);
      return { kind: 'left', serverId };
    }
    if (!saysOnline(payload)) return NOTHING;
    this.add(serverId, isRetained ? 'old' : 'new');
    return { kind: 'online', serverId };
  }

  /** @param presence `new`: the instance has just come, so it is asked even if it did not answer before */
  add(serverId: string, presence: 'old' | 'new'): void {
    const wasAsked = presence === 'old' && this.#asked.get(serverId) === true;
    this.#asked.delete(serverId);
    this.#asked.set(serverId, wasAsked);
    for (const oldest of this.#asked.keys()) {
      if (this.#asked.size <= MAX_INSTANCES) break;
      this.#asked.delete(oldest);
    }
  }

  get size(): number {
    return this.#asked.size;
  }

  /** True if there is an instance that was not asked. */
  get hasNext(): boolean {
    return [...this.#asked.values()].includes(false);
  }

  /** Returns the newest instance that was not asked, and marks it. */
  next(): string | undefined {
    const [newest] = [...this.#asked].filter(([, wasAsked]) => !wasAsked).at(-1) ?? [];
    if (newest !== undefined) this.#asked.set(newest, true);
    return newest;
  }
}
