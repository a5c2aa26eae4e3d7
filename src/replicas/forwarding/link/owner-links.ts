import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Deps } from '../../../deps.ts';
import type { AskedLink, ReplicaLinks } from '../../../downstream/listener/http-server.ts';
import { BridgeError } from '../../../errors.ts';
import { respondError } from '../../../http/server/respond.ts';
import { type Upgrade, upgradeOf } from '../../../http/server/upgrades.ts';
import { drained } from '../../../relay/calls.ts';
import type { LinkSecrets } from './link-secrets.ts';
import { OwnerLink } from './owner-link.ts';
import { LINK_HEADER, LINK_PROTOCOL, secureAsOwner } from './upgrade.ts';

export interface OwnerLinksOptions {
  readonly secrets: LinkSecrets;
  readonly deps: Pick<Deps, 'clock' | 'log'>;
}

/**
 * Time limit for the TLS handshake after an accepted offer. A replayed offer is accepted too, but its sender lacks the
 * key for TLS and is disconnected after this time.
 */
export const PROOF_TIMEOUT_MS = 10_000;

const NO_REPLICA = new BridgeError(
  'ERR_CLUSTER_HOP',
  `The header ${LINK_HEADER} is for replicas of this bridge, and its value does not prove that the sender has the cluster key.`,
);
const LEAVING = new BridgeError('ERR_CLUSTER_HOP', 'This replica is shutting down and accepts no further links.');

/** The links that other replicas have opened to this one. */
export class OwnerLinks implements ReplicaLinks {
  readonly protocol = LINK_PROTOCOL;
  readonly #options: OwnerLinksOptions;
  /** Connections whose other end has not yet completed the TLS handshake. */
  readonly #beginning = new Set<Socket>();
  readonly #links = new Set<OwnerLink>();
  #isLeaving = false;

  constructor(options: OwnerLinksOptions) {
    this.#options = options;
  }

  isAskedFor({ headers }: IncomingMessage): boolean {
    return headers[LINK_HEADER] !== undefined;
  }

  answer(asked: AskedLink): void {
    const { request, response } = asked;
    const upgrade = upgradeOf(request);
    const offer = request.headers[LINK_HEADER];
    if (upgrade === undefined || typeof offer !== 'string') return respondError(response, NO_REPLICA);
    if (this.#isLeaving) return respondError(response, LEAVING);
    const answer = this.#options.secrets.answer(offer);
    switch (answer.kind) {
      case 'invalid':
        return respondError(response, NO_REPLICA);
      case 'not-here':
        response.writeHead(421, { [LINK_HEADER]: answer.text, 'Content-Length': 0 }).end();
        return;
      case 'accepted':
        upgrade.socket.write(
          `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${LINK_PROTOCOL}\r\n${LINK_HEADER}: ${answer.text}\r\n\r\n`,
        );
        this.#begin(asked, upgrade, answer.key);
    }
  }

  #begin(asked: AskedLink, upgrade: Upgrade, key: Buffer): void {
    const { socket } = upgrade;
    const stopTimer = this.#options.deps.clock.after(PROOF_TIMEOUT_MS, () => socket.destroy());
    const begun = (): void => {
      stopTimer();
      this.#beginning.delete(socket);
    };
    this.#beginning.add(socket);
    socket.once('close', begun);
    secureAsOwner(upgrade, key, (secured) => {
      begun();
      this.#add(secured, asked);
    });
  }

  #add(socket: Socket, { maxHeaderBytes, serve }: AskedLink): void {
    const link = new OwnerLink({
      socket,
      maxHeaderBytes,
      serve,
      onEnded: (reason) => {
        this.#links.delete(link);
        this.#options.deps.log.debug({ reason }, 'a link from another replica is closed');
      },
    });
    this.#links.add(link);
  }

  /** Finishes the requests under way and accepts no others. */
  leave(): void {
    this.#isLeaving = true;
    this.#stopBeginning();
    for (const link of this.#links) link.leave();
  }

  /**
   * Resolves when the other ends have closed all links, or after `graceMs`. Call this when no requests are under way.
   */
  ended(graceMs: number): Promise<void> {
    return drained(this.#options.deps.clock, graceMs, () => this.#links.size > 0);
  }

  close(): void {
    this.#isLeaving = true;
    this.#stopBeginning();
    for (const link of [...this.#links]) link.close();
  }

  #stopBeginning(): void {
    for (const socket of this.#beginning) socket.destroy();
  }
}
