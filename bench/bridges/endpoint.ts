/** A bridge, or the server itself, as its clients find it: a port or a pair of pipes. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PATIENT_BROKER, startMosquitto } from '../../test/support/mosquitto.ts';
import { ownPort } from '../../test/support/own-port.ts';
import type { Client, Identity } from '../load/client.ts';
import { openGrpcClient } from '../load/grpc-client.ts';
import { openHttpSseClient } from '../load/http-sse-client.ts';
import { openMqttClient } from '../load/mqtt-client.ts';
import { openStdioClient } from '../load/stdio-client.ts';
import { openStreamClient } from '../load/stream-client.ts';
import { openStreamableClient } from '../load/streamable-client.ts';
import { openWebSocketClient } from '../load/websocket-client.ts';
import { type Program, type Started, startPiped, startService, waitForPlace } from '../measure/processes.ts';

export interface Endpoint {
  readonly started: Started;
  /** On pipes it can be called once. */
  openClient(identity: Identity): Promise<Client>;
}

export type HttpTransport = 'streamable' | 'http-sse' | 'websocket';

export interface HttpEndpointOptions {
  readonly transport: HttpTransport;
  readonly path: string;
  program(port: number): Program;
}

export async function startHttpEndpoint({ transport, path, program }: HttpEndpointOptions): Promise<Endpoint> {
  const port = await ownPort();
  const started = startService(program(port));
  await waitForPlace(port, started);
  return { started, openClient: (identity) => openHttpClient({ port, path }, identity, transport) };
}

/** Streamable HTTP at a Unix socket. */
export async function startSocketEndpoint(program: (socket: string) => Program): Promise<Endpoint> {
  const place = join(mkdtempSync(join(tmpdir(), 'mcp-portage-bench-')), 'bench.sock');
  const started = startService(program(place));
  await waitForPlace(place, started);
  return { started, openClient: (identity) => openStreamableClient({ place, path: '/mcp' }, identity) };
}

/** Sessions of gRPC, at a port. */
export async function startGrpcEndpoint(program: (port: number) => Program): Promise<Endpoint> {
  const port = await ownPort();
  const started = startService(program(port));
  await waitForPlace(port, started);
  return { started, openClient: (identity) => openGrpcClient(port, identity) };
}

/** A server at a broker of its own. What the broker costs is not counted. */
export async function startMqttEndpoint(program: (url: string) => Program): Promise<Endpoint> {
  const broker = await startMosquitto(PATIENT_BROKER);
  const started = startService(program(`${broker.url}/${MQTT_SERVER}`));
  started.child.once('exit', () => void broker.stop());
  return { started, openClient: (identity) => openMqttClient(broker.port, MQTT_SERVER, identity) };
}

const MQTT_SERVER = 'bench/server';

/** Lines on a byte stream, at a port. */
export async function startStreamEndpoint(program: (port: number) => Program): Promise<Endpoint> {
  const port = await ownPort();
  const started = startService(program(port));
  await waitForPlace(port, started);
  return { started, openClient: (identity) => openStreamClient(port, identity) };
}

export function openHttpClient(
  target: { readonly port: number; readonly path: string },
  identity: Identity,
  transport: HttpTransport,
): Promise<Client> {
  const { port: place, path } = target;
  switch (transport) {
    case 'streamable':
      return openStreamableClient({ place, path }, identity);
    case 'http-sse':
      return openHttpSseClient(target, identity);
    case 'websocket':
      return openWebSocketClient(target, identity);
  }
}

export async function startStdioEndpoint(program: Program): Promise<Endpoint> {
  const piped = startPiped(program);
  return { started: piped, openClient: (identity) => openStdioClient(piped, identity) };
}
