/** The answers that a replay gives to every client, whatever was recorded. */
import { NO_CACHING } from '../../mcp/translate/results.ts';
import { META_SERVER_INFO, META_SUBSCRIPTION_ID } from '../../mcp/vocabulary/meta.ts';
import { DISCOVER, INITIALIZE, LISTEN_ACKNOWLEDGED } from '../../mcp/vocabulary/methods.ts';
import { asFields, encodeJson, type Fields, readField } from '../../mcp/vocabulary/payload.ts';
import {
  findRevision,
  isEarlierRevision,
  LATEST_LEGACY_REVISION,
  MODERN_REVISION_IDS,
} from '../../mcp/vocabulary/revisions.ts';
import { METHOD_NOT_FOUND, UNSUPPORTED_REVISION } from '../../mcp/vocabulary/rpc-codes.ts';
import { editFrame, type Frame, idToken, withId } from '../../wire/frame.ts';
import { ObjectEditor } from '../../wire/json/object-editor.ts';
import { errorFrame, notificationFrame, resultFrame } from '../../wire/write-message.ts';
import type { CallFinder } from './find-call.ts';
import type { Recording } from './read-recording.ts';
import type { RecordedCall } from './recorded-call.ts';

/** Returns the recorded handshake of an era; undefined if it was not recorded, or not as a whole. */
export function findHandshake(method: typeof INITIALIZE | typeof DISCOVER, finder: CallFinder): Handshake | undefined {
  for (const call of finder.handshakesOf(method, method === INITIALIZE ? 'legacy' : 'modern')) {
    const { answer } = call;
    if (answer.kind === 'whole' && answer.frame.kind === 'result') return { call, result: answer.frame };
  }
  return undefined;
}

export interface Handshake {
  readonly call: RecordedCall;
  readonly result: Frame;
}

/** Answers `initialize`: as the recorded server did, in the client's revision if that is older than the recorded one. */
export function answerInitialize(request: Frame, { eras, server }: Recording, finder: CallFinder): Frame {
  if (!eras.has('legacy')) {
    // [spec 2026-07-28 versioning] a modern server names its revisions in the answer to `initialize`.
    return errorFrame(idToken(request), {
      code: UNSUPPORTED_REVISION,
      message: 'The recorded server speaks no revision with a handshake.',
      data: { supported: MODERN_REVISION_IDS },
    });
  }
  const wanted = findRevision(readField(request, 'protocolVersion'))?.id ?? LATEST_LEGACY_REVISION.id;
  const recorded = findHandshake(INITIALIZE, finder)?.result;
  if (recorded === undefined) {
    const capabilities = capabilitiesOf(finder.methodsOf('legacy'));
    const serverInfo = { name: server, version: '' };
    return resultFrame(idToken(request), { protocolVersion: wanted, capabilities, serverInfo });
  }
  const spoken = findRevision(readField(recorded, 'protocolVersion'))?.id;
  const answer = withId(recorded, idToken(request));
  return spoken !== undefined && isEarlierRevision(wanted, spoken) ? withRevision(answer, wanted) : answer;
}

function withRevision(answer: Frame, revision: string): Frame {
  const result = ObjectEditor.readIn(answer, answer.payloadStart, ['protocolVersion']);
  result?.set('protocolVersion', encodeJson(revision));
  return editFrame(answer, result?.edits() ?? []);
}

/** Answers `server/discover`, which no legacy server knows. */
export function answerDiscover(request: Frame, { eras, server }: Recording, finder: CallFinder): Frame {
  const id = idToken(request);
  if (!eras.has('modern')) {
    return errorFrame(id, { code: METHOD_NOT_FOUND, message: 'The recorded server does not know this method.' });
  }
  const recorded = findHandshake(DISCOVER, finder)?.result;
  if (recorded !== undefined) return withId(recorded, id);
  return resultFrame(id, {
    resultType: 'complete',
    supportedVersions: MODERN_REVISION_IDS,
    capabilities: capabilitiesOf(finder.methodsOf('modern')),
    ...NO_CACHING,
    _meta: { [META_SERVER_INFO]: { name: server, version: '' } },
  });
}

/** The capabilities that a server needs for requests of these methods. */
function capabilitiesOf(methods: readonly string[]): Fields {
  const names = { tools: 'tools/', prompts: 'prompts/', resources: 'resources/', completions: 'completion/' };
  const used = Object.entries(names).filter(([, prefix]) => methods.some((method) => method.startsWith(prefix)));
  return Object.fromEntries(used.map(([name]) => [name, {}]));
}

/** Acknowledges a subscription that was not recorded: all that it asks for is granted. */
export function acknowledge(request: Frame): Frame {
  const notifications = asFields(readField(request, 'notifications')) ?? {};
  // `rewriteSubscriptionId` puts the id in place of this one.
  return notificationFrame(LISTEN_ACKNOWLEDGED, { notifications, _meta: { [META_SUBSCRIPTION_ID]: 0 } });
}
