import { ELICIT, LIST_ROOTS, SAMPLE } from './methods.ts';
import { asFields, type Fields } from './payload.ts';

/** `capabilities` of an `initialize` request, as far as requests of a server presume them. */
export interface ClientCapabilities {
  readonly sampling?: unknown;
  readonly roots?: unknown;
  readonly elicitation?: unknown;
}

/** What the bridge declares where it answers for several clients: what it can carry to the right one of them. */
export const CARRIED_CAPABILITIES = {
  sampling: {},
  elicitation: { form: {}, url: {} },
  // Without listChanged: each client has roots of its own, and a change in one must not make the server ask all.
  roots: {},
} as const satisfies ClientCapabilities;

/** Only whether they are declared: what else there is to them is the client's choice, and would be kept with it. */
export function readClientCapabilities(initializeParams: unknown): ClientCapabilities {
  const declared = asFields(asFields(initializeParams)?.capabilities);
  const { elicitation, ...others } = declaredOf(declared, ['sampling', 'roots', 'elicitation']);
  const modes = asFields(declared?.elicitation);
  return { ...others, ...(elicitation !== undefined && { elicitation: declaredOf(modes, ['form', 'url']) }) };
}

function declaredOf(capabilities: Fields | undefined, names: readonly string[]): Record<string, object> {
  return Object.fromEntries(names.filter((name) => isDeclared(capabilities?.[name])).map((name) => [name, {}]));
}

/** The declared capability that is missing for this request of a server; undefined: none is. */
export function missingCapability(
  capabilities: ClientCapabilities,
  method: string | undefined,
  params: unknown,
): string | undefined {
  switch (method) {
    case SAMPLE:
      return isDeclared(capabilities.sampling) ? undefined : 'sampling';
    case LIST_ROOTS:
      return isDeclared(capabilities.roots) ? undefined : 'roots';
    case ELICIT:
      return missingElicitation(capabilities.elicitation, asFields(params)?.mode);
    default:
      return undefined;
  }
}

/** [spec 2025-11-25 client/elicitation#capabilities] `{}` means form mode. */
function missingElicitation(elicitation: unknown, mode: unknown): string | undefined {
  if (!isDeclared(elicitation)) return 'elicitation';
  const modes = asFields(elicitation);
  const takesUrls = isDeclared(modes?.url);
  if (mode === 'url') return takesUrls ? undefined : 'elicitation.url';
  return takesUrls && !isDeclared(modes?.form) ? 'elicitation.form' : undefined;
}

/** A capability is an object; who writes null or false means that it is not there. */
export function isDeclared(capability: unknown): boolean {
  return capability !== undefined && capability !== null && capability !== false;
}
