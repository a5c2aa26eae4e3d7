import { modern, postModern } from '../downstream/streamable-stateless/modern-posts.ts';
import type { Bridge } from '../support/bridge.ts';
import type { HttpAnswer } from '../support/http-call.ts';
import { type HttpSession, initialize, notification, openHttpSession } from '../support/legacy-clients.ts';

export type Era = 'legacy' | 'modern';

/** A real client of the built bridge, over Streamable HTTP. */
export interface FaultClient {
  /** Calls a tool; its name is the fault. */
  call(name: string, text: string): Promise<Outcome>;
  start(name: string, text: string): Promise<HttpAnswer>;
  /** Ends its session, where it has one. */
  leave(): Promise<void>;
}

export function connectClient(bridge: Pick<Bridge, 'url'>, era: Era): Promise<FaultClient> {
  const port = Number(bridge.url.port);
  return era === 'legacy' ? LegacyFaultClient.connect(port) : Promise.resolve(new ModernFaultClient(port));
}

class LegacyFaultClient implements FaultClient {
  readonly #session: HttpSession;
  #id = 0;

  private constructor(session: HttpSession) {
    this.#session = session;
  }

  static async connect(port: number): Promise<FaultClient> {
    const session = await openHttpSession(port, initialize());
    await (await session.post(notification('notifications/initialized'))).text();
    return new LegacyFaultClient(session);
  }

  async call(name: string, text: string): Promise<Outcome> {
    return outcomeOf(await this.start(name, text));
  }

  start(name: string, text: string): Promise<HttpAnswer> {
    this.#id += 1;
    const params = { name, arguments: { text } };
    return this.#session.post({ jsonrpc: '2.0', id: this.#id, method: 'tools/call', params });
  }

  async leave(): Promise<void> {
    await (await this.#session.delete()).text();
  }
}

class ModernFaultClient implements FaultClient {
  readonly #port: number;
  /** All clients count alike, so that their ids collide. */
  #id = 0;

  constructor(port: number) {
    this.#port = port;
  }

  async call(name: string, text: string): Promise<Outcome> {
    return outcomeOf(await this.start(name, text));
  }

  start(name: string, text: string): Promise<HttpAnswer> {
    this.#id += 1;
    return postModern({ port: this.#port }, modern(this.#id, 'tools/call', { name, arguments: { text } }));
  }

  async leave(): Promise<void> {}
}

export interface Outcome {
  readonly status: number;
  readonly text: string | undefined;
  readonly error: { readonly code: number; readonly message: string; readonly data?: object } | undefined;
}

interface Message {
  readonly id?: unknown;
  readonly result?: { readonly content: readonly { readonly text: string }[] };
  readonly error?: Outcome['error'];
}

/** Of the one answer there may be, plain or at the end of a stream. */
export async function outcomeOf(answer: HttpAnswer): Promise<Outcome> {
  const body = await answer.text();
  const texts = answer.isEventStream ? [...body.matchAll(/^data: ?(\{.*)$/gm)].map(([, data]) => data ?? '') : [body];
  const messages = texts.filter((text) => text.startsWith('{')).map((text) => JSON.parse(text) as Message);
  const answers = messages.filter(({ result, error }) => result !== undefined || error !== undefined);
  if (answers.length > 1) throw new Error(`answered ${answers.length} times: ${body}`);
  const [only] = answers;
  return { status: answer.status, text: only?.result?.content[0]?.text, error: only?.error };
}
