import { CLIENTS, type ClientName } from '../../matrix/clients.ts';
import { fromServer, type MatrixClient } from '../../matrix/matrix-client.ts';
import { waitFor } from '../../support/wait-for.ts';
import { ECHO, type SteadyCall } from './steady-calls.ts';

/** What became of one call: each has words of its own, so that whoever ran it can tell how often. */
export interface Attempt {
  readonly words: string;
  readonly outcome: 'answered' | 'failed';
  /** Whether the server keeps a record of such calls. */
  readonly isRecorded: boolean;
  readonly reason: string | undefined;
}

export interface SteadyClientOptions {
  readonly name: string;
  readonly kind: ClientName;
  readonly url: URL;
  /** What it does with each connection before it calls. */
  readonly setUp?: (client: MatrixClient) => Promise<void>;
  /** Made in turn. */
  readonly calls?: readonly SteadyCall[];
  /**
   * What tells the client that it has to start anew: that its session does not exist anymore, which is the default; or
   * that its connection has ended.
   */
  readonly endsWith?: 'session' | 'connection';
}

/** How a bridge, and the SDK, say that there is no such session. */
const GONE = /does not exist|ERR_SESSION_UNKNOWN|Session not found|404/;

/** A client that calls and calls, and when a call fails makes another one, as a person would. */
export class SteadyClient {
  readonly attempts: Attempt[] = [];
  /** How often it had to connect anew. */
  connections = 0;
  readonly #options: SteadyClientOptions;
  readonly #calls: readonly SteadyCall[];
  #answered = 0;
  #client: MatrixClient | undefined;

  constructor(options: SteadyClientOptions) {
    this.#options = options;
    this.#calls = options.calls ?? ECHO;
  }

  get name(): string {
    return this.#options.name;
  }

  /** Connects where it has to. */
  async client(): Promise<MatrixClient> {
    if (this.#client !== undefined) return this.#client;
    const { name, kind, url, setUp } = this.#options;
    const client = await CLIENTS[kind].connect({ kind: 'url', url }, { name });
    this.connections += 1;
    this.#client = client;
    await setUp?.(client);
    return client;
  }

  /** Makes the next call; what fails is another attempt. */
  async call(): Promise<void> {
    const call = this.#calls[this.#answered % this.#calls.length];
    if (call === undefined) throw new Error('a steady client has calls to make');
    await waitFor(() => this.#attempt(call), {
      message: () => `a call of ${this.name} to be answered; the last one: ${this.failures.at(-1)}`,
    });
    this.#answered += 1;
  }

  async #attempt(call: SteadyCall): Promise<boolean> {
    const words = `${this.name} ${this.attempts.length}`;
    const { isRecorded } = call;
    try {
      await this.#make(call, words);
      this.attempts.push({ words, isRecorded, outcome: 'answered', reason: undefined });
      return true;
    } catch (thrown) {
      const reason = thrown instanceof Error ? thrown.message : String(thrown);
      this.attempts.push({ words, isRecorded, outcome: 'failed', reason });
      if (this.#tellsOfTheEnd(thrown)) await this.#leave();
      return false;
    }
  }

  /**
   * The SDKs complain of a stream that has ended, or that cannot be resumed, and go on to wait for the response that was to
   * come on it.
   */
  async #make(call: SteadyCall, words: string): Promise<void> {
    const client = await this.client();
    const made = call.make(client, words);
    let isOver = false;
    const over = (): void => {
      isOver = true;
    };
    made.then(over, over);
    const first = this.#options.endsWith === 'connection' ? 0 : client.faults.length;
    const findFault = (): Error | undefined =>
      client.faults.slice(first).find((fault) => this.#tellsOfTheEnd(fault) || this.#isLost(fault));
    const complained = async (): Promise<never> => {
      const fault = await waitFor(() => isOver || findFault());
      throw fault;
    };
    const complaint = complained();
    complaint.catch(() => undefined);
    await Promise.race([made, complaint]);
  }

  /** Whether nothing further comes for the call, though the client need not start anew. */
  #isLost(fault: Error): boolean {
    // Streams of 2026-07-28 are not resumed.
    if (this.#options.kind === 'modernHttp') return fault.message.startsWith('SSE stream disconnected');
    // The replica died before it had stored what it had sent.
    return 'code' in fault && fault.code === 400 && fault.message.includes('Failed to open SSE stream');
  }

  /** Whether the client has to start anew. */
  #tellsOfTheEnd(thrown: unknown): boolean {
    if (this.#options.endsWith === 'connection') return true;
    if (!(thrown instanceof Error)) return false;
    return ('code' in thrown && thrown.code === 404) || GONE.test(thrown.message);
  }

  /** The protocol's answer to a session that is gone: a new one. */
  async #leave(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.close().catch(() => undefined);
  }

  async heard(method: string, since: number): Promise<boolean> {
    return fromServer(await this.client(), method).length > since;
  }

  get answered(): number {
    return this.#answered;
  }

  get failures(): readonly string[] {
    return this.attempts.flatMap(({ reason }) => reason ?? []);
  }

  close(): Promise<void> {
    return this.#leave();
  }
}
