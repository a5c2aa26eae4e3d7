import { Agent as HttpAgent, type IncomingMessage, request as requestHttp, type ServerResponse } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { HopPasses } from '../../cluster/hop-passes.ts';
import type { Owner } from '../../cluster/owner-tags.ts';
import type { PeerLeases } from '../../cluster/peer-leases.ts';
import { RecentNames } from '../../collections/recent-names.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { respondError } from '../../http/server/respond.ts';
import { Forwarding, type ForwardOutcome } from './forwarding.ts';
import { passedHeaders } from './passed-headers.ts';

export interface ForwarderOptions {
  readonly passes: HopPasses;
  readonly peers: PeerLeases;
  /** How long a replica may be silent. */
  readonly leaseMs: number;
  readonly deps: Deps;
}

export interface ForwardedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly principal: string;
  /** What was read of it already; undefined: nothing. */
  readonly body: Buffer | undefined;
}

interface Place {
  readonly hostname: string;
  readonly port: number;
}

const PLACE_LIMITS = { count: 1000, length: 100_000 };
/** Requests that are passed on at a time, open streams included; each holds two connections. */
const MAX_FORWARDED = 4096;
/** Shorter than the time that an idle connection is kept for at the other end. */
const IDLE_SOCKET_MS = 30_000;
const MAX_IDLE_SOCKETS = 256;
/** Looks at replicas within the time that one may be silent. */
const LOOKS = 6;

const TOO_MANY = new BridgeError(
  'ERR_SESSION_BUSY',
  `${MAX_FORWARDED} requests are being passed on to other replicas, the most allowed; try again later.`,
  { retryAfterMs: 1000 },
);

/** Passes requests on to the replicas that have what they ask for. */
export class Forwarder {
  readonly #options: ForwarderOptions;
  readonly #http = new HttpAgent({ keepAlive: true, maxFreeSockets: MAX_IDLE_SOCKETS, scheduling: 'lifo' });
  readonly #https = new HttpsAgent({ keepAlive: true, maxFreeSockets: MAX_IDLE_SOCKETS, scheduling: 'lifo' });
  readonly #open = new Set<Forwarding>();
  readonly #places = new RecentNames<Place>(PLACE_LIMITS);
  #stopTimer: (() => void) | undefined;

  constructor(options: ForwarderOptions) {
    this.#options = options;
    for (const agent of [this.#http, this.#https]) agent.on('free', (socket) => socket.setTimeout(IDLE_SOCKET_MS));
  }

  get size(): number {
    return this.#open.size;
  }

  /** Calls `done` once: with `responded` when the response is there or on its way, else nothing has been responded. */
  forward(owner: Owner, forwarded: ForwardedRequest, done: (outcome: ForwardOutcome) => void): void {
    if (this.#open.size >= MAX_FORWARDED) {
      respondError(forwarded.response, TOO_MANY);
      return done({ kind: 'responded' });
    }
    const { request, principal } = forwarded;
    const { method = '', url = '' } = request;
    const isSecure = owner.address.startsWith('https:');
    const { hostname, port } = this.#placeOf(owner);
    const upstream = (isSecure ? requestHttps : requestHttp)({
      agent: isSecure ? this.#https : this.#http,
      host: hostname,
      port,
      method,
      path: url,
      headers: passedHeaders(forwarded, this.#options.passes.issue(owner.id, { method, target: url }, principal)),
      setHost: false,
      ...(isSecure && { servername: hostname }),
    });
    this.#options.peers.watch(owner.id);
    const forwarding = new Forwarding({ owner, forwarded, upstream, log: this.#options.deps.log }, done, () => {
      this.#open.delete(forwarding);
    });
    this.#open.add(forwarding);
    const { clock } = this.#options.deps;
    this.#stopTimer ??= clock.every(this.#options.leaseMs / LOOKS, () => this.#look());
    forwarding.start();
  }

  #placeOf({ address }: Owner): Place {
    const known = this.#places.get(address);
    if (known !== undefined) return known;
    const { hostname, port, protocol } = new URL(address);
    const byDefault = protocol === 'https:' ? 443 : 80;
    const place = { hostname: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? byDefault : Number(port) };
    this.#places.set(address, place, address.length);
    return place;
  }

  /** A replica that has stopped in the middle of something keeps its connections: only its lease tells. */
  #look(): void {
    if (this.#open.size === 0) {
      this.#stopTimer?.();
      this.#stopTimer = undefined;
    }
    for (const forwarding of [...this.#open]) {
      const { id } = forwarding.owner;
      if (this.#options.peers.isDead(id)) forwarding.ownerDied();
      else this.#options.peers.watch(id);
    }
  }

  /** Cuts what is being passed on. */
  close(): void {
    this.#stopTimer?.();
    for (const forwarding of [...this.#open]) forwarding.ownerDied();
    this.#http.destroy();
    this.#https.destroy();
  }
}
