/** The tools that clients see in place of all others, and what they answer: plain data and functions, for either era. */
import { asFields, encodeJson, type Fields } from '../../mcp/vocabulary/payload.ts';
import { editFrame, type Frame } from '../../wire/frame.ts';
import { OPEN_BRACE, QUOTE } from '../../wire/json/ascii.ts';
import { ObjectEditor } from '../../wire/json/object-editor.ts';
import { findAllUnmistakable, findUnmistakable } from '../../wire/json/outline.ts';
import { decodeString } from '../../wire/json/scan-json.ts';
import { joinArray, joinMembers } from '../../wire/write-message.ts';
import type { IndexedTool } from './indexed-tool.ts';
import type { Found, ToolIndex } from './tool-index.ts';

export const SEARCH_TOOLS = 'search_tools';
export const DESCRIBE_TOOL = 'describe_tool';
export const CALL_TOOL = 'call_tool';

const DEFAULT_FOUND = 8;
const MAX_FOUND = 50;
/** Limit of a query, in characters. */
const MAX_QUERY = 1000;
const MAX_DESCRIBED = 20;
/** Limit of all definitions in one answer, in bytes. A single definition is always given. */
const MAX_DESCRIBED_BYTES = 512 * 1024;
/** Length of a description in a list of found tools. */
const MAX_DESCRIPTION = 300;
/** Length to which a name that somebody sent is quoted. */
const MAX_QUOTED = 200;

/** Items of a `tools/list` result, valid in every revision. */
export const SEARCH_TOOL_DEFINITIONS = [
  {
    name: SEARCH_TOOLS,
    title: 'Search tools',
    description:
      'Finds tools by what they do. Many more tools can be called than are listed; search here before you say that ' +
      'something cannot be done. Describe the action in a few words of English, and name the service if you know it, ' +
      `such as "create GitHub issue". Then get the parameters with ${DESCRIBE_TOOL}, and call the tool with ${CALL_TOOL}.`,
    inputSchema: {
      type: 'object',
      properties: {
        query: {
          type: 'string',
          minLength: 1,
          maxLength: MAX_QUERY,
          description: 'What the tool should do, such as "send an email" or "list open pull requests".',
        },
        limit: {
          type: 'integer',
          minimum: 1,
          maximum: MAX_FOUND,
          default: DEFAULT_FOUND,
          description: 'How many tools to return at most.',
        },
      },
      required: ['query'],
    },
    outputSchema: {
      type: 'object',
      properties: {
        tools: {
          type: 'array',
          description: 'The tools that fit best, the best first.',
          items: {
            type: 'object',
            properties: {
              name: { type: 'string', description: `The name for ${DESCRIBE_TOOL} and ${CALL_TOOL}.` },
              title: { type: 'string' },
              description: { type: 'string', description: 'What the tool does, possibly shortened.' },
              server: { type: 'string', description: 'The server that has the tool.' },
            },
            required: ['name', 'server'],
          },
        },
        note: { type: 'string', description: 'What to know about this result.' },
      },
      required: ['tools'],
    },
    annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  },
  {
    name: DESCRIBE_TOOL,
    title: 'Describe tools',
    description:
      `Returns the complete definitions of tools that ${SEARCH_TOOLS} has found: descriptions, and schemas of their ` +
      `parameters and results. Read them before you call a tool with ${CALL_TOOL} for the first time.`,
    inputSchema: {
      type: 'object',
      properties: {
        names: {
          type: 'array',
          items: { type: 'string' },
          minItems: 1,
          maxItems: MAX_DESCRIBED,
          description: `Names of tools, as ${SEARCH_TOOLS} returns them.`,
        },
      },
      required: ['names'],
    },
    outputSchema: {
      type: 'object',
      properties: {
        tools: { type: 'array', items: { type: 'object' }, description: 'The definitions, as in the list of tools.' },
        unknown: {
          type: 'array',
          description: 'Names of no tool.',
          items: {
            type: 'object',
            properties: {
              name: { type: 'string' },
              nearest: { type: 'array', items: { type: 'string' }, description: 'Names that are spelled alike.' },
            },
            required: ['name', 'nearest'],
          },
        },
        omitted: {
          type: 'array',
          items: { type: 'string' },
          description: 'Names of tools that did not fit into this answer. Ask for them separately.',
        },
      },
      required: ['tools'],
    },
    annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  },
  {
    name: CALL_TOOL,
    title: 'Call a tool',
    description:
      `Calls a tool that ${SEARCH_TOOLS} has found, and returns its result. The arguments must fit the input schema ` +
      `that ${DESCRIBE_TOOL} returns.`,
    inputSchema: {
      type: 'object',
      properties: {
        name: { type: 'string', description: `The tool's name, as ${SEARCH_TOOLS} returns it.` },
        arguments: { type: 'object', description: "The tool's arguments; leave it out if the tool needs none." },
      },
      required: ['name'],
    },
    // The tool that is called may do anything.
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  },
] as const;

/** The members of a `tools/call` result, as JSON texts. */
export type ResultMembers = ReadonlyMap<string, Buffer>;

/** A result that says what was wrong with a call, so that a model can correct it. */
export function errorResult(message: string): ResultMembers {
  return new Map([
    ['content', encodeJson([{ type: 'text', text: message }])],
    ['isError', Buffer.from('true')],
  ]);
}

/** [spec 2025-11-25 server/tools#structured-content] the same JSON should also be there as text. */
function structuredResult(value: Buffer): ResultMembers {
  return new Map([
    ['content', encodeJson([{ type: 'text', text: value.toString('utf8') }])],
    ['structuredContent', value],
  ]);
}

// ---- search_tools

/**
 * Answers a call of `search_tools`.
 * @param isShown returns true for servers that the caller may use; default: all
 */
export async function answerSearch(
  args: unknown,
  index: ToolIndex,
  isShown: (server: string) => boolean = () => true,
): Promise<ResultMembers> {
  const read = readSearch(args);
  if (typeof read === 'string') return errorResult(read);
  const found = await index.search(read.query, read.limit, isShown);
  const leftOut = [...index.leftOut].filter(([server]) => isShown(server));
  const note = [found.length === 0 ? NOTHING_FOUND : undefined, ...leftOut.map(noteLeftOut)].filter(
    (text) => text !== undefined,
  );
  return structuredResult(
    encodeJson({ tools: found.map(showFound), note: note.length > 0 ? note.join(' ') : undefined }),
  );
}

const NOTHING_FOUND = 'No tool fits this query. Use other words for what should be done, in English, or fewer of them.';

function noteLeftOut([server, count]: readonly [server: string, count: number]): string {
  return `${count} of the tools of ${server} cannot be found here, because it has too many or too long ones; they can be called by name.`;
}

interface Search {
  readonly query: string;
  readonly limit: number;
}

/** Returns what is wrong, as a text, if the arguments are not as they should be. */
function readSearch(args: unknown): Search | string {
  const { query, limit = DEFAULT_FOUND } = asFields(args) ?? NO_FIELDS;
  if (typeof query !== 'string' || query.trim() === '') {
    return `${SEARCH_TOOLS} needs "query": a text that says what the tool should do, such as "create calendar event".`;
  }
  if (query.length > MAX_QUERY) {
    return `"query" has ${query.length} characters and may have ${MAX_QUERY}; describe the action in a few words.`;
  }
  if (typeof limit !== 'number' || !Number.isInteger(limit) || limit < 1 || limit > MAX_FOUND) {
    return `"limit" must be a whole number from 1 to ${MAX_FOUND}.`;
  }
  return { query, limit };
}

const NO_FIELDS: Fields = {};

function showFound({ tool }: Found): object {
  const { name, title, server } = tool;
  return { name, title: title === '' ? undefined : title, description: showDescription(tool), server };
}

function showDescription({ summary, details }: IndexedTool): string | undefined {
  const text = `${summary}${details}`.replace(/\s+/g, ' ').trim();
  if (text.length <= MAX_DESCRIPTION) return text === '' ? undefined : text;
  const words = text.slice(0, MAX_DESCRIPTION).replace(/\s\S*$/, '');
  return `${wholeCharacters(words)}…`;
}

// ---- describe_tool

/** The tools that a caller may use. */
export interface ToolLookup {
  /** Returns the tool's definition as an item of `tools/list`: a JSON object on one line. */
  find(name: string): Buffer | undefined;
  /** Returns names that are spelled nearly like this one, the nearest first. */
  nearest(name: string): readonly string[];
}

/** Answers a call of `describe_tool`. The definitions are passed on byte for byte. */
export function answerDescribe(args: unknown, lookup: ToolLookup): ResultMembers {
  const names = readNames(args);
  if (typeof names === 'string') return errorResult(names);
  const tools: Buffer[] = [];
  const unknown: string[] = [];
  const omitted: string[] = [];
  let bytes = 0;
  for (const name of names) {
    const definition = lookup.find(name);
    if (definition === undefined) unknown.push(name);
    else if (tools.length > 0 && bytes + definition.length > MAX_DESCRIBED_BYTES) omitted.push(name);
    else {
      tools.push(definition);
      bytes += definition.length;
    }
  }
  if (tools.length === 0) return errorResult(unknown.map((name) => unknownTool(name, lookup.nearest(name))).join('\n'));
  const members = new Map([['tools', joinArray(tools)]]);
  if (unknown.length > 0) members.set('unknown', encodeJson(unknown.map((name) => showUnknown(name, lookup))));
  if (omitted.length > 0) members.set('omitted', encodeJson(omitted));
  return structuredResult(joinMembers(members));
}

/** Returns what is wrong, as a text, if the arguments are not as they should be. Accepts a name alone. */
function readNames(args: unknown): readonly string[] | string {
  const { names, name } = asFields(args) ?? NO_FIELDS;
  const given = names ?? name;
  const list: unknown = typeof given === 'string' ? [given] : given;
  if (!Array.isArray(list) || list.length === 0 || !list.every((item) => typeof item === 'string')) {
    return `${DESCRIBE_TOOL} needs "names": a list of names of tools, as ${SEARCH_TOOLS} returns them.`;
  }
  if (list.length > MAX_DESCRIBED) {
    return `"names" has ${list.length} names and may have ${MAX_DESCRIBED}; ask for the others separately.`;
  }
  return [...new Set(list)];
}

function showUnknown(name: string, lookup: ToolLookup): object {
  return { name: quoted(name), nearest: lookup.nearest(name) };
}

function quoted(name: string): string {
  return wholeCharacters(name.slice(0, MAX_QUOTED));
}

/** Removes halves of characters, which a cut leaves and many JSON parsers refuse. */
function wholeCharacters(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '');
}

/** Says that there is no such tool, and which may be meant. */
export function unknownTool(name: string, nearest: readonly string[]): string {
  const hint =
    nearest.length > 0 ? `Did you mean ${nearest.join(' or ')}?` : `Find the name of a tool with ${SEARCH_TOOLS}.`;
  return `There is no tool called "${quoted(name)}". ${hint}`;
}

// ---- call_tool

/** The tool that a call of `call_tool` names. */
export interface NamedCall {
  readonly name: string;
  /** The arguments as they were sent, a part of the message; undefined if there are none. */
  readonly argumentsBytes: Buffer | undefined;
}

const OWN_NAMES: readonly string[] = [SEARCH_TOOLS, DESCRIBE_TOOL, CALL_TOOL];
const CALL_KEYS = ['name', 'arguments'];

/** Reads a `tools/call` request for `call_tool`. Returns what is wrong, as a text, if it names no tool to call. */
export function readCallTool(frame: Frame): NamedCall | string {
  const { bytes, payloadStart } = frame;
  const args = findUnmistakable(frame, payloadStart, 'arguments');
  if (typeof args !== 'object' || bytes[args.start] !== OPEN_BRACE) return NEEDS_NAME;
  const [name, inner] = findAllUnmistakable(frame, args.start, CALL_KEYS);
  if (name === 'unclear' || inner === 'unclear') {
    return `${CALL_TOOL} has several members that can be read as "name" or "arguments"; send one of each.`;
  }
  const text =
    name !== undefined && bytes[name.start] === QUOTE ? decodeString(bytes, name.start, name.end) : undefined;
  if (text === undefined || text === '') return NEEDS_NAME;
  if (OWN_NAMES.includes(text)) return `Call ${text} directly, not with ${CALL_TOOL}.`;
  if (inner === undefined) return { name: text, argumentsBytes: undefined };
  if (bytes[inner.start] !== OPEN_BRACE) {
    return `"arguments" must be an object with the tool's arguments, not a text or anything else.`;
  }
  return { name: text, argumentsBytes: bytes.subarray(inner.start, inner.end) };
}

const NEEDS_NAME = `${CALL_TOOL} needs "name", the name of a tool as ${SEARCH_TOOLS} returns it, and "arguments", an object with the tool's arguments.`;

/** Makes of a request for `call_tool` one for the tool itself, which keeps all that is not the name and the arguments. */
export function directCall(frame: Frame, { name, argumentsBytes }: NamedCall): Frame {
  const editor = ObjectEditor.readIn(frame, frame.payloadStart, CALL_KEYS);
  editor?.set('name', encodeJson(name));
  if (argumentsBytes === undefined) editor?.remove('arguments');
  else editor?.set('arguments', argumentsBytes);
  return editFrame(frame, editor?.edits() ?? []);
}
