import { isDeepStrictEqual } from 'node:util';
import { BridgeError } from '../../../errors.ts';
import { asFields, type Fields, readField, readPayload, showText } from '../../../mcp/vocabulary/payload.ts';
import { featuresOf, type RevisionId } from '../../../mcp/vocabulary/revisions.ts';
import { failureToldBy } from '../../../mcp/vocabulary/rpc-errors.ts';
import type { Frame } from '../../../wire/frame.ts';
import { isOfProcess } from '../../log-failure.ts';

/** A server's answer to `initialize`. */
export interface InitializeResult extends Fields {
  readonly protocolVersion?: unknown;
  readonly capabilities: Fields;
}

/** A result is kept as long as its session, as objects that may take twenty times its bytes. */
export const MAX_INITIALIZE_RESULT_BYTES = 1024 * 1024;

/** Undefined: the answer is an error, or nothing that can be read, or kept. */
export function readInitializeResult(answer: Frame): InitializeResult | undefined {
  const isKept = answer.kind === 'result' && answer.bytes.length <= MAX_INITIALIZE_RESULT_BYTES;
  const result = isKept ? readPayload(answer) : undefined;
  return result && { ...result, capabilities: asFields(result.capabilities) ?? {} };
}

/** Why an answer is no InitializeResult. */
export function refusalOf(name: string, answer: Frame): BridgeError {
  if (answer.bytes.length > MAX_INITIALIZE_RESULT_BYTES) {
    const message = `${name} answered initialize with ${answer.bytes.length} bytes; more than ${MAX_INITIALIZE_RESULT_BYTES} are not kept.`;
    return new BridgeError('ERR_UPSTREAM_PROTOCOL', message);
  }
  if (answer.kind !== 'error') {
    return new BridgeError(
      'ERR_UPSTREAM_PROTOCOL',
      `${name} answered initialize with something that is not its result.`,
    );
  }
  const told = failureToldBy(answer);
  // The request never reached a server: the one below is shared, too, and its process is gone.
  if (told !== undefined && isOfProcess(told)) return told;
  const said = JSON.stringify(showText(readField(answer, 'message')).slice(0, 200));
  return new BridgeError('ERR_UPSTREAM_PROTOCOL', `${name} refused initialize: ${said}`);
}

/** Can a client that was told `a` go on with a server that says `b`? */
export function isSameOffer(a: InitializeResult, b: InitializeResult): boolean {
  return a.protocolVersion === b.protocolVersion && isDeepStrictEqual(a.capabilities, b.capabilities);
}

/** The result as a client gets it: in the revision that the client asked for, and without what cannot be shared. */
export function resultForClient(result: InitializeResult, protocolVersion: RevisionId): object {
  // Task ids have no owner: a client could read and cancel another's.
  const { tasks: _tasks, completions, ...capabilities } = result.capabilities;
  const isKnown = completions !== undefined && featuresOf(protocolVersion).completionsCapability;
  return { ...result, protocolVersion, capabilities: { ...capabilities, ...(isKnown && { completions }) } };
}
