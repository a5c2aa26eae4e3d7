/** Sequences of requests on one connection: pipelined, cut anywhere, with upgrades among them, and with what is no request. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { connect as connectTcp, type NetConnectOpts, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import type { ExecutionContext } from 'ava';
import fc from 'fast-check';
import { handleOfHost } from '../../../src/bridge/host-request.ts';
import { HttpServer } from '../../../src/downstream/listener/http-server.ts';
import { BridgeError } from '../../../src/errors.ts';
import { Admission, ANONYMOUS, type Authenticator } from '../../../src/http/auth/callers.ts';
import { AccessPolicy } from '../../../src/http/server/access-policy.ts';
import { wordsOfHttp } from '../../../src/http/server/listen.ts';
import type { SessionDialer } from '../../../src/relay/ports.ts';
import { LinkSecrets } from '../../../src/replicas/forwarding/link/link-secrets.ts';
import { OwnerLinks } from '../../../src/replicas/forwarding/link/owner-links.ts';
import { LINK_HEADER, LINK_PROTOCOL } from '../../../src/replicas/forwarding/link/upgrade.ts';
import { resultFrame } from '../../../src/wire/write-message.ts';
import { headersOf, modern } from '../../downstream/streamable-stateless/modern-posts.ts';
import { FakeLink } from '../../support/fake-peers.ts';
import { fixtureCertificate, type HttpHarness, portOf, startHttpHarness } from '../../support/http-harness.ts';
import { POST_HEADERS } from '../../support/legacy-clients.ts';
import { CLUSTER_KEY } from '../../support/linked-replicas.ts';
import { type ReadResponse, type ReadResponses, readResponses } from '../../support/read-responses.ts';
import { waitFor } from '../../support/wait-for.ts';
import { createRandom } from '../../wire/json-text.ts';
import { anySeed, havoc, pieces } from '../havoc.ts';
import { fuzzTarget, insist } from '../target.ts';

// ---- what is sent, and what has to come back

type Front = 'port' | 'tls' | 'socket' | 'host';

/**
 * What a part of a sequence means for the connection:
 * - `goes-on`: it is answered, and so is what comes after it.
 * - `ends`: it is answered, and nothing after it is read as a request.
 * - `closes`: it is the last on its connection; where something follows all the same, Node ends the connection at once.
 * - `switches`: it is answered with another protocol, which what comes after it has to be read as.
 * - `stays`: its answer begins, and does not end as long as the connection lasts.
 * - `cuts`: the connection ends, and what was not answered before may stay so.
 * - `unclear`: whether it is a request, or what comes after it, depends on more than is known here.
 */
type Effect = 'goes-on' | 'ends' | 'closes' | 'switches' | 'stays' | 'cuts' | 'unclear';

interface Part {
  readonly bytes: Buffer;
  readonly effect: Effect;
  readonly answer: { readonly status: number; readonly body: RegExp } | undefined;
  readonly isHead: boolean;
}

type Headers = Readonly<Record<string, string | undefined>>;

interface Written {
  readonly method: string;
  readonly path: string;
  readonly headers?: Headers;
  readonly body?: string;
  readonly framing?: 'length' | 'chunked';
}

function write({ method, path, headers = {}, body, framing = 'length' }: Written): Buffer {
  const own =
    body === undefined
      ? {}
      : framing === 'length'
        ? { 'Content-Length': String(Buffer.byteLength(body)) }
        : { 'Transfer-Encoding': 'chunked' };
  const lines = Object.entries({ Host: '127.0.0.1', ...own, ...headers }).map(([name, value]) => `${name}: ${value}`);
  const sent = body !== undefined && framing === 'chunked' ? chunked(body) : (body ?? '');
  return Buffer.from([`${method} ${path} HTTP/1.1`, ...lines, '', sent].join('\r\n'));
}

function chunked(body: string): string {
  const half = Math.floor(body.length / 2);
  const chunks = [body.slice(0, half), body.slice(half)].filter((chunk) => chunk !== '');
  return [...chunks.flatMap((chunk) => [chunk.length.toString(16), chunk]), '0', '', ''].join('\r\n');
}

/** How a request asks for another protocol that it does not get. */
const WISHES: Readonly<Record<string, Headers>> = {
  h2c: { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': 'AAMAAABkAAQCAAAAAAIAAAAA' },
  several: { Connection: 'keep-alive, Upgrade', Upgrade: 'h2c, websocket, TLS/1.2' },
  unknown: { Connection: 'upgrade', Upgrade: 'tomorrow/1' },
};

const HANDSHAKE: Headers = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
};

/** Refuses those who say so, and takes its time where they ask for that: an issuer's keys may have to be fetched. */
const authenticator: Authenticator = {
  authenticate: ({ headers: { authorization } }, decided) => {
    const decide = (): void => {
      const isRefused = authorization?.startsWith('Bearer bad') === true;
      if (isRefused) decided({ kind: 'refused', refusal: { error: BAD_TOKEN, challenge: 'Bearer' } });
      else decided({ kind: 'principal', principal: ANONYMOUS });
    };
    if (authorization?.endsWith('late') === true) setTimeout(decide, 1);
    else decide();
  },
};
const BAD_TOKEN = new BridgeError('ERR_AUTH_TOKEN', 'this token is bad');

const TOKENS = [undefined, undefined, 'Bearer good', 'Bearer good late', 'Bearer bad', 'Bearer bad late'] as const;

/** As `createPart` makes a part of it. */
interface PartChoice {
  readonly kind: (typeof KINDS)[number];
  readonly token: (typeof TOKENS)[number];
  readonly wish: string | undefined;
  readonly seed: number;
}

const KINDS = [
  ...([
    'healthz',
    'healthz',
    'readyz',
    'nothing',
    'options',
    'head',
    'call',
    'call',
    'slow-call',
    'slow-call',
  ] as const),
  ...(['chunked-call', 'expected-call', 'unmet-expectation', 'no-json', 'last'] as const),
  ...(['handshake', 'handshake', 'bad-handshake', 'handshake-elsewhere', 'handshake-with-body'] as const),
  ...(['link', 'false-link', 'connect', 'preface', 'no-host', 'stream', 'half-body', 'half-head'] as const),
  ...(['damaged', 'too-large', 'two-lengths', 'bad-chunk', 'garbage'] as const),
] as const;

const choice = fc.record<PartChoice>({
  kind: fc.constantFrom(...KINDS),
  token: fc.constantFrom(...TOKENS),
  wish: fc.option(fc.constantFrom(...Object.keys(WISHES)), { nil: undefined, freq: 2 }),
  seed: anySeed,
});

const sequence = fc.record({
  front: fc.constantFrom<Front>('port', 'tls', 'socket', 'host'),
  choices: fc.array(choice, { minLength: 1, maxLength: 6 }),
  cut: fc.constantFrom(
    'one-packet' as const,
    'one-packet' as const,
    'by-part' as const,
    'pieces' as const,
    'bytes' as const,
  ),
  reads: fc.constantFrom('at-once' as const, 'afterward' as const),
  ending: fc.constantFrom('stay' as const, 'stay' as const, 'end' as const, 'reset' as const),
  seed: anySeed,
});
type Sequence = typeof sequence extends fc.Arbitrary<infer Kind> ? Kind : never;

let count = 0;

function createPart({ kind, token, wish, seed }: PartChoice, front: Front, isFirst: boolean): Part {
  const wished = wish === undefined ? {} : WISHES[wish];
  const authorization = token === undefined ? {} : { Authorization: token };
  const isRefused = token?.startsWith('Bearer bad') === true;
  // Node loses what comes in one packet with a wish, at a server that listens for no upgrades.
  const goesOn: Effect = front === 'host' && wish !== undefined ? 'unclear' : 'goes-on';
  const part = (bytes: Buffer, effect: Effect, status?: number, body = /(?:)/): Part => {
    return { bytes, effect, answer: status === undefined ? undefined : { status, body }, isHead: kind === 'head' };
  };
  const get = (path: string, headers: Headers = {}, method = 'GET'): Buffer =>
    write({ method, path, headers: { ...wished, ...headers, ...authorization } });
  const call = (name: string, { headers = {}, ...how }: Partial<Written> = {}): Part => {
    count += 1;
    const message = modern(count, 'tools/call', { name, arguments: {} });
    const all = { ...headersOf(message), ...wished, ...authorization, ...headers };
    const bytes = write({ method: 'POST', path: '/mcp', headers: all, body: JSON.stringify(message), ...how });
    // A refusal does not read the message.
    return isRefused ? part(bytes, goesOn, 401) : part(bytes, goesOn, 200, new RegExp(`"id":${count}\\b`));
  };
  const hasLinks = front === 'tls' || front === 'socket';
  /** What asks for a protocol that is spoken here, and does not get it, is answered with the last answer. */
  const refusal: Effect = front === 'host' ? 'unclear' : 'ends';
  switch (kind) {
    case 'healthz':
      return part(get('/healthz'), goesOn, 200, /"status":"ok"/);
    case 'readyz':
      return part(get('/readyz'), goesOn, 200, /"status":"ready"/);
    case 'nothing':
      return front === 'host' ? part(get('/nothing'), goesOn, 404, /^mine/) : part(get('/nothing'), goesOn, 404);
    case 'options':
      return part(get('/mcp', {}, 'OPTIONS'), goesOn, 204);
    case 'head':
      return part(get('/healthz', {}, 'HEAD'), goesOn, 200);
    case 'call':
      return call('quick');
    case 'slow-call':
      return call('slow');
    case 'chunked-call':
      return call('slow', { framing: 'chunked' });
    case 'expected-call':
      // Where nobody listens for it, Node writes what it asks the client to go on with between head and body.
      if (front === 'host' && !isFirst) return call('quick');
      // Behind others the answer may come before its client was asked to go on, and is then the last.
      return { ...call('quick', { headers: { Expect: '100-continue' } }), ...(!isFirst && { effect: 'unclear' }) };
    case 'unmet-expectation':
      return part(get('/healthz', { Expect: 'a miracle' }), goesOn, 417);
    case 'no-json': {
      const headers = { ...POST_HEADERS, ...wished, ...authorization };
      return part(write({ method: 'POST', path: '/mcp', headers, body: '{' }), goesOn, isRefused ? 401 : 400);
    }
    case 'last':
      return part(get('/healthz', { Connection: 'close' }), 'closes', 200);
    case 'handshake':
      if (isRefused) return part(get('/ws', HANDSHAKE), refusal, 401);
      return front === 'host'
        ? part(get('/ws', HANDSHAKE), 'unclear', 426)
        : part(get('/ws', HANDSHAKE), 'switches', 101);
    case 'bad-handshake':
      return part(get('/ws', { ...HANDSHAKE, 'Sec-WebSocket-Version': '8' }), refusal, isRefused ? 401 : 426);
    case 'handshake-elsewhere':
      return part(get('/healthz', HANDSHAKE), refusal, 200);
    case 'handshake-with-body': {
      const headers = { ...HANDSHAKE, ...authorization };
      const bytes = write({ method: 'GET', path: '/healthz', headers, body: 'no frame' });
      return part(bytes, front === 'host' ? 'unclear' : 'goes-on', 200);
    }
    case 'link':
    case 'false-link': {
      const offer = new LinkSecrets(CLUSTER_KEY, () => ['raw']).offer(kind === 'link' ? 'owner' : 'nobody').text;
      const text = kind === 'link' ? offer : offer.slice(1);
      const headers = { Connection: 'Upgrade', Upgrade: LINK_PROTOCOL, [LINK_HEADER]: text };
      if (front === 'host') return part(get('/healthz', headers), 'unclear', 200);
      if (!hasLinks) return part(get('/healthz', headers), 'goes-on', 200);
      return kind === 'link'
        ? part(get('/healthz', headers), 'switches', 101)
        : part(get('/healthz', headers), 'ends', 403);
    }
    case 'connect':
      return part(get('127.0.0.1:1', {}, 'CONNECT'), 'cuts');
    case 'preface':
      return part(Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), 'cuts');
    case 'no-host':
      return part(Buffer.from('GET /healthz HTTP/1.1\r\n\r\n'), 'closes', 400);
    case 'stream':
      return part(get('/sse', { Accept: 'text/event-stream' }), isRefused ? goesOn : 'stays', isRefused ? 401 : 200);
    case 'half-body': {
      const { bytes } = call('quick', { framing: seed % 2 === 0 ? 'length' : 'chunked' });
      return part(bytes.subarray(0, bytes.length - 1 - (seed % 40)), 'unclear');
    }
    case 'half-head': {
      const bytes = get('/healthz');
      return part(bytes.subarray(0, 1 + (seed % (bytes.length - 1))), 'unclear');
    }
    case 'damaged':
      return part(havoc(call('quick').bytes, seed, [get('/ws', HANDSHAKE)]), 'unclear');
    case 'too-large':
      return part(get('/healthz', { 'X-Large': 'x'.repeat(20_000) }), 'unclear');
    case 'two-lengths':
      return part(get('/healthz', { 'Content-Length': '3', 'content-length': '4' }), 'unclear');
    case 'bad-chunk':
      return part(
        Buffer.concat([get('/mcp', { 'Transfer-Encoding': 'chunked' }, 'POST'), Buffer.from('zz\r\n')]),
        'unclear',
      );
    case 'garbage':
      return part(havoc(Buffer.from('\x16\x03\x01\x02\0\x01\0'), seed), 'unclear');
  }
}

// ---- where it is sent

/** Answers every call: at once, or a little later. */
const echoing: SessionDialer = {
  name: 'echoing',
  dial(listener) {
    const link = new FakeLink();
    link.onSend = ({ frame }) => {
      if (frame.kind !== 'request') return;
      const { params } = frame.json() as { params?: { name?: unknown } };
      const answer = (): void => listener.fromServer(resultFrame(frame.id ?? 0, { resultType: 'complete' }));
      if (params?.name === 'slow') setTimeout(answer, 2);
      else answer();
    };
    return link;
  },
  readiness: () => ({ state: 'ready' }),
  close: async () => {},
  killNow() {},
};

let harness: HttpHarness;
let places: Readonly<Record<Front, NetConnectOpts>>;
let ends: (() => unknown)[] = [];
let thrown: unknown[] = [];

const takeThrown = (error: unknown): void => void thrown.push(error);

async function open(): Promise<void> {
  thrown = [];
  process.on('uncaughtException', takeThrown).on('unhandledRejection', takeThrown);
  ends = [() => process.off('uncaughtException', takeThrown).off('unhandledRejection', takeThrown)];
  // Nothing of a test is needed but its end.
  const t = { teardown: (end: () => unknown) => void ends.push(end) } as unknown as ExecutionContext;
  harness = await startHttpHarness(t, { modernDialer: echoing, authenticator, maxSessions: 1000 });
  const folder = mkdtempSync(join(tmpdir(), 'portage-'));
  ends.push(() => rmSync(folder, { recursive: true }));
  const path = process.platform === 'win32' ? `\\\\.\\pipe\\portage-${process.pid}` : join(folder, 'http');
  const policy = new AccessPolicy({ addresses: ['127.0.0.1'], ...harness.config.access });
  const server = new HttpServer({
    addresses: [
      { kind: 'tcp', host: '127.0.0.1', port: 0 },
      { kind: 'socket', path, mode: 0o600 },
    ],
    certificate: fixtureCertificate(),
    cors: policy,
    admission: new Admission(policy),
    socketAdmission: new Admission(new AccessPolicy({ addresses: 'any', ...harness.config.access })),
    router: harness.servers,
    links: new OwnerLinks({ secrets: new LinkSecrets(CLUSTER_KEY, () => ['owner']), deps: harness.deps }),
    onRefused: undefined,
    deps: harness.deps,
    words: wordsOfHttp('flags'),
  });
  ends.push(() => server.close());
  const secured = portOf(await server.listen());
  const host = createHost();
  await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve));
  ends.push(() => {
    host.close();
    host.closeAllConnections();
  });
  places = {
    port: { host: '127.0.0.1', port: harness.port },
    tls: { host: '127.0.0.1', port: secured },
    socket: { path },
    host: { host: '127.0.0.1', port: (host.address() as { port: number }).port },
  };
}

/** A program that has the bridge serve what is its own. */
function createHost(): Server {
  const parts = { prefix: '', arrival: 'seen', listener: harness.config, http: harness.http } as const;
  return createServer((request, response) => {
    const isOurs =
      request.url !== '/nothing' && handleOfHost(request, response, { ...parts, servers: harness.servers });
    if (!isOurs) response.writeHead(404).end('mine');
  });
}

async function close(): Promise<void> {
  for (const end of ends.splice(0).reverse()) await end();
}

// ---- what is tried

class Peer {
  /** What the bytes go through. */
  readonly #connection: Socket;
  readonly socket: Socket;
  received = '';
  isClosed = false;
  /** It did not end as connections should: the system may have dropped what had come. */
  isReset = false;

  constructor(front: Front) {
    this.#connection = connectTcp(places[front]);
    this.#connection.setNoDelay(true).on('error', () => {});
    this.socket =
      front === 'tls' ? connectTls({ socket: this.#connection, rejectUnauthorized: false }) : this.#connection;
    this.socket.setEncoding('latin1');
    this.socket.on('error', () => {
      this.isReset = true;
    });
    this.socket.on('close', () => {
      this.isClosed = true;
    });
  }

  static async connect(front: Front): Promise<Peer> {
    const peer = new Peer(front);
    const event = front === 'tls' ? 'secureConnect' : 'connect';
    await new Promise<void>((resolve) => peer.socket.once(event, resolve).once('close', resolve));
    return peer;
  }

  read(): void {
    this.socket.on('data', (text: string) => {
      this.received += text;
    });
  }

  /** Leaves without a word where that can be done: with TLS on it, Node itself crashes in trying. */
  reset(): void {
    if (this.#connection === this.socket && this.#connection.remoteAddress !== undefined) this.socket.resetAndDestroy();
    else this.socket.destroy();
  }
}

function cutInto(parts: readonly Part[], { cut, seed }: Sequence): readonly Buffer[] {
  const all = Buffer.concat(parts.map(({ bytes }) => bytes));
  switch (cut) {
    case 'one-packet':
      return [all];
    case 'by-part':
      return parts.map(({ bytes }) => bytes);
    case 'pieces':
      return pieces(all, seed);
    case 'bytes':
      return Array.from(all, (byte) => Buffer.of(byte));
  }
}

async function send(peer: Peer, packets: readonly Buffer[], seed: number): Promise<void> {
  const random = createRandom(seed);
  for (const packet of packets) {
    if (peer.isClosed || !peer.socket.writable) return;
    peer.socket.write(packet);
    // The server's turn, most of the time.
    if (random() < 0.9) await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

/** How many of the parts have to be answered, and what becomes of the connection then. */
function judge(parts: readonly Part[]): { readonly answered: readonly Part[]; readonly last: Effect } {
  const index = parts.findIndex(({ effect }) => effect !== 'goes-on');
  if (index < 0) return { answered: parts, last: 'goes-on' };
  const { effect, answer } = parts[index] as Part;
  return { answered: parts.slice(0, answer === undefined ? index : index + 1), last: effect };
}

/** With this Node ends a connection on which it has read what is no request. */
function isLastWord({ status, headers }: ReadResponse): boolean {
  return [400, 408, 413, 431].includes(status) && headers.get('connection') === 'close';
}

function checkAnswers({ complete, begun }: ReadResponses, parts: readonly Part[], peer: Peer): void {
  const { isClosed, isReset } = peer;
  const { answered, last } = judge(parts);
  const shown = (): string => JSON.stringify({ parts: parts.map(({ bytes }) => `${bytes}`), complete });
  const all = last === 'stays' && begun !== undefined ? [...complete, begun] : complete;
  for (const [index, part] of answered.entries()) {
    const response = all[index];
    const isFollowed = answered.length < parts.length;
    const isCut = last === 'unclear' || last === 'cuts' || ((last === 'closes' || last === 'stays') && isFollowed);
    // What comes behind the end of a connection has the system reset it, with what has not been read at the other end.
    const isLost = isReset && (last === 'ends' || last === 'switches') && isFollowed;
    if (response === undefined && isClosed && (isCut || isLost)) return;
    if (response !== undefined && isCut && isLastWord(response)) {
      return insist(index === complete.length - 1 && isClosed, () => `more comes after the last: ${shown()}`);
    }
    insist(response?.status === part.answer?.status, () => `answer ${index} is another: ${shown()}`);
    insist(part.answer?.body.test(response?.body ?? '') === true, () => `answer ${index} is of another: ${shown()}`);
  }
  const allowed = last === 'cuts' || last === 'closes' ? answered.length + 1 : answered.length;
  insist(last === 'unclear' || complete.length <= allowed, () => `there are more answers than requests: ${shown()}`);
}

/** Everything has come that has to come. */
function isOver({ complete, begun }: ReadResponses, parts: readonly Part[], isClosed: boolean): boolean {
  if (isClosed) return true;
  const { answered, last } = judge(parts);
  const latest = complete.at(-1);
  if (['ends', 'closes', 'cuts'].includes(last) || (latest !== undefined && isLastWord(latest))) return false;
  return complete.length + (last === 'stays' && begun !== undefined ? 1 : 0) >= answered.length;
}

async function tryOut(tried: Sequence): Promise<void> {
  const { front, choices, reads, ending, seed } = tried;
  const parts = choices.map((each, index) => createPart(each, front, index === 0));
  const peer = await Peer.connect(front);
  if (reads === 'at-once') peer.read();
  await send(peer, cutInto(parts, tried), seed);
  if (reads === 'afterward') peer.read();
  if (ending === 'reset') peer.reset();
  else {
    const isHead = (index: number): boolean => parts[index]?.isHead === true;
    const { answered, last } = judge(parts);
    // After what is unclear, a response may be that to any of the requests.
    const limit = last === 'unclear' ? Math.max(1, answered.length) : Number.POSITIVE_INFINITY;
    const read = (): ReadResponses => readResponses(peer.received, isHead, limit);
    const message = (): string =>
      `the end of ${JSON.stringify({ parts: parts.map(({ bytes }) => `${bytes}`), ...read() })}`;
    await waitFor(() => isOver(read(), parts, peer.isClosed), { timeoutMs: 10_000, message });
    checkAnswers(read(), parts, peer);
    if (ending === 'end') peer.socket.end();
  }
  peer.socket.destroy();
}

async function isAnswered(front: Front): Promise<void> {
  const peer = await Peer.connect(front);
  peer.read();
  peer.socket.write(write({ method: 'GET', path: '/healthz', headers: { Connection: 'close' } }));
  await waitFor(() => peer.isClosed, { timeoutMs: 10_000, message: () => `a fresh connection at ${front}` });
  insist(/^HTTP\/1\.1 200 /.test(peer.received), () => `a fresh connection at ${front} got ${peer.received}`);
}

export const sequences = fuzzTarget({
  name: 'sequences',
  promise:
    'each request on a connection is answered once and in order, or the connection ends, and nothing is thrown whatever comes on it',
  runs: 60,
  input: fc.array(sequence, { minLength: 1, maxLength: 3 }),
  open,
  close,
  holds: async (tried) => {
    await Promise.all(tried.map(tryOut));
    for (const front of new Set(tried.map(({ front }) => front))) await isAnswered(front);
    await waitFor(() => harness.modernCalls.size === 0, { timeoutMs: 10_000, message: 'the end of all calls' });
    insist(thrown.length === 0, () => thrown.map((error) => (error instanceof Error ? error.stack : error)).join('\n'));
    const failures = harness.logLines.filter(
      (line) => line.includes('failed internally') || line.includes('"level":60'),
    );
    insist(failures.length === 0, () => failures.join('\n'));
    (harness.logLines as string[]).length = 0;
  },
});
