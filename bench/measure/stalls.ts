/** How long one message keeps a bridge from serving anybody else. */
import { once } from 'node:events';
import { join } from 'node:path';
import { ownPort } from '../../test/support/own-port.ts';
import { portage, rootPath } from '../bridges/programs.ts';
import { askFor, CLIENT_PLACES, FILLINGS, PATHS, SERVER_PLACES, type StallPath } from '../stalls/messages.ts';
import type { Filling } from '../stalls/shapes.js';
import { StallClient } from '../stalls/stall-client.ts';
import type { Effort } from './effort.ts';
import { type Started, startService, startWatched, stop, waitForPlace } from './processes.ts';
import { type Figure, Records } from './records.ts';

const SERVER = join(rootPath, 'bench/stalls/server.js');
const ANSWER_MS = 60_000;

interface Watched {
  readonly longestMs: number;
  readonly floorMs: number | undefined;
}

async function ask({ child }: Started, wanted: 'block' | 'floor'): Promise<Watched> {
  const told = once(child, 'message', { signal: AbortSignal.timeout(ANSWER_MS) });
  child.send(wanted);
  const [watched] = await told;
  return watched as Watched;
}

export async function measureStalls(effort: Effort, records: Records): Promise<void> {
  const measured = new Records();
  for (const path of PATHS) await measurePath(path, effort, measured);
  const least = ({ values }: Figure): number => Math.min(...values);
  const blocks = measured.figures.filter(({ metric }) => metric === 'blockMs').sort((a, b) => least(b) - least(a));
  const worst = new Set(blocks.slice(0, KEPT).map(({ workload }) => workload));
  for (const { metric, values, ...place } of measured.figures) {
    if (worst.has(place.workload)) for (const value of values) records.add(place, { [metric]: value });
  }
  for (const gap of measured.gaps) records.addGap(gap);
}

/** Of hundreds; the others take less, and nobody would read of them. */
const KEPT = 20;

async function measurePath(path: StallPath, { rounds }: Effort, records: Records): Promise<void> {
  const port = await ownPort();
  const far = await ownPort();
  const server = path.transport === 'http' ? startService({ args: [SERVER, path.server, String(far)] }) : undefined;
  if (server !== undefined) await waitForPlace(far, server);
  const target = server === undefined ? ['--', 'node', SERVER, path.server] : [`http://127.0.0.1:${far}/mcp`];
  const bridge = startWatched(portage('--port', String(port), ...path.options, ...target));
  try {
    await waitForPlace(port, bridge);
    const client = await StallClient.open(port, path.client);
    const { floorMs = Number.NaN } = await ask(bridge, 'floor');
    for (const filling of FILLINGS) {
      for (const [label, make] of messagesOf(client, filling)) {
        const place = { case: 'stalls', workload: `${path.name} | ${label}: ${filling}`, contender: 'mcp-portage' };
        try {
          for (let round = 0; round < rounds; round += 1) {
            await ask(bridge, 'block');
            await client.send(make());
            const { longestMs } = await ask(bridge, 'block');
            records.add(place, { blockMs: longestMs, blockFloors: longestMs / floorMs });
          }
        } catch (error) {
          records.addGap({ ...place, kind: 'failed', reason: String(error) });
        }
      }
    }
    client.close();
  } finally {
    await stop(bridge);
    if (server !== undefined) await stop(server);
  }
}

function* messagesOf(client: StallClient, filling: Filling): Iterable<[label: string, make: () => string]> {
  for (const [place, render] of CLIENT_PLACES) {
    yield [`client, ${place}`, () => render(filling, client.nextId(), client.meta)];
  }
  for (const place of SERVER_PLACES) {
    yield [`server, ${place}`, () => askFor(place, filling, client.nextId(), client.meta)];
  }
}
