/** Certificates that are renewed while the server runs, over real TLS. */
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { CertificateFiles } from '../../src/http/server/certificate-files.ts';
import { collectLog } from '../process/collected-log.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { startHttpHarness } from '../support/http-harness.ts';
import { waitFor } from '../support/wait-for.ts';

type Name = 'server' | 'client';

const fixtureOf = (name: string): string => fileURLToPath(new URL(`../fixtures/tls/${name}.pem`, import.meta.url));
const pemOf = (name: string): string => readFileSync(fixtureOf(name), 'utf8');
const fingerprintOf = (name: Name): string => new X509Certificate(pemOf(name)).fingerprint256;

function copyPair(name: Name, directory: string): void {
  mkdirSync(directory, { recursive: true });
  copyFileSync(fixtureOf(name), join(directory, 'tls.crt'));
  copyFileSync(fixtureOf(`${name}-key`), join(directory, 'tls.key'));
}

/** A server whose files lie in a folder of the test. */
async function serve(t: ExecutionContext, prepare: (directory: string) => string = (directory) => directory) {
  const directory = mkdtempSync(join(tmpdir(), 'mcp-portage-tls-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  copyPair('server', directory);
  const place = prepare(directory);
  const clock = new FakeClock();
  const { log, entries } = collectLog();
  const certificate = new CertificateFiles({
    certFile: join(place, 'tls.crt'),
    keyFile: join(place, 'tls.key'),
    log,
    clock,
  });
  const { port } = await startHttpHarness(t, { certificate });
  const open = async (): Promise<TLSSocket> => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
    t.teardown(() => socket.destroy());
    await once(socket, 'secureConnect');
    return socket;
  };
  /** Whose certificate a new connection is shown. */
  const shown = async (): Promise<string> => {
    const socket = await open();
    const fingerprint = socket.getPeerCertificate().fingerprint256;
    socket.destroy();
    return fingerprint;
  };
  return { directory, place, clock, entries, open, shown };
}

/** One request on a connection that stays open. */
async function ask(socket: TLSSocket): Promise<string> {
  let answer = '';
  socket.on('data', (chunk: Buffer) => {
    answer += chunk.toString();
  });
  socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await waitFor(() => answer.includes('"status":"ok"'));
  socket.removeAllListeners('data');
  return answer;
}

test('new connections get the renewed certificate, and established ones go on', async (t) => {
  const { directory, entries, open, shown } = await serve(t);
  t.is(await shown(), fingerprintOf('server'));
  const established = await open();
  await ask(established);
  for (const [from, to] of [
    ['client', 'tls.crt'],
    ['client-key', 'tls.key'],
  ] as const) {
    writeFileSync(join(directory, 'new'), pemOf(from));
    renameSync(join(directory, 'new'), join(directory, to));
  }
  t.is(await shown(), fingerprintOf('client'));
  t.regex(await ask(established), /^HTTP\/1\.1 200/);
  t.is(established.getPeerCertificate().fingerprint256, fingerprintOf('server'));
  const [renewed, ...more] = entries.filter(({ level }) => level === 30);
  t.deepEqual(more, []);
  t.regex(String(renewed?.validTo), /^\w+ .*GMT$/);
});

test('a link that is turned to another folder is a renewal: so do Kubernetes and certbot', async (t) => {
  const { directory, shown } = await serve(t, (directory) => {
    copyPair('server', join(directory, 'one'));
    copyPair('client', join(directory, 'two'));
    symlinkSync('one', join(directory, 'live'));
    return join(directory, 'live');
  });
  t.is(await shown(), fingerprintOf('server'));
  symlinkSync('two', join(directory, 'new'));
  renameSync(join(directory, 'new'), join(directory, 'live'));
  t.is(await shown(), fingerprintOf('client'));
});

const BROKEN: readonly (readonly [string, (directory: string) => void])[] = [
  ['half-written', (directory) => writeFileSync(join(directory, 'tls.crt'), pemOf('client').slice(0, 400))],
  ['empty', (directory) => writeFileSync(join(directory, 'tls.key'), '')],
  ['of another key', (directory) => copyFileSync(fixtureOf('client'), join(directory, 'tls.crt'))],
  ['missing', (directory) => rmSync(join(directory, 'tls.crt'))],
];
for (const [what, damage] of BROKEN) {
  test(`a certificate that is ${what} leaves the old one in place, is told once, and is read again`, async (t) => {
    const { directory, clock, entries, shown } = await serve(t);
    damage(directory);
    for (let connections = 0; connections < 3; connections += 1) {
      t.is(await shown(), fingerprintOf('server'));
      clock.advance(1000);
    }
    const warnings = entries.filter(({ level }) => level === 40);
    t.is(warnings.length, 1);
    t.regex(
      String(warnings[0]?.msg),
      /files of --tls-cert and --tls-key have changed and cannot be used.* got E[A-Z0-9_]+\./,
    );
    t.false(JSON.stringify(warnings).includes('BEGIN'));
    copyPair('client', directory);
    t.is(await shown(), fingerprintOf('client'));
  });
}
