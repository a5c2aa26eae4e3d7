import type { ListNode } from '../../collections/linked-list.ts';
import type { Clock } from '../../deps.ts';
import type { BridgeError } from '../../errors.ts';
import type { InputFault } from '../../mcp/classify/input-required.ts';
import { toLegacyInput } from '../../mcp/translate/downgrade-inputs.ts';
import { downgradeResult } from '../../mcp/translate/downgrade-results.ts';
import { withoutUrlElicitation } from '../../mcp/translate/errors.ts';
import {
  type ClientCapabilities,
  missingCapability,
  readClientCapabilities,
} from '../../mcp/vocabulary/client-capabilities.ts';
import { ELICIT, INITIALIZED } from '../../mcp/vocabulary/methods.ts';
import { readFields } from '../../mcp/vocabulary/payload.ts';
import {
  findRevision,
  isEarlierRevision,
  LATEST_LEGACY_REVISION,
  type RevisionId,
} from '../../mcp/vocabulary/revisions.ts';
import { withPayload } from '../../wire/edit-frame.ts';
import type { Frame } from '../../wire/frame.ts';
import { skipValue } from '../../wire/json/scan-json.ts';
import type { Exchange } from '../exchange.ts';
import type { ServerListener, UpstreamLink } from '../ports.ts';
import { EarlyQuestions } from './early-questions.ts';

/** What a client link needs of the shared server. */
export interface ClientLinkHost {
  /** False: the server's pipe is full. */
  fromClient(client: ClientLink, frame: Frame, exchange: Exchange | undefined): boolean;
  leave(client: ClientLink): void;
}

/** One client's link to a shared server: to its relay a link like any other. */
export class ClientLink implements UpstreamLink {
  readonly listener: ServerListener;
  readonly #host: ClientLinkHost;
  readonly #clock: Clock;
  /** What waits for `isInitialized`; made for the first question that comes before. */
  #early: EarlyQuestions | undefined;
  /** What this client said in its `initialize`; the server heard the bridge's. */
  capabilities: ClientCapabilities = {};
  revisionId: RevisionId = LATEST_LEGACY_REVISION.id;
  /** Set where this client's revision is older than the server's. */
  older: OlderClient | undefined;
  /** The client was told what the server offers. */
  isIntroduced = false;
  /** The client has finished its handshake and may be told things. */
  isInitialized = false;
  /** Calls of this client that the server is at work on. */
  openCalls = 0;
  /** Its node in the server's list of links; undefined once it was closed. */
  node: ListNode<ClientLink> | undefined;
  #hasLeft = false;

  constructor(host: ClientLinkHost, listener: ServerListener, clock: Clock) {
    this.#host = host;
    this.listener = listener;
    this.#clock = clock;
  }

  /** `method`: of the request that it answers. */
  answered(answer: Frame, method: string): Frame {
    if (answer.kind === 'error') return this.#opensUrls ? answer : withoutUrlElicitation(answer);
    return this.older?.result(answer, method) ?? answer;
  }

  get #opensUrls(): boolean {
    return this.older === undefined && missingCapability(this.capabilities, ELICIT, { mode: 'url' }) === undefined;
  }

  /** For a client without a handshake of its own. `isIntroduced`: it knows what the server offers now. */
  declare(capabilities: ClientCapabilities, isIntroduced: boolean): void {
    this.capabilities = capabilities;
    this.#finishHandshake();
    this.isIntroduced = isIntroduced;
  }

  #finishHandshake(): void {
    this.isInitialized = true;
    this.#early?.letGo();
  }

  /** False: a question of so many bytes cannot wait for the end of the handshake. */
  hasCapacityFor(bytes: number): boolean {
    return this.isInitialized || this.#earlyQuestions.hasCapacityFor(bytes);
  }

  /** Asks the client as soon as it may be asked. `bytes`: of the question, for which there is room. */
  askInTime(ask: () => void, bytes: number): void {
    if (this.isInitialized) ask();
    else this.#earlyQuestions.add(ask, bytes);
  }

  get #earlyQuestions(): EarlyQuestions {
    this.#early ??= new EarlyQuestions(this.#clock);
    return this.#early;
  }

  /** Reads what the client's `initialize` says about it. */
  introduce(initialize: Frame, serverRevision: unknown): void {
    const params = readFields(initialize, ['capabilities', 'protocolVersion']);
    this.isIntroduced = true;
    this.capabilities = readClientCapabilities(params);
    this.revisionId = (findRevision(params.protocolVersion) ?? LATEST_LEGACY_REVISION).id;
    this.older = OlderClient.of(this.revisionId, serverRevision);
  }

  /** The server's process serves other clients as well. */
  get process(): undefined {
    return undefined;
  }

  send(frame: Frame, exchange?: Exchange): boolean {
    if (this.#hasLeft) return true;
    if (frame.method === INITIALIZED) {
      // The server got its own after the one real handshake.
      this.#finishHandshake();
      return true;
    }
    return this.#host.fromClient(this, frame, exchange);
  }

  /**
   * Nothing: stopping the server would stop it for everybody. What a slow client has not read is bounded by its
   * transport, which also holds back that client's own messages meanwhile.
   */
  pause(): void {}
  resume(): void {}

  close(_reason: BridgeError): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#early?.drop();
    this.#host.leave(this);
  }
}

/** A client that asked for an older revision than the server they share speaks: it must not see newer shapes. */
export class OlderClient {
  readonly #revision: RevisionId;

  private constructor(revision: RevisionId) {
    this.#revision = revision;
  }

  /** Undefined: the client knows all that the server does, and everything passes as it is. */
  static of(clientRevision: RevisionId, serverRevision: unknown): OlderClient | undefined {
    const server = findRevision(serverRevision);
    return server !== undefined && isEarlierRevision(clientRevision, server.id)
      ? new OlderClient(clientRevision)
      : undefined;
  }

  /** `method`: of the request that it answers. */
  result(frame: Frame, method: string): Frame {
    return downgradeResult(frame, { method, clientRevision: this.#revision });
  }

  /** A request of the server; a fault: there are no words for it in the revision of the client. */
  question(frame: Frame): Frame | InputFault {
    const { bytes, payloadStart, method = '' } = frame;
    const params = payloadStart === -1 ? undefined : bytes.subarray(payloadStart, skipValue(bytes, payloadStart));
    // No revision that has another after it knows ids of elicitations.
    const older = toLegacyInput({ method, params }, { clientRevision: this.#revision, elicitationId: '' });
    if ('fault' in older) return older;
    return older.params === undefined || older.params === params ? frame : withPayload(frame, older.params);
  }
}
