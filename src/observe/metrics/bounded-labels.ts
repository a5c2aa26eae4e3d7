/** What becomes of words that peers choose when they are labels: each new one is a series that is kept for good. */
import { isSpecified } from '../../mcp/vocabulary/methods.ts';
import { findRevision, MODERN_REVISION_IDS } from '../../mcp/vocabulary/revisions.ts';
import type { CallOutcome, Transport } from '../../relay/observer.ts';

/** Stands for all words that have no label of their own. */
export const OTHER = 'other';
/** Such an error is called by the conventions of OpenTelemetry. */
const OTHER_ERROR = '_OTHER';

/** One line of what can be read: no label looks like another by something that is not seen. */
const READABLE = /^[^\p{C}\p{Zl}\p{Zp}]{1,128}$/u;

/** The first of the words that peers choose, up to a number. */
export class BoundedWords {
  readonly #max: number;
  readonly #known = new Set<string>();

  constructor(max: number) {
    this.#max = max;
  }

  has(word: string): boolean {
    return this.#known.has(word);
  }

  /** False: it is unknown, and the limit is reached. */
  take(word: string): boolean {
    if (this.#known.has(word)) return true;
    if (this.#known.size >= this.#max) return false;
    this.#known.add(word);
    return true;
  }

  /** The label of a word. */
  labelOf(word: string): string {
    return this.#known.has(word) || (READABLE.test(word) && this.take(word)) ? word : OTHER;
  }
}

/** Real servers have tens of tools, and are used by a few clients. */
const MAX_TOOLS = 100;
const MAX_CLIENTS = 50;
const MAX_RPC_CODES = 32;
/** Label sets of one histogram; each has a line for every bucket. */
const MAX_OPERATIONS = 500;

/** The words that have labels at one server. */
export class ServerWords {
  readonly name: string;
  readonly clients = new BoundedWords(MAX_CLIENTS);
  readonly rpcCodes = new BoundedWords(MAX_RPC_CODES);
  readonly operations = new BoundedWords(MAX_OPERATIONS);
  readonly #tools = new BoundedWords(MAX_TOOLS);

  constructor(name: string) {
    this.name = name;
  }

  /**
   * A client can ask for tools that do not exist, so a name gets its label when the server has answered to it with a result,
   * or was still at it when its time was over.
   */
  labelOfTool(tool: string, outcome: CallOutcome): string {
    const isReal =
      outcome.kind === 'answered' || (outcome.kind === 'failed' && outcome.code === 'ERR_UPSTREAM_TIMEOUT');
    return isReal ? this.#tools.labelOf(tool) : this.#tools.has(tool) ? tool : OTHER;
  }
}

/** An extension's methods are one, for a client can choose them freely. */
export function labelOfMethod(method: string): string {
  return isSpecified(method) ? method : OTHER;
}

/** A modern request may name any revision, also one that is then refused. */
export function labelOfRevision(revision: string): string {
  return findRevision(revision) !== undefined || MODERN_REVISION_IDS.includes(revision) ? revision : OTHER;
}

/** What the conventions call the transport below. */
export function networkOf(transport: Transport): 'pipe' | 'tcp' {
  return transport === 'stdio' ? 'pipe' : 'tcp';
}

/** Undefined: it did not fail. */
export function labelOfError(outcome: CallOutcome, rpcCodes: BoundedWords): string | undefined {
  switch (outcome.kind) {
    case 'answered':
      return undefined;
    case 'cancelled':
      return 'cancelled';
    case 'failed':
      return outcome.code;
    case 'error': {
      // A server may use any number; those of the specification come first at most servers.
      const code = String(outcome.code);
      return outcome.code !== undefined && rpcCodes.take(code) ? code : OTHER_ERROR;
    }
  }
}

/** The label of an error beyond the limit. */
export function labelOfRareError(outcome: CallOutcome): string | undefined {
  return outcome.kind === 'answered' ? undefined : OTHER_ERROR;
}
