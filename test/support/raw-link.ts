import { request } from 'node:http';
import type { Socket } from 'node:net';
import type { ExecutionContext } from 'ava';
import { LinkSecrets } from '../../src/cluster/link-secrets.ts';
import { decodeFrames, encodeFrameHead, type LinkFrame } from '../../src/downstream/cluster/link/frames.ts';
import { RecordOpener, RecordSealer } from '../../src/downstream/cluster/link/records.ts';
import { LINK_HEADER, LINK_PROTOCOL } from '../../src/downstream/cluster/link/upgrade.ts';
import { CLUSTER_KEY } from './linked-replicas.ts';

const NOTHING = Buffer.alloc(0);

/** A frame as a test writes it. */
export type WrittenFrame = Pick<LinkFrame, 'type' | 'stream'> & Partial<Pick<LinkFrame, 'mark' | 'payload'>>;

export function encodeFrame({ type, stream, mark = 'none', payload = NOTHING }: WrittenFrame): Buffer {
  return Buffer.concat([encodeFrameHead(type, stream, mark, payload.length), payload]);
}

/** An end of a link at which a test decides what is said. */
export class RawLink {
  readonly socket: Socket;
  readonly frames: LinkFrame[] = [];
  readonly #sealer: RecordSealer;
  isClosed = false;

  private constructor(socket: Socket, head: Buffer, keys: { readonly sealing: Buffer; readonly opening: Buffer }) {
    this.socket = socket;
    this.#sealer = new RecordSealer(keys.sealing);
    const opener = new RecordOpener(keys.opening);
    const push = (piece: Buffer): void =>
      void opener.push(piece, (record) => decodeFrames(record, (frame) => this.frames.push(frame) > 0));
    socket.on('data', push).on('error', () => undefined);
    socket.on('close', () => {
      this.isClosed = true;
    });
    push(head);
  }

  /** Opens a link as another replica would. */
  static async open(t: ExecutionContext, port: number): Promise<RawLink> {
    const offer = new LinkSecrets(CLUSTER_KEY, () => ['raw']).offer('owner');
    const { socket, head, answer } = await askForLink(t, port, offer.text);
    const verdict = offer.judge(answer);
    if (verdict.kind !== 'accepted') throw new Error(`the link is ${verdict.kind}`);
    return new RawLink(socket, head, { sealing: verdict.keys.toOwner, opening: verdict.keys.toEntry });
  }

  /** The end of an owner that has been asked for a link with this offer. */
  static answer(socket: Socket, offer: string): RawLink {
    const answer = new LinkSecrets(CLUSTER_KEY, () => ['owner']).answer(offer);
    if (answer.kind !== 'accepted') throw new Error(`the offer is ${answer.kind}`);
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${LINK_PROTOCOL}\r\n${LINK_HEADER}: ${answer.text}\r\n\r\n`,
    );
    return new RawLink(socket, NOTHING, { sealing: answer.keys.toEntry, opening: answer.keys.toOwner });
  }

  /** All in one record. */
  send(...frames: readonly WrittenFrame[]): Buffer {
    const record = Buffer.concat(this.#sealer.seal(Buffer.concat(frames.map(encodeFrame))));
    this.socket.write(record);
    return record;
  }
}

export interface AskedForLink {
  readonly socket: Socket;
  readonly head: Buffer;
  readonly answer: string;
}

/** Rejects with the status where no link is opened. */
export function askForLink(t: ExecutionContext, port: number, offer: string): Promise<AskedForLink> {
  return new Promise((resolve, reject) => {
    const headers = { Connection: 'Upgrade', Upgrade: LINK_PROTOCOL, [LINK_HEADER]: offer };
    const asking = request({ agent: false, port, host: '127.0.0.1', headers });
    asking.on('upgrade', (response, socket, head) => {
      t.teardown(() => socket.destroy());
      resolve({ socket, head, answer: String(response.headers[LINK_HEADER]) });
    });
    asking.on('response', (response) => {
      response.resume();
      reject(new Error(String(response.statusCode)));
    });
    asking.on('error', reject).end();
  });
}
