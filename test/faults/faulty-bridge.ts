import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import { type Bridge, startBridge } from '../support/bridge.ts';
import type { HttpAnswer } from '../support/http-call.ts';
import { type HttpSession, initialize, notification, openHttpSession } from '../support/legacy-clients.ts';
import { waitFor } from '../support/wait-for.ts';

export const FAULTY = [process.execPath, fileURLToPath(new URL('../fixtures/servers/faulty.js', import.meta.url))];

export interface Outcome {
  readonly status: number;
  readonly text: string | undefined;
  readonly error: { readonly code: number; readonly message: string; readonly data?: object } | undefined;
}

/** A session of a real client of the built bridge. */
export class FaultClient {
  readonly session: HttpSession;
  #id = 0;

  private constructor(session: HttpSession) {
    this.session = session;
  }

  static async connect(bridge: Bridge): Promise<FaultClient> {
    const session = await openHttpSession(Number(bridge.url.port), initialize());
    await (await session.post(notification('notifications/initialized'))).text();
    return new FaultClient(session);
  }

  /** Calls a tool; its name is the fault. */
  async call(name: string, text: string): Promise<Outcome> {
    return outcomeOf(await this.start(name, text));
  }

  start(name: string, text: string): Promise<HttpAnswer> {
    this.#id += 1;
    const params = { name, arguments: { text } };
    return this.session.post({ jsonrpc: '2.0', id: this.#id, method: 'tools/call', params });
  }
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

export interface Faulty {
  readonly bridge: Bridge;
  readonly victim: FaultClient;
  /** Another client, whom the fault shall not concern. */
  readonly witness: FaultClient;
  /** Fails unless the witness is served as before, the next client is, and nothing has stayed of the fault. */
  recovered(): Promise<void>;
  /** Resolves when a line with this code is in the log. */
  logged(code: string): Promise<void>;
}

/** The bridge before a server with faults, or what else `target` names. Ended with the test, when nothing may be left. */
export async function startFaulty(
  t: ExecutionContext,
  options: readonly string[] = [],
  target = ['--', ...FAULTY],
): Promise<Faulty> {
  const bridge = await startBridge(['--shutdown-grace', '300ms', ...options, ...target]);
  t.teardown(() => bridge.stop());
  const witness = await FaultClient.connect(bridge);
  await witness.call('echo', 'before');
  const before = await steadyHandles(bridge);
  const victim = await FaultClient.connect(bridge);
  const recovered = async (): Promise<void> => {
    t.is((await witness.call('echo', 'undisturbed')).text, 'undisturbed');
    const next = await FaultClient.connect(bridge);
    t.is((await next.call('echo', 'welcome')).text, 'welcome');
    await (await next.session.delete()).text();
    await (await victim.session.delete()).text();
    await waitFor(() => handlesOf(bridge.pid) <= before, {
      message: () => `${handlesOf(bridge.pid)} handles to become ${before} again`,
    });
  };
  const logged = async (code: string): Promise<void> => {
    await waitFor(() => bridge.logs.some((line) => line.code === code || String(line.msg).includes(code)), {
      message: () => `${code} in the log: ${JSON.stringify(bridge.logs.slice(-5))}`,
    });
  };
  return { bridge, victim, witness, recovered, logged };
}

/** Sockets, pipes and files of a process; 0 where nobody can tell. */
export function handlesOf(pid: number): number {
  return process.platform === 'linux' ? readdirSync(`/proc/${pid}/fd`).length : 0;
}

export function rssMiBOf(pid: number): number {
  if (process.platform !== 'linux') return 0;
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

/** Connections of clients close a moment after their answers. */
async function steadyHandles({ pid }: Bridge): Promise<number> {
  let last = -1;
  let times = 0;
  return waitFor(() => {
    const now = handlesOf(pid);
    times = now === last ? times + 1 : 0;
    last = now;
    return times >= 5 && now;
  });
}
