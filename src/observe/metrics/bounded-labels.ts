/** Limits labels whose words are chosen by peers, since each new word is a series that is kept permanently. */
import { isSpecified } from '../../mcp/vocabulary/methods.ts';
import { findRevision, MODERN_REVISION_IDS } from '../../mcp/vocabulary/revisions.ts';
import type { CallOutcome, Transport } from '../../relay/observer.ts';

/** The label of all words that have none of their own. */
export const OTHER = 'other';
/** The name of such an error in the OpenTelemetry conventions. */
const OTHER_ERROR = '_OTHER';
/** The error type of the OpenTelemetry conventions for a tool whose result says that it failed. */
const TOOL_ERROR = 'tool_error';

/** Printable text on one line, so that no two labels look the same. */
const READABLE = /^[^\p{C}\p{Zl}\p{Zp}]{1,128}$/u;

/** Remembers the first words of peers, up to a number. */
export class BoundedWords {
  readonly #max: number;
  readonly #known = new Set<string>();

  constructor(max: number) {
    this.#max = max;
  }

  has(word: string): boolean {
    return this.#known.has(word);
  }

  /** Remembers a word. False: it is unknown, and the limit is reached. */
  take(word: string): boolean {
    if (this.#known.has(word)) return true;
    if (this.#known.size >= this.#max) return false;
    this.#known.add(word);
    return true;
  }

  /** Returns the label of a word: the word itself, or OTHER if it is beyond the limit or not printable. */
  labelOf(word: string): string {
    return this.#known.has(word) || (READABLE.test(word) && this.take(word)) ? word : OTHER;
  }
}

/** Limits per server. Real servers have tens of tools and are used by a few clients. */
const MAX_TOOLS = 100;
const MAX_CLIENTS = 50;
const MAX_RPC_CODES = 32;
/** Label sets of one histogram. Each set has a line for every bucket. */
const MAX_OPERATIONS = 500;

/** The words with labels of their own at one server. */
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
   * Returns the label of a tool. A client can ask for tools that do not exist, so a name gets its own label only once
   * the server has returned a result for it, or has not answered within the time limit.
   */
  labelOfTool(tool: string, outcome: CallOutcome): string {
    const isReal =
      outcome.kind === 'answered' ||
      outcome.kind === 'tool-error' ||
      (outcome.kind === 'failed' && outcome.code === 'ERR_UPSTREAM_TIMEOUT');
    return isReal ? this.#tools.labelOf(tool) : this.#tools.has(tool) ? tool : OTHER;
  }
}

/** Returns the label of a method. Methods of extensions share one, since a client can choose them freely. */
export function labelOfMethod(method: string): string {
  return isSpecified(method) ? method : OTHER;
}

/** Returns the label of a revision. A modern request may name any revision, even one that is then rejected. */
export function labelOfRevision(revision: string): string {
  return findRevision(revision) !== undefined || MODERN_REVISION_IDS.includes(revision) ? revision : OTHER;
}

/** Returns the `network.transport` of the OpenTelemetry conventions. */
export function networkOf(transport: Transport): 'pipe' | 'tcp' {
  return transport === 'stdio' ? 'pipe' : 'tcp';
}

/** Returns the error label of an outcome; undefined: the call did not fail. */
export function labelOfError(outcome: CallOutcome, rpcCodes: BoundedWords): string | undefined {
  switch (outcome.kind) {
    case 'answered':
      return undefined;
    case 'tool-error':
      return TOOL_ERROR;
    case 'cancelled':
      return 'cancelled';
    case 'failed':
      return outcome.code;
    case 'error': {
      // A server may use any code. The codes of the specification usually occur first, so they get the labels.
      const code = String(outcome.code);
      return outcome.code !== undefined && rpcCodes.take(code) ? code : OTHER_ERROR;
    }
  }
}

/** Returns the error label of a call beyond the limit of label sets. */
export function labelOfRareError(outcome: CallOutcome): string | undefined {
  return outcome.kind === 'answered' ? undefined : OTHER_ERROR;
}
