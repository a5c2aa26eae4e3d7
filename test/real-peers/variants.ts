import type { TestFn } from 'ava';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { type ConnectOptions, connectSse, connectStreamable, type SdkClient } from '../support/sdk-client.ts';

export type Isolation = 'session' | 'shared';

/** One way to stand between: which client, and how sessions share the server. */
export interface Variant {
  /** Prefix of test titles. */
  readonly title: string;
  readonly isolation: Isolation;
  connect(bridge: Bridge, options?: ConnectOptions): Promise<SdkClient>;
}

export const ISOLATIONS: readonly Isolation[] = ['session', 'shared'];

const CLIENTS = {
  'Streamable HTTP': (bridge: Bridge, options?: ConnectOptions) => connectStreamable(bridge.url, options),
  'HTTP+SSE': (bridge: Bridge, options?: ConnectOptions) => connectSse(bridge.sseUrl, options),
};

export const VARIANTS: readonly Variant[] = ISOLATIONS.flatMap((isolation) =>
  Object.entries(CLIENTS).map(([client, connect]) => ({
    title: `${client} client, --isolation ${isolation}`,
    isolation,
    connect,
  })),
);

export const SESSION_VARIANTS = VARIANTS.filter((variant) => variant.isolation === 'session');
export const SHARED_VARIANTS = VARIANTS.filter((variant) => variant.isolation === 'shared');

/**
 * One bridge per isolation for all tests of a file, stopped after them; stopping fails when a child stays behind.
 * @returns the bridge of a variant, once tests run
 */
export function bridgeForEach(test: TestFn, command: readonly string[]): (of: Pick<Variant, 'isolation'>) => Bridge {
  const running = new Map<Isolation, Bridge>();
  test.before('start the bridges', async () => {
    for (const isolation of ISOLATIONS) {
      running.set(isolation, await startBridge(['--isolation', isolation, '--', ...command]));
    }
  });
  test.after.always('stop the bridges', async () => {
    for (const bridge of running.values()) await bridge.stop();
  });
  return ({ isolation }) => {
    const bridge = running.get(isolation);
    if (bridge === undefined) throw new Error('asked for a bridge before the tests run');
    return bridge;
  };
}
