import type { CanonicalCapabilities } from '../../mcp/translate/capabilities.ts';
import { replaceCode } from '../../mcp/translate/errors.ts';
import { ELICIT } from '../../mcp/vocabulary/methods.ts';
import { INTERNAL_ERROR } from '../../mcp/vocabulary/rpc-codes.ts';
import type { RpcError } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Elicitations } from '../../relay/elicitations.ts';
import type { Follower } from './follower.ts';
import type { ParkedCall } from './parked-call.ts';
import {
  COMPLETION_MS,
  isAccept,
  MAX_URL_ROUNDS,
  takesUrls,
  URL_MODE_MISSING,
  type UrlElicitation,
} from './url-elicitations.ts';

export interface RequiredElicitationsOptions {
  readonly park: ParkedCall<Follower>;
  /** The capabilities of the client. */
  readonly declared: CanonicalCapabilities;
  /** The client cannot be asked; the call ends with this. */
  readonly failed: (error: RpcError) => void;
}

/** The URL elicitations that a server requires before it runs a call, and what the user answers. */
export class RequiredElicitations {
  readonly #options: RequiredElicitationsOptions;
  #rounds = 0;
  #ids: readonly string[] = [];
  #isAccepted = true;

  constructor(options: RequiredElicitationsOptions) {
    this.#options = options;
  }

  /** The user has agreed to all of them. */
  get isAccepted(): boolean {
    return this.#isAccepted;
  }

  /** Asks the client. */
  require(elicitations: readonly UrlElicitation[], error: RpcError): void {
    const { park, declared, failed } = this.#options;
    if (!takesUrls(declared.capabilities)) return failed(URL_MODE_MISSING);
    this.#rounds += 1;
    if (this.#rounds > MAX_URL_ROUNDS) return failed(tooManyRounds(error));
    this.#isAccepted = true;
    this.#ids = elicitations.flatMap(({ elicitationId }) => (elicitationId === undefined ? [] : [elicitationId]));
    for (const { request } of elicitations) {
      park.asked({
        method: ELICIT,
        request,
        askedBytes: 0,
        answer: (response) => {
          this.#isAccepted &&= isAccept(response);
        },
        // Nobody waits for these answers but the client itself.
        refuse: () => failed(NO_CAPACITY),
        keepAlive: undefined,
      });
    }
  }

  /** Calls `run` when the server reports the elicitations complete, or after `COMPLETION_MS`. Returns what stops it. */
  whenComplete(elicitations: Elicitations, run: () => void): () => void {
    return elicitations.whenCompleted(this.#ids, COMPLETION_MS, run);
  }
}

function tooManyRounds(error: RpcError): RpcError {
  const bridge = { reason: 'too_many_rounds', originalCode: error.code };
  return replaceCode({ ...error, data: undefined }, INTERNAL_ERROR, bridge);
}

const NO_CAPACITY: RpcError = {
  code: INTERNAL_ERROR,
  message: 'there is no room for more calls that wait for their clients; try again later',
};
