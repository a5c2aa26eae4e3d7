import { BridgeError } from '../errors.ts';
import { type ChildExit, describeExit } from '../process/child.ts';

export interface ExitContext {
  readonly name: string;
  readonly hasServed: boolean;
  /** What it printed to stdout that was no message; see stdio-messages.ts. */
  readonly noise: readonly string[];
  readonly withheldEnv: readonly string[];
  /** When a new child may be started. */
  readonly retryAfterMs: number;
}

/** What clients with open calls, and those who ask later, are told about the end of a server. */
export function exitError(
  exit: ChildExit,
  { name, hasServed, noise, withheldEnv, retryAfterMs }: ExitContext,
): BridgeError {
  const early = hasServed ? '' : ', before it answered anything';
  const printed =
    hasServed || noise.length === 0 ? '' : ` On stdout, where MCP belongs, it printed: ${noise.join(' | ')}`;
  const words = exit.stderrTail.length === 0 ? '' : ` Its last words on stderr: ${exit.stderrTail.join(' | ')}`;
  const hint = hasServed || exit.terminated ? '' : describeWithheld(withheldEnv);
  return new BridgeError(
    'ERR_UPSTREAM_EXITED',
    `Server "${name}" ${describeExit(exit)}${early}.${printed}${words}${hint}`,
    {
      data: { exitCode: exit.code, signal: exit.signal },
      ...(retryAfterMs > 0 ? { retryAfterMs } : {}),
    },
  );
}

/** A server that misses its key often says so nowhere. */
function describeWithheld({ length }: readonly string[]): string {
  if (length === 0) return '';
  const what = length === 1 ? '1 environment variable was' : `${length} environment variables were`;
  return ` (${what} withheld from it; --env NAME passes one, --inherit-env all.)`;
}
