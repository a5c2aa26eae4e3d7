/** The checks that need the disk, before anything is started: a wrong path should be told as such, not as a crash later. */
import { readFile, stat } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { Config } from '../config.ts';
import { BridgeError } from '../errors.ts';

/** Throws ERR_CONFIG_OPTION or ERR_CONFIG_COMBINATION. */
export async function checkFiles({ child, listen }: Config): Promise<void> {
  if (child.cwd !== undefined) await checkDirectory(child.cwd);
  if (listen.tls !== undefined) await checkCertificate(listen.tls);
}

async function checkDirectory(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) return;
  const got = found === undefined ? 'nothing there' : 'a file';
  throw new BridgeError('ERR_CONFIG_OPTION', `--cwd: expected a directory at ${path}; got ${got}.`);
}

async function checkCertificate({ certFile, keyFile }: { certFile: string; keyFile: string }): Promise<void> {
  const cert = await readPem('tls-cert', certFile);
  const key = await readPem('tls-key', keyFile);
  try {
    createSecureContext({ cert, key });
  } catch (cause) {
    throw new BridgeError(
      'ERR_CONFIG_COMBINATION',
      `--tls-cert, --tls-key: expected a PEM certificate and its own unencrypted key; got ${certFile} and ${keyFile}, which do not work together (${reasonOf(cause)}).`,
      { cause },
    );
  }
}

async function readPem(option: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    throw new BridgeError('ERR_CONFIG_OPTION', `--${option}: cannot read ${path} (${reasonOf(cause)}).`, { cause });
  }
}

function reasonOf(cause: unknown): string {
  return cause instanceof Error && 'code' in cause ? String(cause.code) : 'unreadable';
}
