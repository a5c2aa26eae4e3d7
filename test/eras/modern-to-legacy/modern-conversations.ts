import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import { createModernToLegacyDialer, type ModernToLegacyOptions } from '../../../src/eras/modern-to-legacy/dialer.ts';
import type { CallDialer, SessionDialer } from '../../../src/relay/ports.ts';
import { ModernClient } from '../../contract/modern-client.ts';
import type { Message } from '../../contract/relayed-client.ts';
import { createTestDeps } from '../../process/collected-log.ts';
import { dialCall } from '../../support/dial-call.ts';
import { dialScript } from '../../support/dialers.ts';

export interface ConversationOptions {
  readonly capabilities?: object;
  readonly logLevel?: string;
  readonly principal?: string;
}

/** A modern client of a real legacy server; each request is a conversation of its own. */
export class Conversations {
  readonly #modern: CallDialer;

  constructor(t: ExecutionContext, dialer: SessionDialer, options: Partial<ModernToLegacyOptions> = {}) {
    const clientInfo = { name: 'bridge', version: '0' };
    const { deps } = createTestDeps();
    const defaults = { handshakeTimeoutMs: 0, sharing: 'by-name' } as const;
    this.#modern = createModernToLegacyDialer({ dialer, deps, clientInfo, ...defaults, ...options });
    t.teardown(() => this.#modern.close());
  }

  open({ capabilities = { sampling: {} }, logLevel, principal = 'ada' }: ConversationOptions = {}): ModernClient {
    const metadata = { revision: '2026-07-28', capabilities: { ...capabilities }, clientInfo: undefined, logLevel };
    const dial: SessionDialer['dial'] = (listener) =>
      dialCall(this.#modern, listener, { principal, metadata, headers: undefined });
    const { name } = this.#modern;
    const readiness = () => this.#modern.readiness();
    return new ModernClient({ name, dial, readiness, close: async () => {}, killNow: () => {} }, { capabilities });
  }

  request(method: string, params?: object, options?: ConversationOptions): Promise<Message> {
    return this.open(options).request(method, params);
  }

  async tool(name: string, args: object = {}, options?: ConversationOptions): Promise<unknown> {
    const { result } = await this.request('tools/call', { name, arguments: args }, options);
    return result?.content?.[0]?.text;
  }
}

/** A server that is a program of its own. */
export function dialProgram(path: string, args: readonly string[] = []): SessionDialer {
  return dialScript(fileURLToPath(new URL(path, import.meta.url)), { deps: createTestDeps().deps, args });
}
