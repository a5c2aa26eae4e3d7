/**
 * Structured output of a modern tool may be any JSON value, of a legacy tool only an object. Clients of those revisions
 * get an object with the value in it, and a schema that says so.
 * [spec 2026-07-28 changelog, SEP-2106] The same object the official SDK makes.
 */
import { asFields, type Fields } from './payload.ts';
import { isNameMap, isSchemaKeyword } from './schema-keywords.ts';

/** The one member of that object. */
export const WRAPPED_OUTPUT = 'result';

const WRAPPED_POINTER = `/properties/${WRAPPED_OUTPUT}`;

/** Beyond any schema of use; a recursion must end somewhere. */
const MAX_DEPTH = 200;

/** What the schema of an output becomes that is put into an object. References within it still lead to their target. */
export function wrapOutputSchema(schema: Fields): Fields {
  const dialect = typeof schema.$schema === 'string' ? { $schema: schema.$schema } : {};
  return {
    ...dialect,
    type: 'object',
    properties: { [WRAPPED_OUTPUT]: moved(schema, 0) },
    required: [WRAPPED_OUTPUT],
  };
}

/** A schema whose root has come to lie deeper. */
function moved(schema: unknown, depth: number): unknown {
  if (depth > MAX_DEPTH) return schema;
  if (Array.isArray(schema)) return schema.map((item) => moved(item, depth + 1));
  const fields = asFields(schema);
  // References below a base of its own are relative to that.
  if (fields === undefined || hasBase(fields)) return schema;
  return Object.fromEntries(
    Object.entries(fields).map(([keyword, value]) => [keyword, movedMember(keyword, value, depth)]),
  );
}

/** [RFC 3986; JSON Schema draft-07] an `$id` that is only a fragment is a mere anchor. */
function hasBase({ $id }: Fields): boolean {
  return typeof $id === 'string' && !$id.startsWith('#');
}

function movedMember(keyword: string, value: unknown, depth: number): unknown {
  if (keyword === '$ref' || keyword === '$dynamicRef') return movedReference(value);
  if (isNameMap(keyword)) {
    const named = asFields(value);
    if (named === undefined) return value;
    return Object.fromEntries(Object.entries(named).map(([name, schema]) => [name, moved(schema, depth + 1)]));
  }
  return isSchemaKeyword(keyword) ? moved(value, depth + 1) : value;
}

/** Only pointers from the root change; anchors stay where they are, and other documents too. */
function movedReference(reference: unknown): unknown {
  if (typeof reference !== 'string' || (reference !== '#' && !reference.startsWith('#/'))) return reference;
  return `#${WRAPPED_POINTER}${reference.slice(1)}`;
}
