/**
 * Converts a program's options to the tree that a configuration file is parsed to, so that the same reader handles
 * both.
 */
import { type ConfigNode, MAX_DEPTH, type ObjectNode, type Position } from '../cli/config-file/config-tree.ts';
import { BridgeError } from '../errors.ts';

/** A value has no position in a file; error messages name its path instead. */
const NOWHERE: Position = { line: 0, column: 0 };

/** Skips undefined members. Throws ERR_CONFIG_OPTION for a value that no option can have. */
export function toTree(value: object, path: string): ObjectNode {
  const node = toNode(value, path, 0);
  if (node.kind === 'object') return node;
  throw refuse(path, 'an object');
}

function toNode(value: unknown, path: string, depth: number): ConfigNode {
  if (depth > MAX_DEPTH) throw refuse(path, `objects that are nested at most ${MAX_DEPTH} deep`);
  switch (typeof value) {
    case 'string':
      return { kind: 'text', at: NOWHERE, value };
    case 'number':
      return { kind: 'number', at: NOWHERE, value };
    case 'boolean':
      return { kind: 'boolean', at: NOWHERE, value };
    case 'object':
      return value === null ? { kind: 'null', at: NOWHERE } : toInnerNode(value, path, depth);
    default:
      throw refuse(path, 'a string, a number, true or false, an array or an object');
  }
}

function toInnerNode(value: object, path: string, depth: number): ConfigNode {
  if (value instanceof URL) return { kind: 'text', at: NOWHERE, value: value.href };
  if (Array.isArray(value)) {
    const items = value.map((item, index) => toNode(item, `${path}[${index}]`, depth + 1));
    return { kind: 'list', at: NOWHERE, items };
  }
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .map(([key, member]) => [key, toNode(member, path === '' ? key : `${path}.${key}`, depth + 1)] as const);
  return { kind: 'object', at: NOWHERE, members: new Map(members), repeated: [] };
}

function refuse(path: string, expected: string): BridgeError {
  const where = path === '' ? '' : `${path}: `;
  return new BridgeError('ERR_CONFIG_OPTION', `${where}expected ${expected}; got something else.`);
}
