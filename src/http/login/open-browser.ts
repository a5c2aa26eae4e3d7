import { spawn } from 'node:child_process';
import type { Logger } from 'pino';

/** Takes a user to the address where a login begins. Does nothing where the user finds it in the log. */
export type OpenBrowser = (url: URL) => void;

/**
 * Opens the address with the user's browser, if that can be done. It was logged before, for when it cannot.
 * @param command a program and its arguments, with `%s` for the address
 */
export function openBrowser(command: readonly string[], url: URL, log: Logger): void {
  const [program = '', ...args] = command.map((word) => word.replaceAll('%s', url.href));
  const cannotOpen = ({ code }: NodeJS.ErrnoException): void => log.debug({ code }, 'cannot open a browser');
  try {
    // No shell: nothing in an address shall be a command.
    const child = spawn(program, args, { detached: true, stdio: 'ignore' });
    child.on('error', cannotOpen);
    child.unref();
  } catch (thrown) {
    // Some failures come this way, that of an address too long for the system among them.
    cannotOpen(thrown as NodeJS.ErrnoException);
  }
}
