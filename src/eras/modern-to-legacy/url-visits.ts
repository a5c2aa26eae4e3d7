import type { CanonicalCapabilities } from '../../mcp/era-capabilities.ts';
import { replaceCode } from '../../mcp/era-errors.ts';
import { ELICIT } from '../../mcp/methods.ts';
import { INTERNAL_ERROR } from '../../mcp/rpc-codes.ts';
import type { RpcError } from '../../mcp/rpc-errors.ts';
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

export interface UrlVisitsOptions {
  readonly park: ParkedCall<Follower>;
  /** Of the client. */
  readonly declared: CanonicalCapabilities;
  /** The client cannot be asked; the call ends with this. */
  readonly failed: (error: RpcError) => void;
}

/** The URLs a server wants its user to visit before it runs a call, and what the user says to that. */
export class UrlVisits {
  readonly #options: UrlVisitsOptions;
  #rounds = 0;
  #ids: readonly string[] = [];
  #isAccepted = true;

  constructor(options: UrlVisitsOptions) {
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
        refuse: () => failed(NO_ROOM),
        keepAlive: undefined,
      });
    }
  }

  /** Calls `run` when the visits have had their effect. Returns what stops it. */
  whenComplete(elicitations: Elicitations, run: () => void): () => void {
    return elicitations.whenCompleted(this.#ids, COMPLETION_MS, run);
  }
}

function tooManyRounds(error: RpcError): RpcError {
  const bridge = { reason: 'too_many_rounds', originalCode: error.code };
  return replaceCode({ ...error, data: undefined }, INTERNAL_ERROR, bridge);
}

const NO_ROOM: RpcError = {
  code: INTERNAL_ERROR,
  message: 'there is no room for more calls that wait for their clients; try again later',
};
