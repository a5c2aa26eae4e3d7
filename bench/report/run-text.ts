/** Renders the figures of a run as JSON with a line for each entry of a list, so that a change shows what is new. */
export function renderRun(run: object): string {
  const members = Object.entries(run).map(([name, value]) => `${JSON.stringify(name)}: ${renderMember(value)}`);
  return `{\n${members.join(',\n')}\n}\n`;
}

function renderMember(value: unknown): string {
  if (!Array.isArray(value)) return JSON.stringify(value);
  return `[\n${value.map((entry) => JSON.stringify(entry)).join(',\n')}\n]`;
}
