import type { BrokerAccount } from '../config/remote.ts';
import { BridgeError } from '../errors.ts';
import { readSmallFile } from '../io/bounded-file.ts';

/** Returns true if there is something to show to the broker. */
export function isAccountGiven({ user, password }: BrokerAccount): boolean {
  return user !== undefined || password !== undefined;
}

/**
 * The user name and the password to connect with.
 * @throws BridgeError ERR_UPSTREAM_CONNECT when the file of the password cannot be read
 */
export function readAccount({ user, password }: BrokerAccount): {
  username: string | undefined;
  password: string | undefined;
} {
  if (password?.kind !== 'file') return { username: user, password: password?.password };
  try {
    return { username: user, password: readSmallFile(password.file).trim() };
  } catch (cause) {
    const message = `The file with the password for the broker cannot be read: ${password.file}. Check its path and its mode.`;
    throw new BridgeError('ERR_UPSTREAM_CONNECT', message, { cause });
  }
}
