/** One line of JSON for each call, in a file. docs/reference/audit.md says what is in it. */
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

/** How often it is said that lines cannot be written. */
const COMPLAINT_PERIOD_MS = 60_000;
/** As long as it takes until the file is tried again. */
const RETRY = { retryAfterMs: 1000 };

/** Resolves when the file is open or could not be opened, which the log says then. */
export async function openAuditFile(options: AuditFileOptions): Promise<AuditFile> {
  const audit = new AuditFile(options);
  await audit.reopen();
  return audit;
}

export class AuditFile implements Observer {
  readonly seesCalls = true;
  readonly #options: AuditFileOptions;
  readonly #file: AppendOnlyFile;
  /** Lines, since that was said last. */
  #lost = 0;
  #lastError: NodeJS.ErrnoException | undefined;
  /** Until the next complaint may be made. */
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

  /** False: the line of a call might be lost. */
  get isWritable(): boolean {
    return !this.#file.isFailing && !this.#file.isNearlyFull;
  }

  /** Why a call is refused where none may go without its line; undefined: it is not. */
  refusal(): BridgeError | undefined {
    if (this.isWritable) return undefined;
    const message =
      'Calls are refused while they cannot be written to the audit file; the log of mcp-portage says why.';
    return new BridgeError('ERR_AUDIT_UNAVAILABLE', message, RETRY);
  }

  /** The file was moved away, so a new one is made. */
  reopen(): Promise<void> {
    return this.#file.reopen();
  }

  /** Writes what is left. May be called twice. */
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
  // Names are kept as they were sent, and whatever would hide in a terminal is seen.
  return escapeHidden(JSON.stringify(line));
}

function codeOf(outcome: CallOutcome): string | number | null {
  return 'code' in outcome ? (outcome.code ?? null) : null;
}

/** Longer names of callers are cut. */
const MAX_CALLER_LENGTH = 512;

/** What a caller is called in the file; undefined: nobody is asked, for the client is at the other end of a pipe. */
function callerName(principal: string | undefined): string | undefined {
  return principal && nameOfPrincipal(principal).slice(0, MAX_CALLER_LENGTH);
}
