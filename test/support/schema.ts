import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { ModernRevisionId, RevisionId } from '../../src/mcp/vocabulary/revisions.ts';

const loaded = new Map<string, Ajv | Ajv2020>();

/** What the specification's own schema of this revision finds wrong with a value; empty: nothing. */
export function schemaFaults(revision: RevisionId | ModernRevisionId, type: string, value: unknown): readonly string[] {
  const ajv = loaded.get(revision) ?? load(revision);
  loaded.set(revision, ajv);
  const isNew = ajv instanceof Ajv2020;
  const validate = ajv.getSchema(`mcp#/${isNew ? '$defs' : 'definitions'}/${type}`);
  if (validate === undefined) throw new Error(`${revision} has no ${type}`);
  // As it would be read from the wire: without members that are undefined.
  if (validate(JSON.parse(JSON.stringify(value)))) return [];
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

function load(revision: string): Ajv | Ajv2020 {
  const schema = JSON.parse(readFileSync(new URL(`../fixtures/schema/${revision}.json`, import.meta.url), 'utf8'));
  const options = { strict: false, validateFormats: false };
  const ajv = '$defs' in schema ? new Ajv2020(options) : new Ajv(options);
  ajv.addSchema(schema, 'mcp');
  return ajv;
}
