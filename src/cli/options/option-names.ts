/** Converts the name of an option between the spellings of its places: `maxSessions`, `--max-sessions`, `MCP_PORTAGE_MAX_SESSIONS`. */

/** The prefix of all variables that the bridge reads from its environment. Children never inherit variables with it. */
export const ENV_PREFIX = 'MCP_PORTAGE_';

export function flagOf(name: string): string {
  return `--${toKebabCase(name)}`;
}

export function variableOf(name: string): string {
  return ENV_PREFIX + name.replaceAll(/[A-Z]/g, '_$&').toUpperCase();
}

/** Converts `maxSessions` to `max-sessions`. */
export function toKebabCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, '-$&').toLowerCase();
}

/** Converts `max-sessions` to `maxSessions`, and leaves other texts as they are. */
export function toCamelCase(name: string): string {
  return name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
