import { connectStdio } from '../bridge/connect-stdio.ts';
import type { ClientPipes } from '../bridge/running-bridge.ts';
import { createSystemDeps } from '../cli/system-deps.ts';
import { BridgeError } from '../errors.ts';
import { createGivenLog } from './given-log.ts';
import { GivenObserver, tellSafely } from './given-observer.ts';
import type { Connection, ConnectOptions } from './public-types.ts';
import { readOptions } from './read-options.ts';

const MAX_TIMER_MS = 2 ** 31 - 1;

/** See src/library.ts. */
export async function connect(given: ConnectOptions): Promise<Connection> {
  const { log: givenLog, observer, client, ...options } = given;
  const pipes = openPipes(client);
  const { config, warnings } = await readOptions('connect', options);
  const log = createGivenLog(givenLog);
  for (const warning of warnings) log.warn(warning);
  const observers = observer === undefined ? [] : [new GivenObserver(observer)];
  const bridge = await connectStdio(config, { ...createSystemDeps(log), observers }, pipes);
  // Timers of the bridge keep no process alive, and when input has ended, nothing else does while one is all that is waited for.
  const held = setInterval(() => undefined, MAX_TIMER_MS);
  let closing: Promise<void> | undefined;
  const ended = bridge.ended.then((error) => {
    clearInterval(held);
    // Whoever has closed it knows.
    if (error === undefined || closing !== undefined) return undefined;
    tellSafely(log, () => observer?.failed?.(error));
    return error;
  });
  const close = (): Promise<void> => {
    closing ??= bridge.shutdown('SIGTERM').finally(() => clearInterval(held));
    return closing;
  };
  return { ended, close, killNow: () => bridge.killNow(), [Symbol.asyncDispose]: close };
}

/** Whether the other end of our own pipes is gone can be seen; that of a program's streams ends when they do. */
function openPipes(client: ConnectOptions['client']): ClientPipes {
  if (client === 'stdio') {
    const parent = process.ppid;
    const { stdin, stdout } = process;
    return { input: stdin, output: stdout, isOrphaned: () => process.ppid !== parent };
  }
  if (typeof client?.input?.on === 'function' && typeof client.output?.write === 'function') {
    return { input: client.input, output: client.output, isOrphaned: () => client.output.destroyed };
  }
  throw new BridgeError(
    'ERR_CONFIG_OPTION',
    "client: expected 'stdio', or an object with the streams `input` and `output`; got something else.",
  );
}
