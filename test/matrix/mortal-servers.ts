import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startInetd } from '../support/inetd.ts';
import { PATIENT_BROKER, startMosquitto } from '../support/mosquitto.ts';
import { startAdaptedServer } from '../support/mqtt-adapter.ts';
import { ownPort } from '../support/own-port.ts';
import type { ServerProcess } from '../support/server-process.ts';
import {
  grpcTargetOf,
  inetdProgram,
  type ServerName,
  startLegacyGrpc,
  startLegacyHttp,
  startLegacyWebSocket,
  startModernGrpc,
  startModernHttp,
  startModernWebSocket,
} from './servers.ts';

/** A server that is killed, and comes back at the same address with nothing of what it knew. */
export interface MortalServer {
  /** What the user would give to mcp-portage. */
  readonly target: string;
  /** How errors call it. */
  readonly shownAs: string;
  /** Dies without a word. */
  kill(): Promise<void>;
  /** May be called twice. */
  stop(): Promise<void>;
  /** When it is dead. */
  startAgain(): Promise<MortalServer>;
}

export const MORTALS = {
  stateful: atPort((port) => startLegacyHttp('stateful', port)),
  stateless: atPort((port) => startLegacyHttp('stateless', port)),
  httpSse: atPort((port) => startLegacyHttp('http-sse', port)),
  modernHttp: atPort(startModernHttp),
  socket: atSocket((path) => startLegacyHttp('stateful', path)),
  modernSocket: atSocket(startModernHttp),
  webSocket: atPort(startLegacyWebSocket),
  modernWebSocket: atPort(startModernWebSocket),
  stream: onStream('legacy'),
  modernStream: onStream('modern'),
  grpc: onGrpc(startLegacyGrpc),
  modernGrpc: onGrpc(startModernGrpc),
  mqtt: atBroker(),
} as const satisfies Partial<Record<ServerName, () => Promise<MortalServer>>>;

function atPort(start: (port: number) => Promise<ServerProcess>): () => Promise<MortalServer> {
  const startAt = async (port: number): Promise<MortalServer> => {
    const { url, kill, stop } = await start(port);
    return { target: url.href, shownAs: url.origin, kill, stop, startAgain: () => startAt(port) };
  };
  return async () => startAt(await ownPort());
}

function onGrpc(start: (port: number) => Promise<ServerProcess>): () => Promise<MortalServer> {
  const startAt = async (port: number): Promise<MortalServer> => {
    const server = await start(port);
    const target = grpcTargetOf(server);
    return { target, shownAs: target, kill: server.kill, stop: server.stop, startAgain: () => startAt(port) };
  };
  return async () => startAt(await ownPort());
}

/** The broker lives on, and tells that the server is gone. */
function atBroker(): () => Promise<MortalServer> {
  return async () => {
    const broker = await startMosquitto(PATIENT_BROKER);
    const place = { url: broker.url, serverId: 'mortal-1', serverName: 'matrix/server' };
    const target = `${place.url}/${place.serverName}`;
    const startThere = async (): Promise<MortalServer> => {
      const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-mortal-'));
      const { kill, close } = await startAdaptedServer({ ...place, command: inetdProgram('legacy', folder) });
      const stop = async (): Promise<void> => {
        await close();
        await broker.stop();
        await rm(folder, { recursive: true, force: true });
      };
      return { target, shownAs: target, kill, stop, startAgain: startThere };
    };
    return startThere();
  };
}

function atSocket(start: (path: string) => Promise<ServerProcess>): () => Promise<MortalServer> {
  return async () => {
    const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-mortal-'));
    const path = join(folder, 'server.sock');
    const startHere = async (): Promise<MortalServer> => {
      // A server that was killed leaves its file behind, and the next one would not listen there.
      await rm(path, { force: true });
      const { kill, stop } = await start(path);
      const end = () => stop().finally(() => rm(folder, { recursive: true, force: true }));
      return { target: `unix://${path}#/mcp`, shownAs: path, kill, stop: end, startAgain: startHere };
    };
    return startHere();
  };
}

/** A process for each connection, and nobody who starts one. */
function onStream(era: 'legacy' | 'modern'): () => Promise<MortalServer> {
  const startAt = async (port: number): Promise<MortalServer> => {
    const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-mortal-'));
    const { stop } = await startInetd(inetdProgram(era, folder), { port });
    const target = `tcp://127.0.0.1:${port}`;
    const end = () => stop().finally(() => rm(folder, { recursive: true, force: true }));
    return { target, shownAs: target, kill: stop, stop: end, startAgain: () => startAt(port) };
  };
  return async () => startAt(await ownPort());
}
