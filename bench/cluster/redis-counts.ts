import { Redis } from 'ioredis';

/** What Redis has been asked by the replicas, and what it holds for them. */
export interface RedisCounts {
  readonly commands: number;
  /** In both directions. */
  readonly bytes: number;
  readonly memoryBytes: number;
}

/**
 * What a replica sends while it runs. Redis counts the commands that scripts run as well, which cross no network; no script
 * runs any of these.
 */
const SENT = ['evalsha', 'eval', 'hmget', 'xrange'];

/** Counts what passes between replicas and a Redis that nobody else uses. */
export class RedisMeter {
  readonly #client: Redis;

  constructor(url: URL) {
    this.#client = new Redis(url.href);
  }

  async read(): Promise<RedisCounts> {
    const stats = await this.#client.info('commandstats');
    const commands = [...stats.matchAll(/^cmdstat_(\S+):calls=(\d+)/gm)].reduce(
      (sum, [, name = '', calls]) => (SENT.includes(name) ? sum + Number(calls) : sum),
      0,
    );
    const traffic = await this.#client.info('stats');
    const bytes = numberIn(traffic, 'total_net_input_bytes') + numberIn(traffic, 'total_net_output_bytes');
    return { commands, bytes, memoryBytes: numberIn(await this.#client.info('memory'), 'used_memory') };
  }

  /** What `work` has made replicas ask. The answers to this meter's own questions are taken off. */
  async during(work: () => Promise<void>): Promise<RedisCounts> {
    const first = await this.read();
    const second = await this.read();
    await work();
    const last = await this.read();
    const ownBytes = second.bytes - first.bytes;
    return {
      commands: last.commands - second.commands,
      bytes: Math.max(0, last.bytes - second.bytes - ownBytes),
      memoryBytes: last.memoryBytes - second.memoryBytes,
    };
  }

  async version(): Promise<string> {
    return /^redis_version:(\S+)/m.exec(await this.#client.info('server'))?.[1] ?? 'unknown';
  }

  close(): void {
    this.#client.disconnect();
  }
}

function numberIn(info: string, name: string): number {
  return Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1]);
}
