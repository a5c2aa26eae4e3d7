/** Parses the options for status, metrics, usage counts, audit log, traces and recordings. */
import type { TokenSource } from '../../config/access.ts';
import type { HttpListenerConfig } from '../../config/listener.ts';
import type { ObservationConfig, RecordingConfig } from '../../config/observation.ts';
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
  const status = given.get('status') && mayLook ? 'served' : 'off';
  const recording = parseRecording(given, status);
  const observation: ObservationConfig = {
    status,
    statusToken,
    metrics,
    usage,
    audit: parseAudit(given),
    traces: traced.config,
    recording,
  };
  const warnings = [
    ...(metrics === 'served' && !mayLook ? [warnOfUnseenMetrics(given)] : []),
    ...(usage !== undefined && usage.stateDirectory === undefined ? [warnOfUnkeptCounts(given)] : []),
    ...traced.warnings,
    ...(recording?.file?.secrets === 'kept' ? [warnOfSecrets(given, recording.file.path)] : []),
  ];
  return { observation, warnings };
}

function warnOfUnseenMetrics(given: GivenOptions): string {
  return `nobody may read /metrics: other users or machines can connect, or callers are authenticated, and there is no ${given.nameOf('statusToken')}`;
}

function warnOfUnkeptCounts(given: GivenOptions): string {
  return `what is counted is forgotten with this process: there is no home folder; say where with ${given.nameOf('stateDir')}`;
}

function warnOfSecrets(given: GivenOptions, path: string): string {
  return `tokens, passwords and keys in messages are written to ${path}, because of ${given.nameOf('recordSecrets')}; share it with nobody`;
}

function parseRecording(given: GivenOptions, status: ObservationConfig['status']): RecordingConfig | undefined {
  const path = given.get('record');
  const isInspecting = given.get('inspect');
  const maxMessageBytes = given.get('recordMaxMessage');
  if (path === undefined && given.get('recordSecrets')) {
    const message = `${given.placeOf('recordSecrets')} needs ${given.nameOf('record')}: the file that messages are written to.`;
    throw new BridgeError('ERR_CONFIG_COMBINATION', message);
  }
  if (isInspecting && status === 'off') {
    const message = `${given.placeOf('inspect')} shows messages to those who may see the status, and there is nobody: the status is switched off, or other users or machines can connect and there is no ${given.nameOf('statusToken')}. Leave out ${given.nameOf('inspect')}, or let somebody see the status.`;
    throw new BridgeError('ERR_CONFIG_COMBINATION', message);
  }
  if (path === undefined && !isInspecting) return undefined;
  const secrets = given.get('recordSecrets') ? 'kept' : 'hidden';
  const file = path === undefined ? undefined : ({ path, secrets, maxFileBytes: given.get('recordMaxSize') } as const);
  return { file, feed: isInspecting ? 'served' : 'off', maxMessageBytes };
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
