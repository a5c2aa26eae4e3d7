import { ELICIT, LIST_ROOTS, SAMPLE } from './methods.ts';

/** `capabilities` of an `initialize` request, as far as requests of a server presume them. */
export interface ClientCapabilities {
  readonly sampling?: unknown;
  readonly roots?: unknown;
  readonly elicitation?: { readonly form?: unknown; readonly url?: unknown };
}

/** What the bridge declares where it answers for several clients: what it can carry to the right one of them. */
export const CARRIED_CAPABILITIES = {
  sampling: {},
  elicitation: { form: {}, url: {} },
  // Without listChanged: each client has roots of its own, and a change in one must not make the server ask all.
  roots: {},
} as const satisfies ClientCapabilities;

export function readClientCapabilities(initializeParams: unknown): ClientCapabilities {
  const capabilities = (initializeParams as { capabilities?: unknown } | undefined)?.capabilities;
  return typeof capabilities === 'object' && capabilities !== null ? (capabilities as ClientCapabilities) : {};
}

/** The declared capability that is missing for this request of a server; undefined: none is. */
export function missingCapability(
  capabilities: ClientCapabilities,
  method: string | undefined,
  params: unknown,
): string | undefined {
  switch (method) {
    case SAMPLE:
      return capabilities.sampling === undefined ? 'sampling' : undefined;
    case LIST_ROOTS:
      return capabilities.roots === undefined ? 'roots' : undefined;
    case ELICIT:
      return missingElicitation(capabilities.elicitation, (params as { mode?: unknown } | undefined)?.mode);
    default:
      return undefined;
  }
}

/** [spec 2025-11-25 client/elicitation#capabilities] `{}` means form mode. */
function missingElicitation(elicitation: ClientCapabilities['elicitation'], mode: unknown): string | undefined {
  if (elicitation === undefined || elicitation === null) return 'elicitation';
  if (mode === 'url') return elicitation.url === undefined ? 'elicitation.url' : undefined;
  return elicitation.form === undefined && elicitation.url !== undefined ? 'elicitation.form' : undefined;
}
