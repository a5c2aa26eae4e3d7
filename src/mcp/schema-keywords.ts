/**
 * Which members of a JSON Schema hold what: to walk a schema one must tell a keyword from a property that is called
 * like one. All else is taken for a schema or a list of schemas, so that a keyword nobody knows is walked into.
 */

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

export function isNameMap(keyword: string): boolean {
  return nameMaps.has(keyword);
}

export function isDataKeyword(keyword: string): boolean {
  return dataKeywords.has(keyword);
}
