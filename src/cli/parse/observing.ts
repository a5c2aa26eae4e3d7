/** Parses the options for status, metrics, usage counts, audit log and traces. */
import { resolve } from 'node:path';
import type { TokenSource } from '../../config/access.ts';
import type { HttpListenerConfig } from '../../config/listener.ts';
import type { ObservationConfig } from '../../config/observation.ts';
import { BridgeError } from '../../errors.ts';
import { isForOneUser } from '../../http/server/listen-addresses.ts';
import type { GivenOptions } from '../options/given-options.ts';
import { findToken } from './listener/access.ts';
import { parseTokenSource } from './listener/auth-value.ts';
import type { RemoteSurroundings } from './servers/remote.ts';
import { findStateDirectory } from './servers/state-directory.ts';
import { parseTraces } from './traces.ts';
import * as value from './value.ts';

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
  const metrics = given.required('metrics', value.parseFlag) ? 'served' : 'off';
  const usage = given.required('usage', value.parseFlag)
    ? { stateDirectory: findStateDirectory(given, around) }
    : undefined;
  const isOpen = listener?.addresses.every(isForOneUser) === true && listener.access.auth === undefined;
  const mayLook = statusToken !== undefined || isOpen;
  const traced = parseTraces(around.env);
  const observation: ObservationConfig = {
    status: given.required('status', value.parseFlag) && mayLook ? 'served' : 'off',
    statusToken,
    metrics,
    usage,
    audit: parseAudit(given, around),
    traces: traced.config,
  };
  const warnings = [
    ...(metrics === 'served' && !mayLook ? [NOBODY_MAY_LOOK] : []),
    ...(usage !== undefined && usage.stateDirectory === undefined ? [NOT_KEPT] : []),
    ...traced.warnings,
  ];
  return { observation, warnings };
}

const NOBODY_MAY_LOOK =
  'nobody may read /metrics: other users or machines can connect, or callers are authenticated, and there is no --status-token';
const NOT_KEPT = 'what is counted is forgotten with this process: there is no home folder; say where with --state-dir';

export function parseStatusToken(
  given: GivenOptions,
  around: Pick<RemoteSurroundings, 'env' | 'cwd'>,
): TokenSource | undefined {
  const written = given.optional('status-token', parseTokenSource);
  return written && findToken(written, 'status-token', { given, ...around });
}

function parseAudit(given: GivenOptions, { cwd }: RemoteSurroundings): ObservationConfig['audit'] {
  const file = given.optional('audit-file', value.parseText);
  const isRequired = given.required('audit-required', value.parseFlag);
  if (file !== undefined) {
    return { file: resolve(cwd, file), unwritable: isRequired ? 'refuses-calls' : 'is-logged' };
  }
  if (!isRequired) return undefined;
  const source = given.sourceOf('audit-required');
  throw new BridgeError('ERR_CONFIG_COMBINATION', `${source} needs --audit-file: the file that calls are written to.`);
}
