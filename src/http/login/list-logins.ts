/** Describes the logins of a user. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { readSmallFile } from '../../io/bounded-file.ts';
import { printableLine } from '../../printable.ts';
import { parseStoredLogin, type StoredLogin } from './login-store.ts';

/** The name of a file with a login. Files with other names are skipped. */
const LOGIN_FILE = /\.json$/;

/** Describes the logins that are stored in this folder, without secrets. */
export function listLogins(stateDirectory: string | undefined): string {
  const folder = stateDirectory && join(stateDirectory, 'logins');
  const found = folder === undefined ? [] : readLogins(folder);
  if (found.length === 0) return `There are no logins${folder === undefined ? '' : ` in ${folder}`}.\n`;
  return found.map(({ path, login }) => describeLogin(path, login)).join('\n');
}

function readLogins(folder: string): readonly { readonly path: string; readonly login: StoredLogin }[] {
  let names: readonly string[];
  try {
    names = readdirSync(folder);
  } catch {
    return [];
  }
  return names
    .filter((name) => LOGIN_FILE.test(name))
    .sort()
    .flatMap((name) => {
      const path = join(folder, name);
      const login = tryToRead(path);
      return login === undefined ? [] : [{ path, login }];
    });
}

function tryToRead(path: string): StoredLogin | undefined {
  try {
    return parseStoredLogin(readSmallFile(path));
  } catch {
    return undefined;
  }
}

function describeLogin(path: string, { resource, issuer, client, scopes, tokens, identity }: StoredLogin): string {
  const known = tokens?.scopes ?? scopes;
  const rows = [
    ['issuer', issuer],
    ...(identity === undefined ? [] : [['user of', identity.issuer]]),
    ['client', `${client.id} (${client.origin})`],
    ...(known.length > 0 ? [['scopes', known.join(' ')]] : []),
    ['token', identity !== undefined && tokens === undefined ? 'none so far' : describeTokens(tokens)],
    ['file', path],
  ];
  const lines = rows.map(([name = '', value = '']) => `  ${name.padEnd(8)}${printableLine(value)}\n`);
  return `${printableLine(resource ?? 'A server that is not named (--oauth-resource none)')}\n${lines.join('')}`;
}

function describeTokens(tokens: StoredLogin['tokens']): string {
  if (tokens === undefined) return 'none; the client is registered only';
  const { renewAtMs, refreshToken } = tokens;
  const renewal = refreshToken === undefined ? 'cannot be renewed' : 'is renewed by itself';
  return renewAtMs === undefined ? renewal : `until ${new Date(renewAtMs).toISOString()}, ${renewal}`;
}
