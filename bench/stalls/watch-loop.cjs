/**
 * Preloaded into a bridge: tells its parent, when asked, for how many milliseconds the event loop stood still at most since
 * it was asked last, as far as the process has worked in them: what else runs on the machine does not count. And what it
 * takes to look at each byte of 16 MiB, here and now: the floor.
 */
const BYTES = Buffer.alloc(16 * 1024 * 1024, 'x');
const LOOKS = 3;

let longest = 0;
let last = performance.now();
let lastCpu = process.cpuUsage();

function look() {
  const now = performance.now();
  longest = Math.max(longest, Math.min(now - last - 1, cpuSince(lastCpu)));
  last = now;
  lastCpu = process.cpuUsage();
}

function cpuSince(start) {
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

function measureFloor() {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < LOOKS; round += 1) {
    const start = process.cpuUsage();
    let quotes = 0;
    for (let at = 0; at < BYTES.length; at += 1) if (BYTES[at] === 0x22) quotes += 1;
    if (quotes > 0) throw new Error('there are none');
    least = Math.min(least, cpuSince(start));
  }
  return least;
}

setInterval(look, 1).unref();
process.on('message', (wanted) => {
  look();
  const longestMs = longest;
  const floorMs = wanted === 'floor' ? measureFloor() : undefined;
  look();
  longest = 0;
  process.send({ longestMs, floorMs });
});
process.channel?.unref();
