/**
 * Writes the text for Prometheus in slices: at full cardinality it has more lines than one turn of the event loop
 * should take.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { escapeText, type Family } from './families.ts';

/**
 * Characters written per turn of the event loop, which takes less than a millisecond. Other connections are served in
 * between.
 */
export const CHARACTERS_PER_TURN = 64 * 1024;

/** Returns the text of these metrics in pieces. */
export async function writeMetrics(families: Iterable<Family>): Promise<readonly Buffer[]> {
  const pieces: Buffer[] = [];
  let text = '';
  for (const family of families) {
    const { name, help, type } = family;
    text += `# HELP ${name} ${escapeText(help)}\n# TYPE ${name} ${type}\n`;
    for (const series of await family.series()) {
      text += series;
      if (text.length < CHARACTERS_PER_TURN) continue;
      pieces.push(Buffer.from(text));
      text = '';
      await turn();
    }
    text += '\n';
  }
  pieces.push(Buffer.from(text));
  return pieces;
}
