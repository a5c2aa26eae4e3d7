/** Messages of up to 16 MiB that are dear to read, of a client and of a server, and the bridges they are sent through. */
import type { Era } from '../load/workload.ts';
import { type Filling, makeMembers, makeValue } from './shapes.js';

/** Below the limit of 16 MiB, with what stands around it. */
export const FILLING_BYTES = 15.9 * 1024 * 1024;

export interface StallPath {
  readonly name: string;
  readonly client: Era;
  readonly server: Era;
  readonly transport: 'stdio' | 'http';
  readonly options: readonly string[];
}

const path = (client: Era, server: Era, transport: 'stdio' | 'http', options: readonly string[] = []): StallPath => ({
  name: `${client} → ${server} ${options.length > 0 ? 'shared ' : ''}${transport}`,
  client,
  server,
  transport,
  options,
});
const SHARED = ['--isolation', 'shared'];

export const PATHS: readonly StallPath[] = [
  path('legacy', 'legacy', 'stdio'),
  path('legacy', 'legacy', 'stdio', SHARED),
  path('modern', 'modern', 'stdio'),
  path('modern', 'modern', 'http'),
  path('modern', 'legacy', 'stdio'),
  path('legacy', 'modern', 'stdio'),
];

/** Fillings, worst first, and where they are worst. */
export const FILLINGS: readonly Filling[] = ['members', 'escaped keys', 'distinct keys', 'objects', 'nested arrays'];

type Render = (filling: Filling, id: number, meta: string) => string;

const request = (id: number, method: string, params: string): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{${params}}}`;
const asObject = (filling: Filling): string => `{${makeMembers(filling, FILLING_BYTES).slice(0, -1)}}`;

/** Of a client, by where the filling stands. */
export const CLIENT_PLACES: ReadonlyMap<string, Render> = new Map<string, Render>([
  [
    'arguments',
    (filling, id, meta) => request(id, 'tools/call', `"name":"absorb","arguments":${asObject(filling)},${meta}`),
  ],
  [
    'params',
    (filling, id, meta) => request(id, 'tools/call', `"name":"absorb",${makeMembers(filling, FILLING_BYTES)}${meta}`),
  ],
  [
    'filter',
    (filling, id, meta) => request(id, 'subscriptions/listen', `"notifications":${asObject(filling)},${meta}`),
  ],
  [
    'retry',
    (filling, id, meta) =>
      request(id, 'tools/call', `"name":"absorb","arguments":${asObject(filling)},"requestState":"x",${meta}`),
  ],
  [
    'uri',
    (filling, id, meta) => request(id, 'resources/subscribe', `"uri":${makeValue(filling, FILLING_BYTES)},${meta}`),
  ],
]);

/** Of a server; see server.js. */
export const SERVER_PLACES = [
  'envelope',
  'result',
  'structured',
  'content',
  'error',
  'progress at the end',
  'log',
  'tools',
  'tool members',
  'schema',
  'output schema',
] as const;

const LISTS: ReadonlySet<string> = new Set(['tools', 'tool members', 'schema', 'output schema']);

/** The small request that makes a server say it. */
export function askFor(place: string, filling: Filling, id: number, meta: string): string {
  const shape = `${place}/${filling}/${Math.floor(FILLING_BYTES)}`;
  if (LISTS.has(place)) return request(id, 'tools/list', `"cursor":"${shape}",${meta}`);
  return request(id, 'tools/call', `"name":"${shape}","arguments":{},${meta}`);
}
