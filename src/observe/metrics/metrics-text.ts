/** The text for Prometheus, written in slices: at full cardinality it has more lines than one turn of the event loop has time for. */
import { setImmediate as turn } from 'node:timers/promises';
import { escapeText, type Family } from './families.ts';

/** Characters written in one turn of the event loop, which takes less than a millisecond; other connections are served in between. */
export const CHARACTERS_PER_TURN = 64 * 1024;

/** These metrics, as the pieces of one text. */
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
