import type { Clock } from '../../../deps.ts';
import { BridgeError } from '../../../errors.ts';
import type { InputFault } from '../../../mcp/classify/input-required.ts';
import { toLegacyInput } from '../../../mcp/translate/downgrade-inputs.ts';
import { downgradeResult } from '../../../mcp/translate/downgrade-results.ts';
import { withoutUrlElicitation } from '../../../mcp/translate/errors.ts';
import {
  type ClientCapabilities,
  missingCapability,
  readClientCapabilities,
} from '../../../mcp/vocabulary/client-declarations.ts';
import { ELICIT } from '../../../mcp/vocabulary/methods.ts';
import { readFields } from '../../../mcp/vocabulary/payload.ts';
import {
  findRevision,
  isEarlierRevision,
  LATEST_LEGACY_REVISION,
  type RevisionId,
} from '../../../mcp/vocabulary/revisions.ts';
import { type Frame, withId, withPayload } from '../../../wire/frame.ts';
import { skipValue } from '../../../wire/json/scan-json.ts';
import type { ServerListener } from '../../ports.ts';
import type { ClientIdentity } from './attribution.ts';
import { EarlyQuestions } from './early-questions.ts';
import { type AnsweredCall, LegacyClient } from './legacy-client.ts';

/** A client that makes a handshake of its own, which the bridge answers. */
export class HandshakingClient extends LegacyClient {
  listener: ServerListener;
  readonly identity: ClientIdentity = {};
  isIntroduced = false;
  isInitialized = false;
  readonly #clock: Clock;
  /** The questions that wait for `isInitialized`; made for the first of them. */
  #early: EarlyQuestions | undefined;
  /** The capabilities in the client's own `initialize`; the server heard those of the bridge. */
  #capabilities: ClientCapabilities = {};
  #revision: RevisionId = LATEST_LEGACY_REVISION.id;
  /** The client's revision is older than the server's, so the client must not see newer shapes. */
  #isOlder = false;

  constructor(listener: ServerListener, clock: Clock) {
    super();
    this.listener = listener;
    this.#clock = clock;
  }

  override introduce(initialize: Frame, serverRevision: unknown): RevisionId {
    const params = readFields(initialize, ['capabilities', 'protocolVersion']);
    const server = findRevision(serverRevision);
    this.isIntroduced = true;
    this.#capabilities = readClientCapabilities(params);
    this.#revision = (findRevision(params.protocolVersion) ?? LATEST_LEGACY_REVISION).id;
    this.#isOlder = server !== undefined && isEarlierRevision(this.#revision, server.id);
    return this.#revision;
  }

  override finishHandshake(): void {
    this.isInitialized = true;
    this.#early?.letGo();
  }

  override answered(said: Frame, { method, idToken }: AnsweredCall): Frame {
    const answer = withId(said, idToken);
    if (answer.kind === 'error') return this.#opensUrls ? answer : withoutUrlElicitation(answer);
    return this.#isOlder ? downgradeResult(answer, { method, clientRevision: this.#revision }) : answer;
  }

  get #opensUrls(): boolean {
    return !this.#isOlder && missingCapability(this.#capabilities, ELICIT, { mode: 'url' }) === undefined;
  }

  override asked(question: Frame): Frame | BridgeError {
    const { method = '' } = question;
    const missing = missingCapability(this.#capabilities, method, readFields(question, ['mode']));
    if (missing !== undefined) {
      return new BridgeError('ERR_CLIENT_CAPABILITY', `The client of this call did not declare ${missing}.`);
    }
    const asked = this.#isOlder ? olderQuestion(question, this.#revision) : question;
    if ('fault' in asked) {
      return new BridgeError('ERR_CLIENT_CAPABILITY', `The client of this call cannot be asked: ${asked.fault}.`);
    }
    return this.isInitialized || this.#earlyQuestions.hasCapacityFor(asked.bytes.length) ? asked : TOO_EARLY;
  }

  override askInTime(ask: () => void, bytes: number): void {
    if (this.isInitialized) ask();
    else this.#earlyQuestions.add(ask, bytes);
  }

  get #earlyQuestions(): EarlyQuestions {
    this.#early ??= new EarlyQuestions(this.#clock);
    return this.#early;
  }

  override left(): void {
    this.#early?.drop();
    this.#capabilities = {};
  }
}

const TOO_EARLY = new BridgeError(
  'ERR_SESSION_BUSY',
  'The client has not finished its handshake, and as many questions as allowed already wait for it.',
);

/** A request of the server in the words of this revision; a fault: it has none for it. */
function olderQuestion(frame: Frame, clientRevision: RevisionId): Frame | InputFault {
  const { bytes, payloadStart, method = '' } = frame;
  const params = payloadStart === -1 ? undefined : bytes.subarray(payloadStart, skipValue(bytes, payloadStart));
  // No revision that has another after it knows ids of elicitations.
  const older = toLegacyInput({ method, params }, { clientRevision, elicitationId: '' });
  if ('fault' in older) return older;
  return older.params === undefined || older.params === params ? frame : withPayload(frame, older.params);
}
