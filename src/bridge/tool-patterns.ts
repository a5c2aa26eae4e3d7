import type { ToolChoice } from '../config/server.ts';
import type { IsHidden } from '../relay/tool-filter.ts';

/** A name is one word, whatever stands in it: no part of it is a folder or hidden, and an exclamation mark is one. */
const OPTIONS = { bash: true, dot: true, nonegate: true };

/** Undefined: nothing is hidden. */
export async function createToolFilter({ include, exclude }: ToolChoice): Promise<IsHidden | undefined> {
  if (include.length === 0 && exclude.length === 0) return undefined;
  const { default: picomatch } = await import('picomatch');
  const isIncluded = include.length === 0 ? () => true : picomatch([...include], OPTIONS);
  const isExcluded = picomatch([...exclude], OPTIONS);
  return (name) => !isIncluded(name) || isExcluded(name);
}
