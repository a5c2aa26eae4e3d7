/**
 * Which members of a JSON Schema hold what: to walk a schema one must tell a keyword from a property that is called
 * like one, and a schema from data that looks like one.
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

export function isDataKeyword(keyword: string): boolean {
  return dataKeywords.has(keyword);
}
