import { ByteQueue, frameBytes } from '../../collections/bounded-collections.ts';
import type { Deps } from '../../deps.ts';
import { assertNever, BridgeError, UNCLEAR } from '../../errors.ts';
import { isAmbiguous } from '../../mcp/classify/ambiguity.ts';
import { findCanceledId } from '../../mcp/classify/correlators.ts';
import { ModernQuestions } from '../../mcp/classify/modern-questions.ts';
import { stampMetadata } from '../../mcp/classify/request-metadata.ts';
import { initializeResult } from '../../mcp/translate/results.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import { CANCELED, DISCOVER, INITIALIZE, PING } from '../../mcp/vocabulary/methods.ts';
import { asFields } from '../../mcp/vocabulary/payload.ts';
import { LATEST_MODERN_REVISION } from '../../mcp/vocabulary/revisions.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Call, ClientMessage, Lane } from '../../relay/call.ts';
import type { LinkOwner, ServerFault, ServerListener, SessionDialer, UpstreamLink } from '../../relay/ports.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { errorFrame, requestFrame, resultFrame } from '../../wire/write-message.ts';
import type { ParkedBytes } from '../parked-bytes.ts';
import type { AbsorbedTask } from './absorbed-task.ts';
import { type ClientProfile, errorAnswer, readClientProfile, violation } from './call-host.ts';
import { OpenSession } from './open-session.ts';
import type { DiscoveryOutcome, DiscoverySeeker, SharedDiscovery } from './shared-discovery.ts';
import { type Asker, FinalRequests, UpstreamRequests } from './upstream-requests.ts';

/** Messages that a client may send before its handshake is answered. None is expected. */
const MAX_HELD = 64;
/** Bytes that a client may send before its handshake is answered. The last message may exceed the limit. */
export const MAX_HELD_BYTES = 1024 * 1024;
const HELD_LIMITS = { maxItems: MAX_HELD, maxBytes: MAX_HELD_BYTES };

export interface TranslatorOptions {
  readonly deps: Deps;
  /** Name for a client that gives none. */
  readonly clientInfoFallback: Implementation;
  /** Returns a random number from 0 to 1. */
  readonly random: () => number;
  /** Counts the bytes of all calls that wait for input from their clients. */
  readonly held: ParkedBytes;
}

/**
 * - `opening`: no `initialize` has come, or it was refused.
 * - `discovering`: the server's description is awaited. Messages of the client wait too.
 * - `ready`: the handshake is done.
 * - `leaving`: the client is gone, and the server is being asked to cancel the client's tasks.
 * - `closed`: ended for good.
 */
type TranslatorState =
  | { readonly kind: 'opening' | 'closed' }
  | { readonly kind: 'leaving'; readonly finalRequests: FinalRequests }
  | {
      readonly kind: 'discovering';
      readonly initialize: Call;
      readonly profile: ClientProfile;
      readonly discovery: SharedDiscovery;
      readonly held: ByteQueue<ClientMessage>;
    }
  | { readonly kind: 'ready'; readonly session: OpenSession };

/**
 * One session of a legacy client with a modern server. It is a link toward the relay, and the listener of the link
 * below. The session exists here only, and each request carries the part of it that the server needs.
 */
export class LegacyToModern implements UpstreamLink, LinkOwner, DiscoverySeeker, Asker {
  readonly #options: TranslatorOptions;
  readonly #serverName: string;
  #listener: ServerListener;
  readonly #requests: UpstreamRequests;
  readonly #findDiscovery: (lane: Lane) => SharedDiscovery;
  #link: UpstreamLink;
  readonly #questions = new ModernQuestions();
  #state: TranslatorState = { kind: 'opening' };

  /** Throws any error of the dialer. */
  constructor(
    dialer: SessionDialer,
    listener: ServerListener,
    findDiscovery: (lane: Lane) => SharedDiscovery,
    options: TranslatorOptions,
  ) {
    this.#options = options;
    this.#serverName = dialer.name;
    this.#listener = listener;
    this.#findDiscovery = findDiscovery;
    this.#requests = new UpstreamRequests(options.deps.clock);
    this.#link = dialer.dial(this);
    this.#requests.join(this.#link);
  }

  // ---- from the client

  /** Undefined, because the server's process serves other clients too. */
  get process(): undefined {
    return undefined;
  }

  get listener(): ServerListener {
    return this.#listener;
  }

  set listener(listener: ServerListener) {
    this.#listener = listener;
    if (this.#state.kind === 'ready') this.#state.session.listener = listener;
  }

  send(frame: Frame, call?: Call): boolean {
    if (frame.method === PING && frame.kind === 'request' && call !== undefined) {
      // A ping is answered in any state. [spec 2025-11-25 basic/lifecycle#initialization]
      return this.#answer(call, resultFrame(call.id, {}));
    }
    // A cancellation is exempt: its request is known already, and the server gets a notification in the bridge's own
    // words.
    if (frame.method !== CANCELED && isAmbiguous(frame)) {
      const isAwaited = frame.kind === 'request' && call !== undefined;
      return !isAwaited || this.#answer(call, errorAnswer(call.id, UNCLEAR));
    }
    switch (this.#state.kind) {
      case 'opening':
        return this.#beforeHandshake(frame, call);
      case 'discovering':
        return this.#hold(this.#state.held, frame, call);
      case 'ready':
        return this.#inSession(this.#state.session, frame, call);
      case 'leaving':
      case 'closed':
        return true;
      default:
        return assertNever(this.#state);
    }
  }

  #inSession(session: OpenSession, frame: Frame, call: Call | undefined): boolean {
    switch (frame.kind) {
      case 'request':
        return call === undefined || session.request(frame, call);
      case 'notification':
        return session.notification(frame, call);
      case 'result':
      case 'error':
        session.answer(frame);
        return true;
      default:
        return assertNever(frame.kind);
    }
  }

  #answer(call: Call, answer: Frame): true {
    this.#listener.fromServer(answer, call);
    return true;
  }

  #beforeHandshake(frame: Frame, call: Call | undefined): true {
    // A notification has no meaning before the handshake, and there is no question that could be answered.
    if (frame.kind !== 'request' || call === undefined) return true;
    if (frame.method !== INITIALIZE) return this.#answer(call, errorAnswer(call.id, NOT_INITIALIZED));
    const profile = readClientProfile(frame, this.#options.clientInfoFallback);
    if (profile instanceof BridgeError) return this.#answer(call, errorAnswer(call.id, profile));
    const discovery = this.#findDiscovery(call.lane);
    this.#state = {
      kind: 'discovering',
      initialize: call,
      profile,
      discovery,
      held: new ByteQueue<ClientMessage>(HELD_LIMITS, frameBytes),
    };
    discovery.seek(this);
    return true;
  }

  #hold(held: ByteQueue<ClientMessage>, frame: Frame, call: Call | undefined): boolean {
    const { isFull } = held;
    if (frame.kind === 'request' && call !== undefined) {
      if (frame.method === INITIALIZE || isFull) {
        return this.#answer(call, errorAnswer(call.id, NOT_INITIALIZED));
      }
    }
    if (!isFull) held.add({ frame, call });
    return true;
  }

  // ---- the handshake

  askServer(): void {
    if (this.#state.kind !== 'discovering') return;
    const { profile, initialize } = this.#state;
    const { capabilities, clientInfo } = profile;
    const metadata = { revision: LATEST_MODERN_REVISION, capabilities, clientInfo, logLevel: undefined };
    const request = stampMetadata(requestFrame(0, DISCOVER), metadata);
    this.#requests.send(request, this.#requests.open(this, request, initialize.lane));
  }

  /** Takes the answer to `server/discover`. */
  answered(frame: Frame): void {
    if (this.#state.kind === 'discovering') this.#state.discovery.answered(this, frame);
  }

  withdrawn(): void {
    this.answered(errorAnswer(0, violation(this.#serverName, 'it withdrew a request of its client')));
  }

  notified(): void {}

  discovered(outcome: DiscoveryOutcome): void {
    if (this.#state.kind !== 'discovering') return;
    const { initialize, profile, held } = this.#state;
    if (outcome.kind === 'failed') {
      this.#state = { kind: 'opening' };
      this.#answer(initialize, errorFrame(initialize.id, outcome.error));
      return;
    }
    const { revision, result } = outcome.server;
    const answer = initializeResult(result, {
      revision: profile.revision.id,
      fallbackName: this.#serverName,
    });
    const { deps, held: heldBytes } = this.#options;
    const owner = deps.randomId();
    const session = new OpenSession({
      serverName: this.#serverName,
      deps,
      random: this.#options.random,
      listener: this.#listener,
      requests: this.#requests,
      profile,
      capabilities: asFields(answer.capabilities) ?? {},
      revision,
      lane: { isOpen: true, headers: initialize.lane.headers },
      openHeld: () => heldBytes.open(owner),
    });
    this.#state = { kind: 'ready', session };
    this.#answer(initialize, resultFrame(initialize.id, answer));
    for (const { frame, call } of held.takeAll()) {
      // A request that was withdrawn while it waited is not sent.
      if (frame.kind !== 'request' || call?.state.kind === 'open') this.send(frame, call);
    }
  }

  // ---- from the server

  serverFound(link: UpstreamLink): void {
    this.#link = link;
    this.#requests.join(link);
  }

  fromServer(frame: Frame, call?: Call): void {
    switch (frame.kind) {
      case 'result':
      case 'error':
        return this.#answerFromServer(frame, call);
      case 'notification':
        return this.#notificationFromServer(frame, call);
      case 'request':
        // A modern server must not send requests, and they must not be answered.
        // [spec 2026-07-28 transports/stdio#receiving-messages]
        return this.#questions.ignore(frame, this.#options.deps.log);
      default:
        return assertNever(frame.kind);
    }
  }

  #answerFromServer(frame: Frame, call: Call | undefined): void {
    const asker = this.#requests.take(call?.id ?? frame.id);
    if (asker === undefined) return this.#options.deps.log.debug('server answered a request that is not open');
    asker.answered(frame);
  }

  #notificationFromServer(frame: Frame, call: Call | undefined): void {
    if (frame.method === CANCELED) return this.#withdrawnByServer(findCanceledId(frame)?.value);
    const asker = this.#requests.about(frame, call);
    if (asker !== undefined) return asker.notified(frame);
    if (this.#state.kind === 'ready') this.#state.session.stray(frame);
  }

  #withdrawnByServer(id: JsonRpcId | undefined): void {
    if (id !== undefined) this.#requests.take(id)?.withdrawn();
  }

  serverFault({ error, kind, id }: ServerFault): void {
    this.#options.deps.log.error({ code: error.code }, error.message);
    if (kind === 'request' || kind === 'notification') return;
    this.#requests.take(id)?.answered(errorFrame(id, rpcErrorOf(error)));
  }

  serverDrained(): void {
    if (this.#state.kind !== 'leaving') this.#listener.serverDrained();
  }

  serverClosed(reason: BridgeError): void {
    const isLeft = this.#state.kind === 'leaving';
    this.#end();
    if (!isLeft) this.#listener.serverClosed(reason);
  }

  // ---- for the relay

  pause(): void {
    this.#link.pause();
  }

  resume(): void {
    this.#link.resume();
  }

  close(reason: BridgeError): void {
    if (this.#state.kind === 'leaving') return;
    const session = this.#state.kind === 'ready' ? this.#state.session : undefined;
    const tasks = session?.tasks() ?? [];
    if (session !== undefined && tasks.length > 0) return this.#leave(session, tasks, reason);
    this.#end();
    this.#link.close(reason);
  }

  /** Ends the session after its tasks have been canceled. A server continues a task even if its client is gone. */
  #leave(session: OpenSession, tasks: readonly AbsorbedTask[], reason: BridgeError): void {
    const { clock } = this.#options.deps;
    const finalRequests = new FinalRequests(tasks.length, clock, () => {
      this.#end();
      this.#link.close(reason);
    });
    this.#state = { kind: 'leaving', finalRequests };
    this.#requests.cancelAll('the client left');
    for (const task of tasks) task.cancel('the client left', finalRequests);
    session.close();
  }

  #end(): void {
    const state = this.#state;
    this.#state = { kind: 'closed' };
    this.#requests.clear();
    if (state.kind === 'discovering') state.discovery.leave(this);
    if (state.kind === 'ready') state.session.close();
    if (state.kind === 'leaving') state.finalRequests.abandon();
  }
}

const NOT_INITIALIZED = new BridgeError(
  'ERR_WIRE_MESSAGE',
  'A session begins with one initialize, and nothing else may be requested before that is answered.',
);
