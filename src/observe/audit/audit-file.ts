/** The audit file: one line of JSON for each call. docs/reference/audit.md describes its members. */
import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { nameOfPrincipal } from '../../http/auth/callers.ts';
import { escapeHidden } from '../../printable.ts';
import {
  type CallEnding,
  type CallOutcome,
  MAX_OBSERVED_LENGTH,
  type ObservedCall,
  type Observer,
  type OnCallEnded,
} from '../../relay/observer.ts';
import { AppendOnlyFile } from './append-only-file.ts';

export interface AuditFileOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Interval of log lines about lines that cannot be written. */
const COMPLAINT_PERIOD_MS = 60_000;
/** The time until the next attempt to write the file. */
const RETRY = { retryAfterMs: 1000 };

/** Resolves when the file is open, or when opening it has failed, which is then logged. */
export async function openAuditFile(options: AuditFileOptions): Promise<AuditFile> {
  const audit = new AuditFile(options);
  await audit.reopen();
  return audit;
}

export class AuditFile implements Observer {
  readonly seesCalls = true;
  readonly #options: AuditFileOptions;
  readonly #file: AppendOnlyFile;
  /** Lost lines since the latest log line about them. */
  #lost = 0;
  #lastError: NodeJS.ErrnoException | undefined;
  /** Set while no further complaint is logged. */
  #cancelSilence: (() => void) | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: AuditFileOptions) {
    this.#options = options;
    const { path, clock } = options;
    this.#file = new AppendOnlyFile({ path, clock, onFailed: (error) => this.#failed(error) });
  }

  opened(call: ObservedCall): OnCallEnded {
    const timeMs = Date.now();
    return (ending) => this.#write(call, ending, timeMs);
  }

  connected(): undefined {
    return undefined;
  }

  refused(): void {}

  used(): void {}

  /** False if the line of a new call might be lost. */
  get isWritable(): boolean {
    return !this.#file.isFailing && !this.#file.isNearlyFull;
  }

  /**
   * Returns the error of a call that is rejected because its line might be lost; undefined: it is not rejected. Used
   * where every call must have its line.
   */
  refusal(): BridgeError | undefined {
    if (this.isWritable) return undefined;
    const message =
      'Calls are refused while they cannot be written to the audit file; the log of mcp-portage says why.';
    return new BridgeError('ERR_AUDIT_UNAVAILABLE', message, RETRY);
  }

  /** Called when the file was moved away: a new one is created. */
  reopen(): Promise<void> {
    return this.#file.reopen();
  }

  /** Writes the remaining lines. May be called twice. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#lost += await this.#file.close();
    this.#cancelSilence?.();
    this.#cancelSilence = undefined;
    if (this.#lost > 0) this.#tell();
  }

  #write(call: ObservedCall, ending: CallEnding, timeMs: number): void {
    if (this.#file.write(lineOf(call, ending, timeMs))) return;
    this.#lost += 1;
    this.#complain();
  }

  #failed(error: NodeJS.ErrnoException): void {
    this.#lastError = error;
    this.#complain();
  }

  #complain(): void {
    if (this.#cancelSilence !== undefined) return;
    this.#tell();
    this.#cancelSilence = this.#options.clock.after(COMPLAINT_PERIOD_MS, () => {
      this.#cancelSilence = undefined;
      if (this.#lost > 0 || this.#file.isFailing) this.#complain();
    });
  }

  #tell(): void {
    const { log, path } = this.#options;
    const lost = this.#lost;
    this.#lost = 0;
    const { isFailing, waiting } = this.#file;
    const fields = { path, lost, waiting, code: 'ERR_AUDIT_UNAVAILABLE', ...(isFailing && { err: this.#lastError }) };
    const reason = isFailing
      ? `cannot be written (${this.#lastError?.code})`
      : 'cannot be written as fast as calls end';
    log.error(fields, `the audit file ${path} ${reason}: ${lost} lines are lost, ${waiting} wait`);
  }
}

function lineOf(
  { client, method, tool, requestBytes, traceId }: ObservedCall,
  { outcome, bytes, durationMs }: CallEnding,
  timeMs: number,
): string {
  const line = {
    time: new Date(timeMs).toISOString(),
    caller: callerName(client.principal) ?? null,
    client: client.name ?? null,
    clientVersion: client.version ?? null,
    server: client.server,
    method: method.slice(0, MAX_OBSERVED_LENGTH),
    tool: tool ?? null,
    outcome: outcome.kind,
    code: codeOf(outcome),
    durationMs: Math.round(durationMs * 1000) / 1000,
    requestBytes,
    responseBytes: bytes,
    traceId: traceId ?? null,
  };
  // Names are kept as they were sent, but characters that a terminal would hide are escaped.
  return escapeHidden(JSON.stringify(line));
}

function codeOf(outcome: CallOutcome): string | number | null {
  return 'code' in outcome ? (outcome.code ?? null) : null;
}

/** Longer names of callers are cut. */
const MAX_CALLER_LENGTH = 512;

/**
 * Returns the name of a caller in the file; undefined: the client is at the other end of a pipe and not authenticated.
 */
function callerName(principal: string | undefined): string | undefined {
  return principal && nameOfPrincipal(principal).slice(0, MAX_CALLER_LENGTH);
}
