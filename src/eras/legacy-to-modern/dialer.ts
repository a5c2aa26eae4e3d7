import type { Deps } from '../../deps.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import type { Lane } from '../../relay/call.ts';
import type { ServerListener, SessionDialer, UpstreamLink } from '../../relay/ports.ts';
import type { Readiness } from '../../relay/readiness.ts';
import { ParkedBytes, type ParkedBytesLimits } from '../parked-bytes.ts';
import { SharedDiscovery } from './shared-discovery.ts';
import { LegacyToModern, type TranslatorOptions } from './translator.ts';

/**
 * Limits for calls that wait for input: the client's answers so far, and the state that the server wants back with
 * them. One session may use half of the total.
 */
export const HELD_LIMITS: ParkedBytesLimits = { bytesPerPrincipal: 32 * 1024 * 1024, bytes: 64 * 1024 * 1024 };

export interface LegacyToModernOptions {
  /** Opens connections to a server of the modern era. */
  readonly dialer: SessionDialer;
  readonly deps: Deps;
  /** Name for a client that gives none. */
  readonly clientInfoFallback: Implementation;
  /** Returns a random number from 0 to 1. */
  readonly random?: () => number;
  readonly heldLimits?: ParkedBytesLimits;
}

/** Makes a modern server available to legacy clients. Each link is one legacy session. */
export function createLegacyToModernDialer(options: LegacyToModernOptions): SessionDialer {
  return new LegacyToModernDialer(options);
}

class LegacyToModernDialer implements SessionDialer {
  readonly #dialer: SessionDialer;
  readonly #options: TranslatorOptions;
  readonly #discovery: SharedDiscovery;

  constructor(options: LegacyToModernOptions) {
    const { dialer, deps, clientInfoFallback, random = Math.random } = options;
    this.#dialer = dialer;
    const held = new ParkedBytes(options.heldLimits ?? HELD_LIMITS);
    this.#options = { deps, clientInfoFallback, random, held };
    this.#discovery = new SharedDiscovery(dialer.name, deps.clock);
  }

  get name(): string {
    return this.#dialer.name;
  }

  readiness(): Readiness {
    return this.#dialer.readiness();
  }

  dial(listener: ServerListener): UpstreamLink {
    return new LegacyToModern(this.#dialer, listener, (lane) => this.#discoveryFor(lane), this.#options);
  }

  /**
   * Returns the shared discovery, or a separate one for a client with forwarded headers, because the server may
   * describe itself differently to it.
   */
  #discoveryFor({ headers = {} }: Lane): SharedDiscovery {
    if (Object.keys(headers).length === 0) return this.#discovery;
    return new SharedDiscovery(this.name, this.#options.deps.clock);
  }

  close(): Promise<void> {
    return this.#dialer.close();
  }

  killNow(): void {
    this.#dialer.killNow();
  }
}
