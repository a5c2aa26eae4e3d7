import { request } from 'node:http';
import type { Socket } from 'node:net';
import { connect, createServer } from 'node:tls';
import type { ExecutionContext } from 'ava';
import { encodeFrameHead, FrameReader, type LinkFrame } from '../../src/replicas/forwarding/link/frames.ts';
import { LinkSecrets } from '../../src/replicas/forwarding/link/link-secrets.ts';
import { LINK_HEADER, LINK_PROTOCOL } from '../../src/replicas/forwarding/link/upgrade.ts';
import { CLUSTER_KEY } from './linked-replicas.ts';

const NOTHING = Buffer.alloc(0);
const TLS = { minVersion: 'TLSv1.3', ciphers: 'TLS_AES_128_GCM_SHA256' } as const;

/** A frame as a test writes it. */
export type WrittenFrame = Pick<LinkFrame, 'type' | 'stream'> & Partial<Pick<LinkFrame, 'mark' | 'payload'>>;

export function encodeFrame({ type, stream, mark = 'none', payload = NOTHING }: WrittenFrame): Buffer {
  return Buffer.concat([encodeFrameHead(type, stream, mark, payload.length), payload]);
}

/** An end of a link at which a test decides what is said. */
export class RawLink {
  readonly socket: Socket;
  readonly frames: LinkFrame[] = [];
  isClosed = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    const reader = new FrameReader();
    socket.on('data', (piece: Buffer) => void reader.push(piece, (frame) => this.frames.push(frame) > 0));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.isClosed = true;
    });
  }

  /** Opens a link as another replica would. */
  static async open(t: ExecutionContext, port: number): Promise<RawLink> {
    const offer = new LinkSecrets(CLUSTER_KEY, () => ['raw']).offer('owner');
    const { socket, answer } = await askForLink(t, port, offer.text);
    const verdict = offer.judge(answer);
    if (verdict.kind !== 'accepted') throw new Error(`the link is ${verdict.kind}`);
    const pskCallback = () => ({ psk: verdict.key, identity: 'link' });
    return new Promise((resolve, reject) => {
      const secured = connect({ ...TLS, socket, pskCallback }, () => resolve(new RawLink(secured)));
      secured.once('error', reject);
    });
  }

  /** The end of an owner that has been asked for a link with this offer. */
  static answer(socket: Socket, offer: string): Promise<RawLink> {
    const answer = new LinkSecrets(CLUSTER_KEY, () => ['owner']).answer(offer);
    if (answer.kind !== 'accepted') throw new Error(`the offer is ${answer.kind}`);
    acceptOffer(socket, answer.text);
    const server = createServer({ ...TLS, pskCallback: () => answer.key });
    return new Promise((resolve) => {
      server.once('secureConnection', (secured) => resolve(new RawLink(secured)));
      server.emit('connection', socket);
    });
  }

  /** All in one write. */
  send(...frames: readonly WrittenFrame[]): void {
    this.socket.write(Buffer.concat(frames.map(encodeFrame)));
  }
}

/** What an owner says on the connection before TLS begins. */
export function acceptOffer(socket: Socket, answer: string): void {
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${LINK_PROTOCOL}\r\n${LINK_HEADER}: ${answer}\r\n\r\n`,
  );
}

export interface AskedForLink {
  readonly socket: Socket;
  readonly answer: string;
}

/** Rejects with the status where no link is opened. */
export function askForLink(t: ExecutionContext, port: number, offer: string): Promise<AskedForLink> {
  return new Promise((resolve, reject) => {
    const headers = { Connection: 'Upgrade', Upgrade: LINK_PROTOCOL, [LINK_HEADER]: offer };
    const asking = request({ agent: false, port, host: '127.0.0.1', headers });
    asking.on('upgrade', (response, socket) => {
      t.teardown(() => socket.destroy());
      resolve({ socket, answer: String(response.headers[LINK_HEADER]) });
    });
    asking.on('response', (response) => {
      response.resume();
      reject(new Error(String(response.statusCode)));
    });
    asking.on('error', reject).end();
  });
}
