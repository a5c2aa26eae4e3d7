/**
 * Which members of a JSON Schema hold what: to walk a schema one must tell a keyword from a property that is called
 * like one, and a schema from data that looks like one.
 */

import { firstUnit, isStringToken } from '../../wire/json/scan-json.ts';

/** The one annotation of MCP in schemas. [spec 2026-07-28 server/tools#x-mcp-header] */
export const PARAM_HEADER_KEYWORD = 'x-mcp-header';

/** Their value maps names to schemas. */
const nameMaps: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  'dependencies',
  '$defs',
  'definitions',
]);

/** Their value is data, which may look like a schema. */
const dataKeywords: ReadonlySet<string> = new Set([
  'type',
  'const',
  'enum',
  'default',
  'examples',
  'example',
  'required',
]);

/** Their value is a schema or a list of schemas, in any dialect up to 2020-12. */
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

/** `header`: the annotation. `names`: maps names to schemas. `data`: may look like a schema. `other`: any other member. */
export type Keyword = 'header' | 'names' | 'data' | 'other';

/** By the first unit of the key: a schema has thousands of keys, of which few begin like one of these. */
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

/** What the key token bytes[start, end) is in a schema, however it is spelled. */
export function classifyKeyword(bytes: Buffer, start: number, end: number): Keyword {
  const candidates = byInitial.get(firstUnit(bytes, start));
  return candidates?.find(([name]) => isStringToken(bytes, start, end, name))?.[1] ?? 'other';
}
