import { compileNamePattern, type MatchName } from './name-pattern.ts';

/** The tools of a server that clients see and may call, and their descriptions. All names are the server's own. */
export interface ToolChoice {
  /** Name patterns. An empty list means all. */
  readonly include: readonly string[];
  /** Name patterns, which have precedence over `include`. */
  readonly exclude: readonly string[];
  /** Settings of single tools, by their names. */
  readonly shapes: ReadonlyMap<string, ToolShape>;
}

/** Settings of one tool. A text that is undefined stays as the server wrote it. */
export interface ToolShape {
  /** The name that clients see; undefined if it is the server's own. No two tools that are shown have the same one. */
  readonly name: string | undefined;
  readonly title: string | undefined;
  readonly description: string | undefined;
  readonly isHidden: boolean;
  /** The principals that see the tool and may call it; undefined: all callers. */
  readonly callers: readonly string[] | undefined;
}

/**
 * Longer names are hidden. The specification allows 128 characters, so a longer name is in no user's patterns, and
 * names come from untrusted clients and servers. [spec 2025-11-25 server/tools#tool-names]
 */
export const MAX_TOOL_NAME_LENGTH = 1024;

/** Compiles the choice to a function that returns true for hidden tools; undefined: no tool is hidden. */
export function compileToolChoice({ include, exclude, shapes }: ToolChoice): MatchName | undefined {
  const hidden = new Set([...shapes].flatMap(([name, { isHidden }]) => (isHidden ? [name] : [])));
  if (include.length === 0 && exclude.length === 0 && hidden.size === 0) return undefined;
  const [included, excluded] = [include, exclude].map((patterns) => patterns.map(compileKnown));
  const matches = (patterns: readonly MatchName[] = [], name: string) => patterns.some((match) => match(name));
  return (name) =>
    name.length > MAX_TOOL_NAME_LENGTH ||
    hidden.has(name) ||
    (include.length > 0 && !matches(included, name)) ||
    matches(excluded, name);
}

/** Compiles a pattern that was checked when the configuration was read. */
function compileKnown(pattern: string): MatchName {
  const match = compileNamePattern(pattern);
  if (match === undefined) throw new Error(`${JSON.stringify(pattern)} is no pattern for names`);
  return match;
}
