import { BridgeError, toBridgeError } from '../errors.ts';
import type { ChildSpec } from './child.ts';
import { resolveCommand } from './resolve-command.ts';

/** Converts any error from starting a child to ERR_UPSTREAM_SPAWN. */
export function toSpawnError(spec: ChildSpec, cause: unknown): BridgeError {
  if (cause instanceof BridgeError) return cause;
  const code = codeOf(cause);
  return explainMissingFile(spec, code) ?? spawnError(`Cannot start server "${spec.name}": ${explain(code)}.`, cause);
}

function spawnError(message: string, cause: unknown): BridgeError {
  return new BridgeError('ERR_UPSTREAM_SPAWN', message, { cause });
}

function codeOf(cause: unknown): string {
  return cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : 'unknown error';
}

/** ENOENT and EACCES have several causes, which `resolveCommand` distinguishes by checking the files. */
function explainMissingFile(spec: ChildSpec, code: string): BridgeError | undefined {
  if (code !== 'ENOENT' && code !== 'EACCES') return undefined;
  try {
    resolveCommand(spec);
    return undefined;
  } catch (thrown) {
    return toBridgeError(thrown);
  }
}

function explain(code: string): string {
  switch (code) {
    case 'ENOENT':
      return 'the file is there, but the interpreter named in its first line is not; install it or correct that line';
    case 'EACCES':
      return 'the system does not allow it to be executed (EACCES); check the permissions of its file and folders';
    case 'EMFILE':
    case 'ENFILE':
      return `too many files are open (${code}); allow more with ulimit -n, or fewer servers with --max-sessions`;
    case 'EAGAIN':
    case 'ENOMEM':
      return `the system cannot start another process (${code}); allow fewer servers with --max-sessions`;
    case 'E2BIG':
      return 'its arguments and environment are too large together (E2BIG); do without --inherit-env';
    default:
      return `the system refused (${code})`;
  }
}
