import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ExecutionContext } from 'ava';

const PIECE = Buffer.alloc(256 * 1024, 'x');

export interface EndlessAnswers {
  readonly url: string;
  /** Sent of all answers together. */
  readonly sentBytes: number;
}

/** A server whose answers begin like this and have no end. */
export async function startEndlessAnswers(t: ExecutionContext, type: string, begin: string): Promise<EndlessAnswers> {
  let sentBytes = 0;
  const send = (response: ServerResponse): void => {
    while (!response.destroyed) {
      sentBytes += PIECE.length;
      if (!response.write(PIECE)) return void response.once('drain', () => send(response));
    }
  };
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'Content-Type': type }).write(begin);
    send(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get sentBytes() {
      return sentBytes;
    },
  };
}
