/** The data of events that have one line of it, which is all the bench server sends. */
import { createLineSplitter } from '../server/lines.js';

const DATA = Buffer.from('data: ');

export function createDataReader(onData) {
  return createLineSplitter((line) => {
    if (line.length > DATA.length && line.compare(DATA, 0, DATA.length, 0, DATA.length) === 0) {
      onData(line.subarray(DATA.length));
    }
  });
}
