import { editDistance } from '../suggest.ts';
import { SEPARATOR } from './names.ts';

/** Longer names are compared with no others, since the cost is the product of the lengths. */
const MAX_LENGTH = 128;
/** Limit of names that are compared letter by letter. Most are ruled out by their letters. */
const MAX_COMPARED = 500;
/** A name may have one wrong letter in so many. */
const LETTERS_PER_MISTAKE = 4;

/**
 * Returns the names that are most likely meant by an unknown one, the nearest first: those that differ only in case and
 * punctuation, those of another server or without its prefix, or else those with a few other letters.
 */
export function nearestNames(unknown: string, names: Iterable<string>, limit: number): readonly string[] {
  if (unknown.length > MAX_LENGTH) return [];
  const wanted = plain(unknown);
  const own = plain(ownName(unknown));
  const letters = countLetters(wanted);
  const allowed = Math.floor(wanted.length / LETTERS_PER_MISTAKE);
  const near: { readonly name: string; readonly distance: number }[] = [];
  let compared = 0;
  for (const name of names) {
    if (name.length > MAX_LENGTH) continue;
    const candidate = plain(name);
    if (candidate === wanted) near.push({ name, distance: 0 });
    else if (own !== '' && plain(ownName(name)) === own) near.push({ name, distance: SAME_OWN_NAME });
    else if (compared < MAX_COMPARED && isLikely(letters, candidate, allowed)) {
      compared += 1;
      const distance = editDistance(wanted, candidate);
      if (distance <= allowed) near.push({ name, distance });
    }
  }
  near.sort((one, other) => one.distance - other.distance || (one.name < other.name ? -1 : 1));
  return near.slice(0, limit).map(({ name }) => name);
}

/** Distance of a name that differs in the prefix alone, less than that of one with another letter. */
const SAME_OWN_NAME = 0.5;

function plain(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '');
}

function ownName(name: string): string {
  const at = name.indexOf(SEPARATOR);
  return at === -1 ? name : name.slice(at + SEPARATOR.length);
}

/** Counts by the last five bits of a letter: cheap, and different for all letters of English. */
function countLetters(text: string): Int16Array {
  const counts = new Int16Array(32);
  for (let index = 0; index < text.length; index++)
    counts[text.charCodeAt(index) & 31] = (counts[text.charCodeAt(index) & 31] ?? 0) + 1;
  return counts;
}

/** False if more edits than allowed are certain, because so many letters of one are not in the other. */
function isLikely(letters: Int16Array, candidate: string, allowed: number): boolean {
  const others = countLetters(candidate);
  let missing = 0;
  let surplus = 0;
  for (let index = 0; index < letters.length; index++) {
    const difference = (letters[index] ?? 0) - (others[index] ?? 0);
    if (difference > 0) missing += difference;
    else surplus -= difference;
  }
  return Math.max(missing, surplus) <= allowed;
}
