/** Parses the options for status, metrics, usage counts, audit log and traces. */
import type { TokenSource } from '../../config/access.ts';
import type { HttpListenerConfig } from '../../config/listener.ts';
import type { ObservationConfig } from '../../config/observation.ts';
import { BridgeError } from '../../errors.ts';
import { isForOneUser } from '../../http/server/listen-addresses.ts';
import type { GivenOptions } from '../options/given-options.ts';
import { findToken } from './listener/access.ts';
import type { RemoteSurroundings } from './servers/remote.ts';
import { findStateDirectory } from './servers/state-directory.ts';
import { parseTraces } from './traces.ts';

export interface ParsedObservation {
  readonly observation: ObservationConfig;
  readonly warnings: readonly string[];
}

/**
 * Throws ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION.
 * @param listener undefined if there is no HTTP listener to serve the status
 */
export function parseObservation(
  given: GivenOptions,
  around: RemoteSurroundings,
  listener: Pick<HttpListenerConfig, 'addresses' | 'access'> | undefined,
): ParsedObservation {
  const statusToken = parseStatusToken(given, around);
  const metrics = given.get('metrics') ? 'served' : 'off';
  const usage = given.get('usage') ? { stateDirectory: findStateDirectory(given, around) } : undefined;
  const isOpen = listener?.addresses.every(isForOneUser) === true && listener.access.auth === undefined;
  const mayLook = statusToken !== undefined || isOpen;
  const traced = parseTraces(around.env);
  const observation: ObservationConfig = {
    status: given.get('status') && mayLook ? 'served' : 'off',
    statusToken,
    metrics,
    usage,
    audit: parseAudit(given),
    traces: traced.config,
  };
  const warnings = [
    ...(metrics === 'served' && !mayLook ? [warnOfUnseenMetrics(given)] : []),
    ...(usage !== undefined && usage.stateDirectory === undefined ? [warnOfUnkeptCounts(given)] : []),
    ...traced.warnings,
  ];
  return { observation, warnings };
}

function warnOfUnseenMetrics(given: GivenOptions): string {
  return `nobody may read /metrics: other users or machines can connect, or callers are authenticated, and there is no ${given.nameOf('statusToken')}`;
}

function warnOfUnkeptCounts(given: GivenOptions): string {
  return `what is counted is forgotten with this process: there is no home folder; say where with ${given.nameOf('stateDir')}`;
}

export function parseStatusToken(
  given: GivenOptions,
  around: Pick<RemoteSurroundings, 'env'>,
): TokenSource | undefined {
  const written = given.get('statusToken');
  return written && findToken(written, 'statusToken', { given, ...around });
}

function parseAudit(given: GivenOptions): ObservationConfig['audit'] {
  const file = given.get('auditFile');
  const isRequired = given.get('auditRequired');
  if (file !== undefined) {
    return { file, unwritable: isRequired ? 'refuses-calls' : 'is-logged' };
  }
  if (!isRequired) return undefined;
  const source = given.placeOf('auditRequired');
  throw new BridgeError(
    'ERR_CONFIG_COMBINATION',
    `${source} needs ${given.nameOf('auditFile')}: the file that calls are written to.`,
  );
}
