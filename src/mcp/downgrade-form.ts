/** Forms of elicitation for a revision that knows no modes, no titled choices and no choice of several values. */
import type { InputFault } from './input-required.ts';
import { asFields, type Fields } from './payload.ts';

/** The params of `elicitation/create`. [spec 2025-06-18 client/elicitation#supported-schema-types] */
export function olderFormParams(params: Fields): { readonly value: Fields } | InputFault {
  const { mode, ...rest } = params;
  if (mode === 'url') return { fault: 'the client cannot open URLs' };
  const schema = asFields(rest.requestedSchema);
  const properties = asFields(schema?.properties);
  if (properties === undefined) return { value: rest };
  const fields: [string, unknown][] = [];
  for (const [name, field] of Object.entries(properties)) {
    const older = olderField(field);
    if (older === undefined) return { fault: `the client has no form for the field ${JSON.stringify(name)}` };
    fields.push([name, older]);
  }
  return { value: { ...rest, requestedSchema: { ...schema, properties: Object.fromEntries(fields) } } };
}

/** Undefined: there is none. */
function olderField(field: unknown): unknown {
  const schema = asFields(field);
  if (schema === undefined) return field;
  if (schema.type === 'array') return undefined;
  const { oneOf, ...rest } = schema;
  if (oneOf === undefined) return schema;
  const choices = Array.isArray(oneOf) ? oneOf.map(readChoice) : [undefined];
  const known = choices.filter((choice) => choice !== undefined);
  if (known.length < choices.length) return undefined;
  return { ...rest, enum: known.map(({ value }) => value), enumNames: known.map(({ title }) => title) };
}

function readChoice(choice: unknown): { readonly value: string; readonly title: string } | undefined {
  const { const: value, title } = asFields(choice) ?? {};
  if (typeof value !== 'string') return undefined;
  return { value, title: typeof title === 'string' ? title : value };
}
