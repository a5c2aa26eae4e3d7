/** Runs `mcp-portage view`: shows a recording, or the messages of a running bridge, as calls. */
import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { printableLine } from '../../printable.ts';
import { type DamagedLine, parseRecordedLine, type RecordedMessage } from '../../recording/recorded-message.ts';
import { BridgeEvents, nameBridge, nameOf, refusalMessage, urlBelowStatus } from '../top/bridge-events.ts';
import { type EntryFilter, isShown } from './entry-filter.ts';
import { renderEntryJson } from './entry-json.ts';
import { CallPairs, type Entry } from './pair-calls.ts';
import { type FoundLine, MAX_LINE_BYTES, readRecording } from './read-recording.ts';
import { type Look, renderEntry, renderFull, renderHeader } from './render-entry.ts';

/**
 * - `file`: a recording. `follows` goes on with what is appended to it.
 * - `bridge`: any address of a running bridge, and the token that opens its status.
 */
export type ViewSource =
  | { readonly kind: 'file'; readonly path: string; readonly mode: 'once' | 'follows' }
  | { readonly kind: 'bridge'; readonly url: URL; readonly token: string | undefined };

/** What is printed of each entry: a line, the line and all of its messages, or one of these as JSON. */
export type ViewFormat = 'lines' | 'full' | 'json' | 'full-json';

export interface ViewOptions {
  readonly source: ViewSource;
  readonly filter: EntryFilter;
  readonly format: ViewFormat;
  readonly output: ViewOutput;
  /** Tells people about the recording itself, on stderr. The text is one line without its line break. */
  readonly tell: (text: string) => void;
  readonly clock: Clock;
  readonly wallClock: () => number;
  /** Ends the view. What is open then is shown as unanswered. */
  readonly signal: AbortSignal;
}

export interface ViewOutput {
  readonly columns: () => number;
  readonly color: boolean;
  /** Resolves when more may be written. `closed`: nobody reads the output anymore. */
  readonly write: (text: string) => Promise<'open' | 'closed'>;
}

/** Time after which a followed file is looked at again. */
const FOLLOW_MS = 250;
/** Number of damaged lines that are told one by one, with their places. */
const MAX_TOLD = 5;
/** A file whose first lines are all damaged is no recording. */
const MAX_DAMAGED_START = 100;
/** Time limit for the connection to a bridge. */
const CONNECT_MS = 10_000;

/** Resolves when all is shown, the signal has come, or nobody reads the output. Rejects with a BridgeError. */
export async function runView(options: ViewOptions): Promise<void> {
  const view = new View(options);
  const { source } = options;
  if (source.kind === 'file') await viewFile(view, source, options);
  else await viewBridge(view, source, options);
}

/** Turns recorded lines into output. */
class View {
  readonly #options: ViewOptions;
  readonly #pairs: CallPairs;
  /** Text that is not written yet. */
  #unwritten = '';
  #hasHeader = false;

  constructor(options: ViewOptions) {
    const { format } = options;
    this.#options = options;
    this.#pairs = new CallPairs({ lines: format === 'full' || format === 'full-json' ? 'kept' : 'dropped' });
  }

  take(recorded: RecordedMessage, line: string): void {
    this.#show(this.#pairs.take(recorded, line));
  }

  /** Shows the calls of which nothing more is expected now. */
  settle(): void {
    this.#show(this.#pairs.settle(this.#options.wallClock()));
  }

  end(): void {
    this.#show(this.#pairs.end());
  }

  flush(): Promise<'open' | 'closed'> {
    const text = this.#unwritten;
    this.#unwritten = '';
    return text === '' ? Promise.resolve('open') : this.#options.output.write(text);
  }

  #show(entries: readonly Entry[]): void {
    for (const entry of entries) if (isShown(entry, this.#options.filter)) this.#unwritten += this.#render(entry);
  }

  #render(entry: Entry): string {
    const { format, output } = this.#options;
    if (format === 'json' || format === 'full-json') return renderEntryJson(entry);
    const look: Look = { columns: output.columns(), color: output.color };
    const header = this.#hasHeader ? '' : renderHeader(look);
    this.#hasHeader = true;
    return header + (format === 'full' ? renderFull(entry, look) : renderEntry(entry, look));
  }
}

/** Counts the lines that cannot be shown. */
class DamageReport {
  readonly #tell: (text: string) => void;
  readonly #name: string;
  /** Complaints that are told once it is certain that the file is a recording. */
  readonly #held: string[] = [];
  #isRecording = false;
  #damaged = 0;

  constructor(name: string, tell: (text: string) => void) {
    this.#name = name;
    this.#tell = tell;
  }

  sawMessage(): void {
    if (this.#isRecording) return;
    this.#isRecording = true;
    for (const text of this.#held.splice(0)) this.#tell(text);
  }

  /** Throws ERR_CONFIG_OPTION if the beginning has nothing but damaged lines. */
  sawDamage({ file, number }: FoundLine, { damage }: DamagedLine): void {
    this.#damaged += 1;
    const text = printableLine(`Line ${number} of ${file} ${damage}; it is left out.`);
    if (this.#isRecording && this.#damaged <= MAX_TOLD) this.#tell(text);
    else if (this.#held.length < MAX_TOLD) this.#held.push(text);
    if (!this.#isRecording && this.#damaged >= MAX_DAMAGED_START) throw this.#noRecording();
  }

  /** Throws ERR_CONFIG_OPTION if there was no message at all, but something else. */
  end(): void {
    if (this.#damaged > 0 && !this.#isRecording) throw this.#noRecording();
    if (!this.#isRecording) this.#tell(`${printableLine(this.#name)} is empty: nothing has been recorded yet.`);
    if (this.#damaged > MAX_TOLD) this.#tell(`${this.#damaged} damaged lines were left out.`);
  }

  #noRecording(): BridgeError {
    const [first = ''] = this.#held;
    const what = `${printableLine(this.#name)} is no recording of mcp-portage, which has a JSON object with a "message" on each line.`;
    return new BridgeError('ERR_CONFIG_OPTION', `${what} ${first}`);
  }
}

async function viewFile(view: View, source: ViewSource & { kind: 'file' }, options: ViewOptions): Promise<void> {
  const { clock, signal, tell } = options;
  const { path, mode } = source;
  const damage = new DamageReport(path, tell);
  const pause = (): Promise<void> => pauseFor(FOLLOW_MS, clock, signal);
  const waiting = (): void => tell(`${printableLine(path)} does not exist yet; waiting for it.`);
  for await (const lines of readRecording({ path, mode, pause, signal, waiting })) {
    for (const line of lines) {
      const recorded = readLine(line);
      if ('damage' in recorded) damage.sawDamage(line, recorded);
      else {
        damage.sawMessage();
        view.take(recorded, line.text ?? '');
      }
    }
    if (mode === 'follows') view.settle();
    if ((await view.flush()) === 'closed') return;
  }
  view.end();
  if ((await view.flush()) === 'open' && !signal.aborted) damage.end();
}

function readLine({ text }: FoundLine): RecordedMessage | DamagedLine {
  if (text === undefined) return { damage: `is longer than ${MAX_LINE_BYTES / 2 ** 20} MiB` };
  return parseRecordedLine(text);
}

function pauseFor(ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      stop();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const stop = clock.after(ms, done);
    signal.addEventListener('abort', done);
    if (signal.aborted) done();
  });
}

function viewBridge(view: View, source: ViewSource & { kind: 'bridge' }, options: ViewOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    new BridgeView(view, source, options, (failure) => (failure === undefined ? resolve() : reject(failure))).start();
  });
}

/**
 * Follows the live feed of a bridge. After each connection the bridge first sends the latest messages again, of which those
 * that were shown already are skipped.
 */
class BridgeView {
  readonly #view: View;
  readonly #source: ViewSource & { kind: 'bridge' };
  readonly #options: ViewOptions;
  readonly #end: (failure: BridgeError | undefined) => void;
  readonly #url: URL;
  #events: BridgeEvents | undefined;
  #stopWaiting: (() => void) | undefined;
  #stopSettling: (() => void) | undefined;
  /** Resolves when the output has taken what was written. The stream is read no further before. */
  #written: Promise<void> = Promise.resolve();
  #latest: Pick<RecordedMessage, 'seq' | 'at'> = { seq: 0, at: '' };
  /**
   * - `connecting`: for the first time.
   * - `live`, `lost`: messages arrive, or another connection is tried.
   */
  #state: 'connecting' | 'live' | 'lost' | 'closed' = 'connecting';

  constructor(
    view: View,
    source: ViewSource & { kind: 'bridge' },
    options: ViewOptions,
    end: (failure: BridgeError | undefined) => void,
  ) {
    this.#view = view;
    this.#source = source;
    this.#options = options;
    this.#end = end;
    this.#url = urlBelowStatus(source.url, '/status/messages');
  }

  start(): void {
    const { signal, clock } = this.#options;
    if (signal.aborted) return this.#end(undefined);
    signal.addEventListener('abort', this.#aborted);
    this.#events = new BridgeEvents({
      url: this.#url,
      token: this.#source.token,
      maxEventBytes: MAX_LINE_BYTES,
      types: { message: (data) => this.#received(data), dropped: (data) => this.#missed(data) },
      opened: () => this.#opened(),
      lost: () => this.#lost(),
      refused: (status) => this.#refused(status),
      exceeded: () => this.#fail(this.#notOurs()),
      ready: () => this.#written,
    });
    this.#stopWaiting = clock.after(CONNECT_MS, () =>
      this.#fail(`${nameOf(this.#url)} has not answered for ${CONNECT_MS / 1000} s: is that mcp-portage?`),
    );
    this.#stopSettling = clock.every(FOLLOW_MS, () => {
      this.#view.settle();
      this.#flush();
    });
  }

  readonly #aborted = (): void => {
    this.#view.end();
    this.#flush();
    void this.#written.then(() => this.#close(undefined));
  };

  #opened(): void {
    this.#stopWaiting?.();
    if (this.#state === 'lost') this.#options.tell(`Connected to ${nameBridge(this.#url)} again.`);
    this.#state = 'live';
  }

  #received(data: string): void {
    if (this.#state === 'closed') return;
    const recorded = parseRecordedLine(data);
    if ('damage' in recorded) return this.#fail(this.#notOurs());
    const { seq, at } = recorded;
    // A restarted bridge counts from 1 again, but its messages are later.
    if (seq <= this.#latest.seq && at <= this.#latest.at) return;
    this.#latest = { seq, at };
    this.#view.take(recorded, data);
    this.#flush();
  }

  #missed(data: string): void {
    const count = /"messages":(\d{1,15})\b/.exec(data)?.[1] ?? 'Some';
    this.#options.tell(`${count} messages were missed, because this view was too slow for them.`);
  }

  #flush(): void {
    this.#written = Promise.all([this.#written, this.#view.flush()]).then(([, state]) => {
      if (state === 'closed') this.#close(undefined);
    });
  }

  #lost(): void {
    if (this.#state === 'connecting') {
      return this.#fail(`Cannot reach ${nameBridge(this.#url)}: is mcp-portage running there?`);
    }
    if (this.#state === 'live') this.#options.tell(`The connection to ${nameBridge(this.#url)} is lost; trying again.`);
    this.#state = 'lost';
  }

  #refused(status: number): void {
    const isRefused = status === 401 || status === 403;
    const message =
      status === 404
        ? `${nameBridge(this.#url)} shows no messages: start mcp-portage there with --inspect, or record to a file with --record FILE.`
        : refusalMessage(this.#url, status, this.#source.token);
    this.#fail(message, isRefused ? 'ERR_UPSTREAM_AUTH' : 'ERR_UPSTREAM_CONNECT');
  }

  #notOurs(): string {
    return `What ${nameOf(this.#url)} sends are no messages of mcp-portage.`;
  }

  #fail(message: string, code: 'ERR_UPSTREAM_CONNECT' | 'ERR_UPSTREAM_AUTH' = 'ERR_UPSTREAM_CONNECT'): void {
    this.#close(new BridgeError(code, message));
  }

  #close(failure: BridgeError | undefined): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#options.signal.removeEventListener('abort', this.#aborted);
    this.#events?.close();
    this.#stopWaiting?.();
    this.#stopSettling?.();
    this.#end(failure);
  }
}
