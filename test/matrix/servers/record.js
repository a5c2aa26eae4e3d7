/**
 * What a server process saw, for tests to ask about: through the protocol with the request `test/record`, or, where the
 * server listens on HTTP, beside it with `GET /record` once no session is left to ask through.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';

/** Longer values are not kept: the record is asked for often, and big payloads are judged at the other end. */
const MAX_KEPT_CHARACTERS = 2000;

/**
 * `opened`, `closed`: a session or, without sessions, the one POST that stands for it · `stream`: a GET stream was
 * opened · `deleted`: the client ended the session · `message`: the client's message, as it came · `aborted`: a call of
 * the tool `wait` was told to stop · `answered`: the client's answer to a question that belonged to no call.
 * @typedef {'opened' | 'closed' | 'stream' | 'deleted' | 'message' | 'aborted' | 'answered'} Kind
 * @typedef {{readonly session: string, readonly kind: Kind, readonly value?: unknown}} Entry
 */

export class ServerRecord {
  /** @type {Entry[]} */
  #entries = [];
  #file;

  /** @param {string} [file] where several processes of one server keep theirs together; default: in memory */
  constructor(file) {
    this.#file = file;
  }

  /** @returns {readonly Entry[]} */
  get entries() {
    if (this.#file === undefined) return this.#entries;
    const lines = existsSync(this.#file) ? readFileSync(this.#file, 'utf8').split('\n') : [];
    return lines.filter((line) => line !== '').map((line) => JSON.parse(line));
  }

  /** @param {string} session @param {Kind} kind @param {unknown} [value] */
  note(session, kind, value) {
    const isKept = value === undefined || JSON.stringify(value).length <= MAX_KEPT_CHARACTERS;
    const entry = { session, kind, ...(value !== undefined && { value: isKept ? value : 'too long to keep' }) };
    if (this.#file === undefined) this.#entries.push(entry);
    else appendFileSync(this.#file, `${JSON.stringify(entry)}\n`);
  }
}
