import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import {
  BRIDGE_COMMAND,
  type Bridge,
  type BridgeOptions,
  type LogLine,
  readLog,
  startBridge,
} from '../support/bridge.ts';
import { PATIENT_BROKER, startMosquitto } from '../support/mosquitto.ts';
import { assertGone, descendantsOf } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';
import { atSocket, CLIENTS, type ClientKind, type ClientName, type Endpoint, type ServerPipe } from './clients.ts';
import type { ConnectOptions, MatrixClient } from './matrix-client.ts';

/** What stands between clients of one kind and the server. */
export interface Front {
  /** Grows; complete when it has stopped. */
  readonly logs: readonly LogLine[];
  connect(options: ConnectOptions): Promise<MatrixClient>;
  /** Bridges and what runs below them. */
  processes(): readonly number[];
  /** Ends what still runs; fails when something stays behind. May be called twice. */
  stop(): Promise<void>;
}

/**
 * The bridge as this kind of client uses it: one process a client, or one for all of them.
 * @param target URL, or `--` and a command
 */
export async function startFront(
  client: ClientName,
  target: readonly string[],
  options: BridgeOptions = {},
): Promise<Front> {
  const kind: ClientKind = CLIENTS[client];
  if (kind.over === 'socket') return serveAtSocket(kind, target, options);
  if (kind.over === 'mqtt') return serveAtBroker(kind, target, options);
  if (kind.over !== 'stdio') return serve(kind, target, { bridge: options, at: undefined });
  return new StdioFront(kind, [...BRIDGE_COMMAND, 'connect', '--log-format', 'json', ...target], options);
}

/** No bridge at all, for a server of the client's own transport. */
export async function startDirectly(client: ClientName, target: readonly string[]): Promise<Front> {
  const kind: ClientKind = CLIENTS[client];
  if (kind.over === 'stdio') return new StdioFront(kind, target.slice(1));
  const url = target.at(-1) ?? '';
  const endpoint: Endpoint = kind.over === 'socket' ? atSocket(url) : { kind: 'url', url: new URL(url) };
  return { logs: [], connect: (options) => kind.connect(endpoint, options), processes: () => [], stop: async () => {} };
}

/** A command, started by each client as its server. */
class StdioFront implements Front {
  readonly logs: LogLine[] = [];
  readonly #kind: ClientKind;
  readonly #command: readonly string[];
  readonly #pipes: ServerPipe[] = [];
  readonly #read: Promise<void>[] = [];
  /** What ran when a client left: afterward nobody could tell whose it was. */
  readonly #left: number[] = [];
  readonly #env: BridgeOptions['env'];

  constructor(kind: ClientKind, command: readonly string[], { env }: BridgeOptions = {}) {
    this.#kind = kind;
    this.#command = command;
    this.#env = env;
  }

  connect(options: ConnectOptions): Promise<MatrixClient> {
    const onPipe = (pipe: ServerPipe): void => this.#keep(pipe);
    return this.#kind.connect({ kind: 'command', command: this.#command, env: this.#env, onPipe }, options);
  }

  #keep(pipe: ServerPipe): void {
    this.#pipes.push(pipe);
    const close = pipe.close.bind(pipe);
    pipe.close = () => {
      this.#left.push(...below(pipe));
      return close();
    };
    if (pipe.stderr !== null) this.#read.push(readLog(pipe.stderr as Readable, this.logs));
  }

  processes(): readonly number[] {
    return this.#pipes.flatMap(below);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#pipes.map((pipe) => pipe.close()));
    await assertGone(this.#left);
    await Promise.all(this.#read);
  }
}

const below = ({ pid }: ServerPipe): number[] => (pid === null ? [] : [pid, ...descendantsOf(pid)]);

/** As many processes for modern clients as a scenario needs at once; more would only take longer to end together. */
const POOL = ['--pool-size', '8'];

/** Where clients of this kind find the bridge. */
export function addressFor({ over }: Pick<ClientKind, 'over'>, bridge: Pick<Bridge, 'url' | 'sseUrl'>): URL {
  if (over === 'httpSse') return bridge.sseUrl;
  return over === 'webSocket' ? new URL(`ws://${bridge.url.host}/ws`) : bridge.url;
}

/** How the log begins the line about an address that is not of HTTP. */
const LABELS: Partial<Readonly<Record<ClientKind['over'], string>>> = { stream: 'Byte stream', grpc: 'gRPC' };

/** Options with which `serve` listens for these clients at another place than that of HTTP. */
export function optionsFor({ over }: Pick<ClientKind, 'over'>): readonly string[] {
  if (over === 'stream') return ['--stream', 'tcp://127.0.0.1:0'];
  return over === 'grpc' ? ['--grpc', '127.0.0.1:0'] : [];
}

/** The same where a stream or gRPC is one of the places. */
export async function urlFor(kind: ClientKind, bridge: Bridge): Promise<URL> {
  const label = LABELS[kind.over];
  if (label === undefined) return addressFor(kind, bridge);
  return waitFor(() => {
    const line = bridge.logs.find(({ msg }) => msg?.startsWith(label) === true);
    return line && new URL((line.endpoint as { url: string }).url);
  });
}

/** `mcp-portage serve --socket …`, one for all clients. */
async function serveAtSocket(kind: ClientKind, target: readonly string[], bridge: BridgeOptions): Promise<Front> {
  const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-socket-'));
  const removeFolder = () => rm(folder, { recursive: true, force: true });
  const path = join(folder, 'mcp.sock');
  try {
    const at = atSocket(`unix://${path}#/mcp`);
    const front = await serve(kind, ['--socket', path, ...target], { bridge, at });
    return { ...front, stop: () => front.stop().finally(removeFolder) };
  } catch (error) {
    await removeFolder();
    throw error;
  }
}

/** `mcp-portage serve --dial …`, one for all clients of a broker. */
async function serveAtBroker(kind: ClientKind, target: readonly string[], bridge: BridgeOptions): Promise<Front> {
  const broker = await startMosquitto(PATIENT_BROKER);
  const url = `${broker.url}/matrix/bridge`;
  try {
    const at: Endpoint = { kind: 'url', url: new URL(url) };
    const front = await serve(kind, ['--dial', url, ...target], { bridge, at });
    return { ...front, stop: () => front.stop().finally(broker.stop) };
  } catch (error) {
    await broker.stop();
    throw error;
  }
}

/** `mcp-portage serve …`, one for all clients. */
async function serve(
  kind: ClientKind,
  target: readonly string[],
  { bridge: options, at }: { readonly bridge: BridgeOptions; readonly at: Endpoint | undefined },
): Promise<Front> {
  // Behind a byte stream and at a broker there is one for each connection, too.
  const pool = target.includes('--') || /^(tcp|mqtt):/.test(target.at(-1) ?? '') ? POOL : [];
  const bridge = await startBridge([...optionsFor(kind), ...pool, ...target], options);
  const endpoint: Endpoint = at ?? { kind: 'url', url: await urlFor(kind, bridge) };
  return {
    logs: bridge.logs,
    connect: (options) => kind.connect(endpoint, options),
    processes: () => [bridge.pid, ...bridge.children()],
    stop: async () => {
      const { code, signal } = await bridge.stop();
      if (code !== 0) throw new Error(`the bridge ended with ${code ?? signal}`);
    },
  };
}
