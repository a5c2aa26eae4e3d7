import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Socket } from 'node:net';
import type { Clock } from '../../../deps.ts';
import type { Owner } from '../../ownership/owner-tags.ts';
import type { LinkSecrets } from './link-secrets.ts';
import { LINK_HEADER, LINK_PROTOCOL, secureAsEntry } from './upgrade.ts';

/**
 * - `opened`: the other end has proved that it has the cluster key, and TLS is established.
 * - `not-here`: the other end has proved that it has the cluster key, but is not the replica's run that was meant.
 * - `unreachable`: neither was proved. No request of a client was sent.
 */
export type OpenedLink =
  | { readonly kind: 'opened'; readonly socket: Socket }
  | { readonly kind: 'not-here' }
  | { readonly kind: 'unreachable'; readonly reason: string };

/** Time to open a link to a machine in the same network, including the handshakes of TLS and of the link. */
export const OPEN_TIMEOUT_MS = 3000;

const NO_KEY = 'whoever answers there does not have the cluster key';

/** Calls `done` once. Returns a function that gives up, after which `done` is not called. */
export function openLink(
  { id, address }: Owner,
  { secrets, clock }: { readonly secrets: LinkSecrets; readonly clock: Clock },
  done: (opened: OpenedLink) => void,
): () => void {
  const { hostname, port, protocol, host } = new URL(address);
  const offer = secrets.offer(id);
  const request = (protocol === 'https:' ? requestHttps : requestHttp)({
    agent: false,
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? undefined : Number(port),
    path: '/',
    headers: { Host: host, Connection: 'Upgrade', Upgrade: LINK_PROTOCOL, [LINK_HEADER]: offer.text },
  });
  /** The request or socket to destroy when the attempt is given up. */
  let connecting: { destroy(): unknown } = request;
  let isOver = false;
  const end = (opened: OpenedLink): void => {
    if (isOver) return;
    isOver = true;
    stopTimer();
    if (opened.kind !== 'opened') connecting.destroy();
    done(opened);
  };
  const judge = ({ headers }: IncomingMessage): ReturnType<typeof offer.judge> => {
    const answer = headers[LINK_HEADER];
    return typeof answer === 'string' ? offer.judge(answer) : { kind: 'invalid' };
  };
  const fail = (reason: string): void => end({ kind: 'unreachable', reason });
  const stopTimer = clock.after(OPEN_TIMEOUT_MS, () => fail('it did not answer in time'));
  request.on('error', (error: NodeJS.ErrnoException) => fail(error.code ?? error.message));
  request.on('upgrade', (response, upgraded, head) => {
    connecting = upgraded;
    if (isOver) return void upgraded.destroy();
    const verdict = judge(response);
    if (verdict.kind !== 'accepted') return fail(NO_KEY);
    const socket = secureAsEntry({ socket: upgraded, head }, verdict.key);
    connecting = socket;
    socket.on('error', () => fail(NO_KEY));
    socket.on('close', () => fail('it has closed the connection'));
    socket.once('secureConnect', () => end({ kind: 'opened', socket }));
  });
  request.on('response', (response) => {
    if (judge(response).kind === 'not-here') end({ kind: 'not-here' });
    else fail(`it answers ${response.statusCode}`);
  });
  request.end();
  return () => {
    isOver = true;
    stopTimer();
    connecting.destroy();
  };
}
