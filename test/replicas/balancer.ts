import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProgram } from '../support/find-program.ts';
import { ownPort } from '../support/own-port.ts';
import { WHY_NO_REDIS } from '../support/redis-server.ts';
import { waitFor } from '../support/wait-for.ts';

const HAPROXY = findProgram('haproxy');
/** Why replicas cannot be tested here; undefined: they can. */
export const WHY_NO_CLUSTER = WHY_NO_REDIS ?? (HAPROXY === undefined ? 'haproxy is not installed' : undefined);

export interface Balancer {
  readonly url: URL;
  stop(): Promise<void>;
}

/** HAProxy as anybody would set it up: each request goes to the next replica that is ready, and nobody stays anywhere. */
export async function startBalancer(ports: readonly number[]): Promise<Balancer> {
  const port = await ownPort();
  const folder = await mkdtemp(join(tmpdir(), 'portage-haproxy-'));
  const file = join(folder, 'haproxy.cfg');
  await writeFile(file, configuration(port, ports));
  const child = spawn(HAPROXY ?? 'haproxy', ['-db', '-f', file], { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (chunk) => {
    said += chunk;
  });
  const killWithRunner = () => void child.kill('SIGKILL');
  process.once('exit', killWithRunner);
  const url = new URL(`http://127.0.0.1:${port}`);
  const isUp = () =>
    fetch(new URL('/healthz', url)).then(
      ({ status }) => status === 200,
      () => false,
    );
  await waitFor(isUp, { message: () => `the balancer; it said ${said}` });
  return {
    url,
    async stop() {
      process.off('exit', killWithRunner);
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function configuration(port: number, ports: readonly number[]): string {
  return `
global
  maxconn 4000
defaults
  mode http
  timeout connect 2s
  timeout client 10m
  timeout server 10m
  timeout http-request 1m
  # A busy machine answers late; one that is gone refuses at once.
  timeout check 2s
  # A client of 2026-07-28 withdraws a call by closing its connection.
  option abortonclose
  option redispatch 1
  retries 3
frontend clients
  bind 127.0.0.1:${port}
  default_backend replicas
backend replicas
  balance roundrobin
  option httpchk GET /readyz
  ${ports.map((replica, index) => `server r${index} 127.0.0.1:${replica} check inter 200ms fall 2 rise 1`).join('\n  ')}
`;
}
