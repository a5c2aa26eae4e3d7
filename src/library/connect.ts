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
  // The bridge's timers do not keep the process alive. After the end of the input, a timer may be all that it waits
  // for.
  const held = setInterval(() => undefined, MAX_TIMER_MS);
  let closing: Promise<void> | undefined;
  const ended = bridge.ended.then((error) => {
    clearInterval(held);
    // The program itself has closed the connection, so there is no error to report.
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

/**
 * Opens the client's streams. For the process's own stdio a change of the parent's pid shows that the client is gone;
 * for the program's streams their destruction does.
 */
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
