/** A configuration file as a tree that knows where everything stands, whichever language the file is written in. */

/** Both count from 1, as editors do. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

export type ConfigNode = ObjectNode | ListNode | ScalarNode;

export interface ObjectNode {
  readonly kind: 'object';
  readonly at: Position;
  /** A map and not an object: keys like `__proto__` are keys like any other. */
  readonly members: ReadonlyMap<string, ConfigNode>;
  /** Keys that stand here once more; what stood first is in `members`. */
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

/** Keys and places in lists, from the root. */
export type Path = readonly (string | number)[];

/** No host nests deeper than a tenth of this; what walks the tree calls itself once for each level. */
export const MAX_DEPTH = 64;

/** What somebody reads who expected something else. */
export const KIND_NAMES: Readonly<Record<ConfigNode['kind'], string>> = {
  object: 'an object',
  list: 'a list',
  text: 'a text',
  number: 'a number',
  boolean: 'true or false',
  null: 'null',
  date: 'a date',
};

/** The node at a path below this one, or as near to it as there is something: a place to point at. */
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

/** Returns true for two nodes of the same content, wherever they stand in their files. */
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
