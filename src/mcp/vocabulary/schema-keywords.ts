/**
 * The kinds of members in a JSON Schema. A walk over a schema must distinguish a keyword from a property with the same
 * name, and a schema from data that looks like one.
 */

import { firstUnit, isStringToken } from '../../wire/json/scan-json.ts';

/** The only MCP annotation in schemas. [spec 2026-07-28 server/tools#x-mcp-header] */
export const PARAM_HEADER_KEYWORD = 'x-mcp-header';

/** Keywords whose value maps names to schemas. */
const nameMaps: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  'dependencies',
  '$defs',
  'definitions',
]);

/** Keywords whose value is data, which may look like a schema. */
const dataKeywords: ReadonlySet<string> = new Set([
  'type',
  'const',
  'enum',
  'default',
  'examples',
  'example',
  'required',
]);

/** Keywords whose value is a schema or a list of schemas, in any dialect up to 2020-12. */
const schemaKeywords: ReadonlySet<string> = new Set([
  'items',
  'prefixItems',
  'additionalItems',
  'unevaluatedItems',
  'contains',
  'additionalProperties',
  'unevaluatedProperties',
  'propertyNames',
  'contentSchema',
  'oneOf',
  'anyOf',
  'allOf',
  'not',
  'if',
  'then',
  'else',
]);

export function isSchemaKeyword(keyword: string): boolean {
  return schemaKeywords.has(keyword);
}

export function isNameMap(keyword: string): boolean {
  return nameMaps.has(keyword);
}

/**
 * `header`: the annotation. `names`: its value maps names to schemas. `data`: its value may look like a schema.
 * `other`: any other member.
 */
export type Keyword = 'header' | 'names' | 'data' | 'other';

/**
 * Keywords by the first UTF-16 unit of the key, because a schema has thousands of keys and few begin like a keyword.
 */
const byInitial = new Map<number, (readonly [name: string, keyword: Keyword])[]>();
for (const [keyword, names] of [
  ['header', [PARAM_HEADER_KEYWORD]],
  ['names', nameMaps],
  ['data', dataKeywords],
] as const) {
  for (const name of names) {
    const initial = name.charCodeAt(0);
    byInitial.set(initial, [...(byInitial.get(initial) ?? []), [name, keyword]]);
  }
}

/** Classifies the key token bytes[start, end) of a schema, with or without escapes. */
export function classifyKeyword(bytes: Buffer, start: number, end: number): Keyword {
  const candidates = byInitial.get(firstUnit(bytes, start));
  return candidates?.find(([name]) => isStringToken(bytes, start, end, name))?.[1] ?? 'other';
}
