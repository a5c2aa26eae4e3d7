import { CLIENTS, type ClientName } from '../matrix/clients.ts';
import { fromServer, type MatrixClient } from '../matrix/matrix-client.ts';
import { waitFor } from '../support/wait-for.ts';

/** What became of one call: each has words of its own, so that whoever ran it can tell how often. */
export interface Attempt {
  readonly words: string;
  readonly outcome: 'answered' | 'failed';
  readonly reason: string | undefined;
}

/** A client that calls and calls, and when a call fails makes another one, as a person would. */
export class SteadyClient {
  readonly attempts: Attempt[] = [];
  /** How often it had to connect anew. */
  connections = 0;
  readonly #name: string;
  readonly #kind: ClientName;
  readonly #url: URL;
  #client: MatrixClient | undefined;
  #setUp: (client: MatrixClient) => Promise<void>;

  constructor(
    name: string,
    kind: ClientName,
    url: URL,
    setUp: (client: MatrixClient) => Promise<void> = async () => {},
  ) {
    this.#name = name;
    this.#kind = kind;
    this.#url = url;
    this.#setUp = setUp;
  }

  /** Connects where it has to. */
  async client(): Promise<MatrixClient> {
    if (this.#client !== undefined) return this.#client;
    const client = await CLIENTS[this.#kind].connect({ kind: 'url', url: this.#url }, { name: this.#name });
    this.connections += 1;
    this.#client = client;
    await this.#setUp(client);
    return client;
  }

  /** One call; what fails is another attempt. */
  async call(tool = 'echo', args: Readonly<Record<string, unknown>> = {}): Promise<string> {
    return waitFor(() => this.#attempt(tool, args), { message: () => `a call of ${this.#name} to be answered` });
  }

  async #attempt(tool: string, args: Readonly<Record<string, unknown>>): Promise<string | undefined> {
    const words = `${this.#name} ${this.attempts.length}`;
    try {
      const client = await this.client();
      const { text } = await client.callTool(tool, { value: words, ...args });
      if (text !== words) throw new Error(`answered with ${text}`);
      this.attempts.push({ words, outcome: 'answered', reason: undefined });
      return text;
    } catch (thrown) {
      const reason = thrown instanceof Error ? thrown.message : String(thrown);
      this.attempts.push({ words, outcome: 'failed', reason });
      if (/does not exist|ERR_SESSION_UNKNOWN|Session not found|404/.test(reason)) await this.#leave();
      return undefined;
    }
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

  get failures(): readonly string[] {
    return this.attempts.flatMap(({ reason }) => reason ?? []);
  }

  close(): Promise<void> {
    return this.#leave();
  }
}
