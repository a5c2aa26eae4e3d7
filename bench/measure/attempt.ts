/** One thing measured of one bridge: what it yields is a figure, what it throws is a gap. */
import { type Entrant, whyMissing } from '../cases.ts';
import type { Effort } from './effort.ts';
import type { Place, Records } from './records.ts';

export async function attempt(
  entrant: Entrant,
  place: Place,
  { effort, records }: { readonly effort: Effort; readonly records: Records },
  measure: () => Promise<Parameters<Records['add']>[1]>,
): Promise<void> {
  const missing = whyMissing(entrant.name, effort);
  if (missing !== undefined) return records.addGap({ ...place, kind: 'absent', reason: missing });
  try {
    records.add(place, await measure());
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    records.addGap({ ...place, kind: 'failed', reason });
  }
}
