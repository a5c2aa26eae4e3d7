import { asFields, type Fields } from '../../mcp/vocabulary/payload.ts';

/** A tool as the search knows it: its words, by where they stand. */
export interface IndexedTool {
  /** The server's name in the configuration. */
  readonly server: string;
  /** The name as clients see it. No two tools of an index have the same one. */
  readonly name: string;
  /** Empty if the tool has none, as are the other texts. */
  readonly title: string;
  /** The first sentence of the description, which says what the tool does. */
  readonly summary: string;
  readonly details: string;
  /** The names of all parameters, separated by spaces. */
  readonly parameters: string;
  readonly parameterTexts: string;
}

/** The texts of a tool that are searched. */
export const TEXTS = ['name', 'title', 'summary', 'details', 'parameters', 'parameterTexts'] as const;

/** Limits of what is read of one tool, in characters. Some descriptions are manuals, which the search cuts. */
const MAX_NAME = 256;
const MAX_SUMMARY = 300;
const MAX_DESCRIPTION = 2000;
const MAX_PARAMETERS = 2000;
/** Depth to which the schema of the parameters is read, in subschemas. */
const MAX_DEPTH = 5;

const END_OF_SENTENCE = /[.!?](?=\s)|[\u3002\uff01\uff1f]|\n\s*\n/u;

/** Reads an item of a `tools/list` result. `name` is the tool's name as clients see it. */
export function readIndexedTool(server: string, name: string, item: Fields): IndexedTool {
  const description = textOf(item.description).trim().slice(0, MAX_DESCRIPTION);
  const end = (END_OF_SENTENCE.exec(description)?.index ?? description.length) + 1;
  const summaryEnd = Math.min(end, MAX_SUMMARY);
  const parameters = { names: '', texts: '' };
  readParameters(item.inputSchema, MAX_DEPTH, parameters);
  return {
    server,
    name,
    // [spec 2025-11-25 schema#toolannotations] the title was an annotation before it was a member.
    title: (textOf(item.title) || textOf(asFields(item.annotations)?.title)).slice(0, MAX_NAME),
    summary: description.slice(0, summaryEnd),
    details: description.slice(summaryEnd),
    parameters: parameters.names,
    parameterTexts: parameters.texts,
  };
}

interface Parameters {
  names: string;
  texts: string;
}

const LISTS_OF_SCHEMAS = ['anyOf', 'oneOf', 'allOf'];
const MAPS_OF_SCHEMAS = ['$defs', 'definitions'];

/** Adds the names and descriptions of the properties, nested ones included. */
function readParameters(schema: unknown, depth: number, found: Parameters): void {
  const fields = asFields(schema);
  if (fields === undefined || depth === 0) return;
  for (const [name, property] of Object.entries(asFields(fields.properties) ?? {})) {
    if (found.names.length + found.texts.length > MAX_PARAMETERS) return;
    found.names += `${name.slice(0, MAX_NAME)} `;
    found.texts += `${textOf(asFields(property)?.description).slice(0, MAX_SUMMARY)} `;
    readParameters(property, depth - 1, found);
  }
  readParameters(fields.items, depth - 1, found);
  for (const key of LISTS_OF_SCHEMAS) {
    const schemas = fields[key];
    if (Array.isArray(schemas)) for (const each of schemas) readParameters(each, depth - 1, found);
  }
  for (const key of MAPS_OF_SCHEMAS) {
    for (const each of Object.values(asFields(fields[key]) ?? {})) readParameters(each, depth - 1, found);
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
