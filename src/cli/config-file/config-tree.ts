/** A configuration file in any language as a tree whose nodes have positions. */

/** Lines and columns count from 1, as in editors. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

export type ConfigNode = ObjectNode | ListNode | ScalarNode;

export interface ObjectNode {
  readonly kind: 'object';
  readonly at: Position;
  /** A map instead of an object, so that keys like `__proto__` have no special meaning. */
  readonly members: ReadonlyMap<string, ConfigNode>;
  /** Repetitions of a key; `members` has its first value. */
  readonly repeated: readonly { readonly key: string; readonly at: Position }[];
}

export interface ListNode {
  readonly kind: 'list';
  readonly at: Position;
  readonly items: readonly ConfigNode[];
}

export type ScalarNode =
  | { readonly kind: 'text'; readonly at: Position; readonly value: string }
  | { readonly kind: 'number'; readonly at: Position; readonly value: number }
  | { readonly kind: 'boolean'; readonly at: Position; readonly value: boolean }
  | { readonly kind: 'null'; readonly at: Position }
  | { readonly kind: 'date'; readonly at: Position };

export type ParsedTree =
  | { readonly ok: true; readonly root: ConfigNode }
  | { readonly ok: false; readonly problems: readonly SyntaxProblem[] };

export interface SyntaxProblem {
  readonly at: Position;
  readonly problem: string;
}

/** Keys and list indexes, starting at the root. */
export type Path = readonly (string | number)[];

/** Bounds the recursion of code that walks a tree. The files of hosts are less than a tenth as deep. */
export const MAX_DEPTH = 64;

/** Names of the kinds of nodes, for messages about unexpected values. */
export const KIND_NAMES: Readonly<Record<ConfigNode['kind'], string>> = {
  object: 'an object',
  list: 'an array',
  text: 'a string',
  number: 'a number',
  boolean: 'a boolean',
  null: 'null',
  date: 'a date',
};

/**
 * Returns the node at a path below this one, or the deepest one that exists on that path, whose position a message can
 * show.
 */
export function nearestNode(node: ConfigNode, path: Path): ConfigNode {
  let nearest = node;
  for (const step of path) {
    const next =
      nearest.kind === 'object' && typeof step === 'string'
        ? nearest.members.get(step)
        : nearest.kind === 'list' && typeof step === 'number'
          ? nearest.items[step]
          : undefined;
    if (next === undefined) break;
    nearest = next;
  }
  return nearest;
}

/** Returns true for two nodes with the same content. Their positions may differ. */
export function isSameNode(one: ConfigNode, other: ConfigNode): boolean {
  if (one.kind === 'object' && other.kind === 'object') {
    return (
      one.members.size === other.members.size &&
      [...one.members].every(([key, member]) => {
        const counterpart = other.members.get(key);
        return counterpart !== undefined && isSameNode(member, counterpart);
      })
    );
  }
  if (one.kind === 'list' && other.kind === 'list') {
    return (
      one.items.length === other.items.length &&
      one.items.every((item, index) => {
        const counterpart = other.items[index];
        return counterpart !== undefined && isSameNode(item, counterpart);
      })
    );
  }
  const scalarOf = (node: ConfigNode): unknown => ('value' in node ? node.value : undefined);
  return one.kind === other.kind && scalarOf(one) === scalarOf(other);
}
