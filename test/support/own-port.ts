import { createServer, type Server } from 'node:net';

/**
 * Below the ranges that systems choose from: Linux from 32768, macOS and Windows from 49152. Above the last one that
 * `fetch` refuses, 10080.
 */
const FIRST_PORT = 11_000;
/** The first port of a block is held by the process that it belongs to, for as long as that lives. */
const PORTS_OF_A_BLOCK = 100;
const BLOCKS = 200;

let block: Promise<number> | undefined;
let given = 0;

/**
 * A port of 127.0.0.1 that is free, and that nobody gets who lets the system choose. What closes there can be expected to
 * be refused, and to come back: a port that the system chose may belong to another test a moment later.
 */
export async function ownPort(): Promise<number> {
  block ??= claimBlock();
  const first = await block;
  for (let attempt = 1; attempt < PORTS_OF_A_BLOCK; attempt += 1) {
    const port = first + 1 + (given++ % (PORTS_OF_A_BLOCK - 1));
    const server = await tryListen(port);
    if (server === undefined) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
  throw new Error('no port of this process is free');
}

async function claimBlock(): Promise<number> {
  for (let attempt = 0; attempt < BLOCKS; attempt += 1) {
    const first = FIRST_PORT + ((process.pid + attempt) % BLOCKS) * PORTS_OF_A_BLOCK;
    const server = await tryListen(first);
    if (server !== undefined) return first;
  }
  throw new Error('no block of ports is free');
}

/** Keeps no process alive. Undefined: somebody else listens there. */
function tryListen(port: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer().unref();
    server.once('error', () => resolve(undefined));
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}
