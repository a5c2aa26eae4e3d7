import { BridgeError } from '../../errors.ts';
import { hideSecrets } from '../../printable.ts';
import { type ChildExit, describeExit } from '../../process/child.ts';
import { namesIn } from '../../process/stderr-log.ts';

export interface ExitContext {
  readonly name: string;
  readonly hasServed: boolean;
  /** Lines on stdout that were not messages; see server-messages.ts. */
  readonly noise: readonly string[];
  readonly withheldEnv: readonly string[];
  /** Time until a new child may be started. */
  readonly retryAfterMs: number;
}

/**
 * A line of Node.js, Deno, Bun or Python about a module that cannot be found. It is the whole reason: what stands around
 * it says where the module was looked for, and no variable would help.
 */
const MISSING_MODULE =
  /\bCannot find (?:module|package) ['"]|\[ERR_MODULE_NOT_FOUND\]|\bModuleNotFoundError: |: No module named \S+$/;

/** Creates the error for a server's exit. Clients with open calls get it, and so do those that connect later. */
export function exitError(
  exit: ChildExit,
  { name, hasServed, noise, withheldEnv, retryAfterMs }: ExitContext,
): BridgeError {
  const early = hasServed ? '' : ', before it answered anything';
  const data = { exitCode: exit.code, signal: exit.signal };
  const again = retryAfterMs > 0 ? { retryAfterMs } : {};
  const missing = [...noise, ...exit.stderrTail].findLast((line) => MISSING_MODULE.test(line));
  if (missing !== undefined && !exit.terminated) {
    const text = `Server "${name}" ${describeExit(exit)}${early}. A module is missing: ${hideSecrets(missing)}`;
    return new BridgeError('ERR_UPSTREAM_EXITED', text, { data, ...again });
  }
  const printed =
    hasServed || noise.length === 0
      ? ''
      : ` On stdout, where MCP belongs, it printed: ${hideSecrets(noise.join(' | '))}`;
  const words = exit.stderrTail.length === 0 ? '' : ` Its last words on stderr: ${exit.stderrTail.join(' | ')}`;
  const inNoise = namesIn(noise.join(' '), new Set(withheldEnv));
  const named = [...new Set([...inNoise, ...exit.namedOnStderr])];
  const hint = exit.terminated ? '' : nameWithheld(named);
  return new BridgeError(
    'ERR_UPSTREAM_EXITED',
    `Server "${name}" ${describeExit(exit)}${early}.${printed}${words}${hint}`,
    { data, ...again },
  );
}

const MAX_NAMED = 3;

/**
 * Names variables that the server's own output mentions and that were withheld from it. The error tells clients that
 * variables of these names are set here, but never their values.
 */
function nameWithheld(names: readonly string[]): string {
  if (names.length === 0) return '';
  // The names mentioned last are the likeliest reason.
  const shown = names.slice(-MAX_NAMED);
  const [are, were, them] = shown.length === 1 ? ['is', 'was', 'it'] : ['are', 'were', 'them'];
  const options = shown.map((name) => `--env ${name}`).join(' ');
  return ` (${shown.join(' and ')} ${are} set here, but ${were} withheld from the server; pass ${them} on with ${options}.)`;
}
