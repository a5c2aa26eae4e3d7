import { RecentNames } from '../../collections/bounded-collections.ts';
import { downgradeResult, downgradeTools } from '../../mcp/translate/downgrade-results.ts';
import { toLegacyResult } from '../../mcp/translate/results.ts';
import { CALL_TOOL, LIST_TOOLS } from '../../mcp/vocabulary/methods.ts';
import { readField } from '../../mcp/vocabulary/payload.ts';
import type { RevisionId } from '../../mcp/vocabulary/revisions.ts';
import type { Frame } from '../../wire/frame.ts';
import { findMember } from '../../wire/json/outline.ts';
import { decodeString } from '../../wire/json/scan-json.ts';

/** Limits the tools remembered of one server, and the characters of their names. For other tools the value decides. */
const WRAPPED_LIMITS = { count: 1000, length: 64 * 1024 };

/**
 * Results as one client's revision has them. What a tool answers follows the schema that its client saw in the list, so
 * that is remembered.
 */
export class LegacyResults {
  readonly #clientRevision: RevisionId;
  /** Tools whose output is no object, which legacy clients get as a member of one. */
  readonly #wrapped = new RecentNames<true>(WRAPPED_LIMITS);

  constructor(clientRevision: RevisionId) {
    this.#clientRevision = clientRevision;
  }

  toLegacy(result: Frame, request: Frame): Frame {
    const method = request.method ?? '';
    const legacy = toLegacyResult(result, method);
    if (method === LIST_TOOLS) return this.#toLegacyTools(legacy, request);
    const isWrapped = method === CALL_TOOL && this.#isWrapped(request) ? true : undefined;
    return downgradeResult(legacy, { method, clientRevision: this.#clientRevision, isWrapped });
  }

  #toLegacyTools(page: Frame, request: Frame): Frame {
    const { frame, wrapped } = downgradeTools(page, this.#clientRevision);
    // A list begun anew replaces what was known; its further pages add to it.
    if (readField(request, 'cursor') === undefined) this.#wrapped.clear();
    for (const name of wrapped) this.#wrapped.set(name, true);
    return frame;
  }

  #isWrapped({ bytes, payloadStart }: Frame): boolean {
    if (this.#wrapped.size === 0) return false;
    const name = findMember(bytes, payloadStart, 'name');
    const text = name && decodeString(bytes, name.start, name.end);
    return text !== undefined && this.#wrapped.has(text);
  }
}
