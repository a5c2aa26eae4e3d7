import { UNDECLARED } from '../../src/mcp/translate/sessionless.ts';
import type { CallDialer, SessionDialer } from '../../src/relay/ports.ts';
import { dialCall } from '../support/dial-call.ts';
import { asUpstream } from '../support/dialers.ts';
import { waitFor } from '../support/wait-for.ts';
import { type Message, RelayedClient, type RelayedClientOptions } from './relayed-client.ts';

export const META = 'io.modelcontextprotocol/';
export const SUBSCRIPTION_ID = `${META}subscriptionId`;

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';

export interface ModernClientOptions extends RelayedClientOptions {
  /** As whom it asks; default: nobody says. */
  readonly principal?: string;
  /** Each of its requests comes alone, as over HTTP. */
  readonly comesAlone?: boolean;
}

/** The same of the modern era: its requests have their envelope, and there is no handshake. */
export class ModernClient extends RelayedClient {
  readonly #envelope: Readonly<Record<string, unknown>>;

  constructor(dialer: CallDialer | SessionDialer, { principal, comesAlone, ...options }: ModernClientOptions = {}) {
    const upstream = asUpstream(dialer);
    const named = principal === undefined ? upstream : dialAs(upstream, principal);
    super(comesAlone === true ? dialAlone(upstream, principal) : named, { ...options, era: 'modern' });
    this.#envelope = {
      [`${META}protocolVersion`]: '2026-07-28',
      [`${META}clientCapabilities`]: options.capabilities ?? {},
      [`${META}clientInfo`]: { name: 'modern-client', version: '1.0.0' },
    };
  }

  override start(method: string, params: object = {}, id?: string | number): string | number {
    const { _meta } = params as { _meta?: object };
    return super.start(method, { ...params, _meta: { ...this.#envelope, ..._meta } }, id);
  }

  /** Opens a subscription; resolves when it was acknowledged. */
  async listen(notifications: object, id?: string | number): Promise<string | number> {
    const before = this.notifications(ACKNOWLEDGED).length;
    const opened = this.start('subscriptions/listen', { notifications }, id);
    await waitFor(() => this.notifications(ACKNOWLEDGED).length > before, { message: 'the acknowledgment' });
    return opened;
  }

  cancel(requestId: string | number): void {
    this.notify('notifications/cancelled', { requestId });
  }
}

function dialAs(dialer: CallDialer, principal: string): SessionDialer {
  return {
    name: dialer.name,
    dial: (listener) => dialer.dialCalls(listener, { principal, headers: undefined }),
    readiness: () => dialer.readiness(),
    close: () => dialer.close(),
    killNow: () => dialer.killNow(),
  };
}

function dialAlone(dialer: CallDialer, principal = 'anonymous'): SessionDialer {
  return {
    name: dialer.name,
    dial: (owner) => dialCall(dialer, owner, { principal, metadata: UNDECLARED, headers: undefined }),
    readiness: () => dialer.readiness(),
    close: () => dialer.close(),
    killNow: () => dialer.killNow(),
  };
}

/** The subscription a message says it is of. */
export function subscriptionOf({ params, result }: Message): unknown {
  return ((params ?? result)?._meta as Record<string, unknown> | undefined)?.[SUBSCRIPTION_ID];
}
