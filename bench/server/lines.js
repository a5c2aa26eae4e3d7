/** Splits a byte stream at newlines; what is left of a line waits as pieces, joined once, so long lines cost no more. */
export function createLineSplitter(onLine) {
  let pieces = [];
  return (chunk) => {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      const last = chunk.subarray(start, end);
      if (pieces.length === 0) onLine(last);
      else {
        pieces.push(last);
        const line = Buffer.concat(pieces);
        pieces = [];
        onLine(line);
      }
      start = end + 1;
    }
    if (start < chunk.length) pieces.push(start === 0 ? chunk : chunk.subarray(start));
  };
}
