import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Socket } from 'node:net';
import type { LinkKeys, LinkSecrets } from '../../../cluster/link-secrets.ts';
import type { Owner } from '../../../cluster/owner-tags.ts';
import type { Clock } from '../../../deps.ts';
import { LINK_HEADER, LINK_PROTOCOL } from './upgrade.ts';

/**
 * - `opened`: the other end has shown that it has the cluster key.
 * - `not-here`: so it has, and that it is not the run of the replica that was meant.
 * - `unreachable`: neither is known, and nothing was asked of anybody.
 */
export type OpenedLink =
  | { readonly kind: 'opened'; readonly socket: Socket; readonly head: Buffer; readonly keys: LinkKeys }
  | { readonly kind: 'not-here' }
  | { readonly kind: 'unreachable'; readonly reason: string };

/** To another machine in the same network, the handshakes of TLS and of the link included. */
export const OPEN_TIMEOUT_MS = 3000;

/** Calls `done` once. Returns what gives it up, after which nothing is called. */
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
  let isOver = false;
  const end = (opened: OpenedLink): void => {
    if (isOver) return;
    isOver = true;
    stopTimer();
    if (opened.kind !== 'opened') request.destroy();
    done(opened);
  };
  const judge = ({ headers }: IncomingMessage): ReturnType<typeof offer.judge> => {
    const answer = headers[LINK_HEADER];
    return typeof answer === 'string' ? offer.judge(answer) : { kind: 'invalid' };
  };
  const fail = (reason: string): void => end({ kind: 'unreachable', reason });
  const stopTimer = clock.after(OPEN_TIMEOUT_MS, () => fail('it did not answer in time'));
  request.on('error', (error: NodeJS.ErrnoException) => fail(error.code ?? error.message));
  request.on('upgrade', (response, socket, head) => {
    const verdict = isOver ? undefined : judge(response);
    if (verdict?.kind === 'accepted') return end({ kind: 'opened', socket, head, keys: verdict.keys });
    socket.destroy();
    fail('whoever answers there does not have the cluster key');
  });
  request.on('response', (response) => {
    if (judge(response).kind === 'not-here') end({ kind: 'not-here' });
    else fail(`it answers ${response.statusCode}`);
  });
  request.end();
  return () => {
    isOver = true;
    stopTimer();
    request.destroy();
  };
}
