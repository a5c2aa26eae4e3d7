import { createServer, type Server } from 'node:net';

/**
 * Below the ranges that systems choose from: Linux from 32768, macOS and Windows from 49152. Above the last one that
 * `fetch` refuses, 10080.
 */
const FIRST_PORT = 11_000;
/**
 * The first port of a block is held by the process that it belongs to, for as long as that lives. A process that needs more
 * ports takes another block: of two tests that get one port, the second may listen before the first does.
 */
const PORTS_OF_A_BLOCK = 100;
const BLOCKS = 200;

interface Block {
  readonly first: Promise<number>;
  given: number;
}

let block: Block | undefined;

/**
 * A port of 127.0.0.1 that is free, and that nobody gets who lets the system choose. What closes there can be expected to
 * be refused, and to come back: a port that the system chose may belong to another test a moment later.
 */
export async function ownPort(): Promise<number> {
  for (let attempt = 0; attempt < BLOCKS * PORTS_OF_A_BLOCK; attempt += 1) {
    if (block === undefined || block.given === PORTS_OF_A_BLOCK - 1) block = { first: claimBlock(), given: 0 };
    block.given += 1;
    const { given } = block;
    const port = (await block.first) + given;
    const server = await tryListen(port);
    if (server === undefined) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
  throw new Error('no port is free');
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
